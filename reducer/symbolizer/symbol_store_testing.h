#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/directory_testing.h"
#include "reducer/symbolizer/symbol_store.h"
#include "symbols/symbol_builder.h"
#include "symbols/symbol_codec.h"

// Tables and a fixture for tests of SymbolStore.

namespace tributary {

inline ExecutableId Id(uint8_t n) {
  const uint8_t bytes[] = {n, 0xaa, 0xbb};
  return *ExecutableId::Make(ExecutableIdKind::kGnuBuildId, std::span<const uint8_t>(bytes));
}

inline std::shared_ptr<const SymbolTable> Table(uint8_t n, SymbolSource source = SymbolSource::kSymtab,
                                                int symbols = 3) {
  std::deque<std::string> names;
  std::vector<SymbolRange> ranges;
  for (int i = 0; i < symbols; ++i) {
    names.push_back("function_" + std::to_string(i));
    ranges.push_back(SymbolRange{0x1000u + 0x100u * static_cast<uint64_t>(i), 0x80, names.back()});
  }
  return BuildSymbolTable(Id(n), source, ranges);
}

// Half of the directory's bytes are for tables, each with a page of overhead.
constexpr uint64_t BytesForTables(double tables, uint64_t stored_bytes) {
  return static_cast<uint64_t>(2 * tables * static_cast<double>(stored_bytes + 4096));
}

class SymbolStoreTest : public ::testing::Test {
 protected:
  void Open(SymbolStore::Options options = {}) {
    if (options.directory.empty()) options.directory = directory_.path() + "/symbols";
    options.refusals = &refusals_;
    absl::StatusOr<std::unique_ptr<SymbolStore>> opened = SymbolStore::Open(options, clock_, metrics_);
    ASSERT_TRUE(opened.ok()) << opened.status();
    store_ = *std::move(opened);
  }
  void PutTable(const SymbolTable& table) {
    const auto kept = store_->Put(table.id(), EncodeSymbolTable(table), SymbolOrigin::kNode);
    ASSERT_TRUE(kept.ok()) << kept.status();
    clock_.Advance(kNsPerSecond);
  }
  uint64_t Uploads(const std::string& result) {
    return metrics_.AddCounter("tributary_symbolizer_uploads_total", "", {{"result", result}}).value();
  }
  uint64_t Evictions(const std::string& from) {
    return metrics_.AddCounter("tributary_symbolizer_evictions_total", "", {{"from", from}}).value();
  }
  std::vector<SymbolFiles::Row> List() {
    absl::StatusOr<std::vector<SymbolFiles::Row>> listed = store_->List();
    EXPECT_TRUE(listed.ok());
    return *listed;
  }

  const TestDirectory directory_;
  FakeClock clock_;
  Metrics metrics_;
  Refusals refusals_{clock_, metrics_};
  std::unique_ptr<SymbolStore> store_;
};

}  // namespace tributary
