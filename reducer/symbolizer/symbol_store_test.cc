#include "reducer/symbolizer/symbol_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <thread>

#include "reducer/store/sqlite.h"
#include "symbols/symbol_builder.h"
#include "symbols/symbol_codec.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;

ExecutableId Id(uint8_t n) {
  const uint8_t bytes[] = {n, 0xaa, 0xbb};
  return *ExecutableId::Make(ExecutableIdKind::kGnuBuildId, std::span<const uint8_t>(bytes));
}

std::shared_ptr<const SymbolTable> Table(uint8_t n, SymbolSource source = SymbolSource::kSymtab, int symbols = 3) {
  std::deque<std::string> names;
  std::vector<SymbolRange> ranges;
  for (int i = 0; i < symbols; ++i) {
    names.push_back("function_" + std::to_string(i));
    ranges.push_back(SymbolRange{0x1000u + 0x100u * static_cast<uint64_t>(i), 0x80, names.back()});
  }
  return BuildSymbolTable(Id(n), source, ranges);
}

class SymbolStoreTest : public ::testing::Test {
 protected:
  void Open(SymbolStore::Options options = {}) {
    if (options.path.empty()) options.path = ":memory:";
    absl::StatusOr<std::unique_ptr<SymbolStore>> opened = SymbolStore::Open(options, clock_, metrics_);
    ASSERT_TRUE(opened.ok()) << opened.status();
    store_ = *std::move(opened);
  }
  void PutTable(const SymbolTable& table) {
    absl::Status status = store_->Put(table.id(), EncodeSymbolTable(table));
    ASSERT_TRUE(status.ok()) << status;
    clock_.Advance(kNsPerSecond);
  }
  uint64_t Uploads(const std::string& result) {
    return metrics_.AddCounter("tributary_symbolizer_uploads_total", "", {{"result", result}}).value();
  }
  uint64_t Evictions(const std::string& from) {
    return metrics_.AddCounter("tributary_symbolizer_evictions_total", "", {{"from", from}}).value();
  }
  std::vector<SymbolStore::Listed> List() {
    absl::StatusOr<std::vector<SymbolStore::Listed>> listed = store_->List();
    EXPECT_TRUE(listed.ok());
    return *listed;
  }

  FakeClock clock_;
  Metrics metrics_;
  std::unique_ptr<SymbolStore> store_;
};

TEST_F(SymbolStoreTest, KeepsWhatWasPut) {
  Open();
  EXPECT_EQ(store_->Get(Id(1)), nullptr);
  PutTable(*Table(1));
  std::shared_ptr<const SymbolTable> table = store_->Get(Id(1));
  ASSERT_NE(table, nullptr);
  ASSERT_TRUE(table->Find(0x1110));
  EXPECT_EQ(table->Find(0x1110)->name, "function_1");
  EXPECT_EQ(store_->Get(Id(1)), table);  // from memory
  EXPECT_EQ(store_->Get(Id(2)), nullptr);
  EXPECT_EQ(Uploads("stored"), 1u);
}

TEST_F(SymbolStoreTest, RefusesWhatIsNotTheTableOfThatExecutable) {
  Open();
  std::string encoded = EncodeSymbolTable(*Table(1));
  EXPECT_EQ(store_->Put(Id(2), encoded).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(store_->Put(ExecutableId(), encoded).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(store_->Put(Id(1), "").code(), absl::StatusCode::kInvalidArgument);
  uint64_t refused = 3;
  for (size_t size = 0; size < encoded.size(); size += 3) {
    EXPECT_FALSE(store_->Put(Id(1), std::string_view(encoded).substr(0, size)).ok()) << size;
    ++refused;
  }
  EXPECT_EQ(Uploads("refused"), refused);
  EXPECT_TRUE(List().empty());
  EXPECT_TRUE(store_->ShouldRequest(Id(1)));
}

TEST_F(SymbolStoreTest, BetterSourceReplacesAndWorseChangesNothing) {
  Open();
  PutTable(*Table(1, SymbolSource::kSymtab, 3));
  PutTable(*Table(1, SymbolSource::kDynsym, 9));
  EXPECT_EQ(store_->Get(Id(1))->function_count(), 3u);
  EXPECT_EQ(Uploads("kept_better"), 1u);
  PutTable(*Table(1, SymbolSource::kKallsyms, 2));
  EXPECT_EQ(store_->Get(Id(1))->function_count(), 2u);
  EXPECT_EQ(store_->Get(Id(1))->source(), SymbolSource::kKallsyms);
  ASSERT_EQ(List().size(), 1u);
  EXPECT_EQ(List()[0].symbols, 2u);
}

TEST_F(SymbolStoreTest, AsksOnceUntilTheTimeout) {
  SymbolStore::Options options;
  Open(options);
  EXPECT_FALSE(store_->ShouldRequest(ExecutableId()));
  EXPECT_TRUE(store_->ShouldRequest(Id(1)));
  EXPECT_FALSE(store_->ShouldRequest(Id(1)));
  clock_.Advance(options.request_timeout_ns - 1);
  EXPECT_FALSE(store_->ShouldRequest(Id(1)));
  clock_.Advance(1);
  EXPECT_TRUE(store_->ShouldRequest(Id(1)));
  PutTable(*Table(1));
  clock_.Advance(100 * options.request_timeout_ns);
  EXPECT_FALSE(store_->ShouldRequest(Id(1)));
}

TEST_F(SymbolStoreTest, AsksAgainLongAfterANodeHadNone) {
  SymbolStore::Options options;
  Open(options);
  EXPECT_TRUE(store_->ShouldRequest(Id(1)));
  store_->PutUnavailable(Id(1), "no sections\x1b[2J");
  clock_.Advance(options.refused_retry_ns - 1);
  EXPECT_FALSE(store_->ShouldRequest(Id(1)));
  clock_.Advance(1);
  EXPECT_TRUE(store_->ShouldRequest(Id(1)));
}

TEST_F(SymbolStoreTest, OpenRequestsAreBounded) {
  SymbolStore::Options options;
  Open(options);
  auto id = [](uint32_t n) {
    return *ExecutableId::Make(ExecutableIdKind::kGnuBuildId,
                               std::string_view(reinterpret_cast<const char*>(&n), sizeof(n)));
  };
  for (uint32_t n = 0; n < 65'536; ++n) ASSERT_TRUE(store_->ShouldRequest(id(n)));
  EXPECT_FALSE(store_->ShouldRequest(id(70'000)));
  EXPECT_EQ(metrics_.AddCounter("tributary_symbolizer_requests_deferred_total", "").value(), 1u);
  clock_.Advance(options.request_timeout_ns);
  EXPECT_TRUE(store_->ShouldRequest(id(70'000)));
}

TEST_F(SymbolStoreTest, MemoryHoldsTheMostRecentlyUsed) {
  SymbolStore::Options options;
  options.memory_bytes_max = 2 * Table(1)->bytes().size() + Table(1)->bytes().size() / 2;
  Open(options);
  for (uint8_t n = 1; n <= 3; ++n) PutTable(*Table(n));
  std::shared_ptr<const SymbolTable> first = store_->Get(Id(1));
  std::shared_ptr<const SymbolTable> second = store_->Get(Id(2));
  EXPECT_EQ(store_->Get(Id(1)), first);
  store_->Get(Id(3));  // puts 2 out
  EXPECT_EQ(Evictions("memory"), 1u);
  EXPECT_EQ(store_->Get(Id(1)), first);
  std::shared_ptr<const SymbolTable> second_again = store_->Get(Id(2));
  EXPECT_NE(second_again, second);
  EXPECT_EQ(second_again->function_count(), second->function_count());
}

TEST_F(SymbolStoreTest, DiskHoldsTheMostRecentlyUsed) {
  SymbolStore::Options options;
  Open(options);
  PutTable(*Table(1));
  uint64_t row_bytes = List()[0].stored_bytes + 512;
  options.disk_bytes_max = 2 * row_bytes + row_bytes / 2;
  Open(options);
  PutTable(*Table(1));
  PutTable(*Table(2));
  store_->Get(Id(1));
  clock_.Advance(kNsPerSecond);
  PutTable(*Table(3));
  EXPECT_EQ(Evictions("disk"), 1u);
  EXPECT_NE(store_->Get(Id(1)), nullptr);
  EXPECT_EQ(store_->Get(Id(2)), nullptr);
  EXPECT_NE(store_->Get(Id(3)), nullptr);
  EXPECT_EQ(List().size(), 2u);
}

TEST_F(SymbolStoreTest, TableOverTheWholeCapIsTurnedAway) {
  SymbolStore::Options options;
  options.disk_bytes_max = 600;
  Open(options);
  EXPECT_EQ(store_->Put(Id(1), EncodeSymbolTable(*Table(1, SymbolSource::kSymtab, 2000))).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Uploads("no_room"), 1u);
  EXPECT_TRUE(List().empty());
}

TEST_F(SymbolStoreTest, AnyThreadMayCall) {
  SymbolStore::Options options;
  options.memory_bytes_max = 3 * Table(1)->bytes().size();
  options.disk_bytes_max = 3 * 1024;  // both caps are in the way all the time
  Open(options);
  std::atomic<int> found = 0;
  auto work = [&](uint8_t first) {
    for (uint8_t i = 0; i < 40; ++i) {
      auto n = static_cast<uint8_t>(1 + (first + i) % 10);
      store_->ShouldRequest(Id(n));
      EXPECT_TRUE(store_->Put(Id(n), EncodeSymbolTable(*Table(n))).ok());
      if (std::shared_ptr<const SymbolTable> table = store_->Get(Id(n))) {
        EXPECT_EQ(table->id(), Id(n));
        ++found;
      }
      store_->PutUnavailable(Id(n), "gone");
      EXPECT_TRUE(store_->List().ok());
    }
  };
  std::vector<std::thread> threads;
  for (uint8_t t = 0; t < 4; ++t) threads.emplace_back(work, static_cast<uint8_t>(3 * t));
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(found, 0);
  uint64_t bytes = 0;
  for (const SymbolStore::Listed& table : List()) bytes += table.stored_bytes + 512;
  EXPECT_LE(bytes, options.disk_bytes_max);
  EXPECT_GT(Evictions("disk"), 0u);
}

class SymbolStoreFileTest : public SymbolStoreTest {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/symbol_store_XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    directory_ = pattern;
    options_.path = directory_ + "/symbols.db";
  }
  void TearDown() override {
    store_.reset();
    std::filesystem::remove_all(directory_);
  }
  std::string directory_;
  SymbolStore::Options options_;
};

TEST_F(SymbolStoreFileTest, TablesSurviveARestart) {
  Open(options_);
  PutTable(*Table(1));
  PutTable(*Table(2, SymbolSource::kDynsym));
  store_.reset();
  Open(options_);
  ASSERT_EQ(List().size(), 2u);
  EXPECT_EQ(List()[1].source, SymbolSource::kDynsym);
  EXPECT_FALSE(store_->ShouldRequest(Id(1)));
  ASSERT_NE(store_->Get(Id(1)), nullptr);
  EXPECT_EQ(store_->Get(Id(1))->Find(0x1000)->name, "function_0");
}

TEST_F(SymbolStoreFileTest, TableSpoiledOnDiskIsForgottenAndAskedForAgain) {
  Open(options_);
  PutTable(*Table(1));
  store_.reset();
  {
    absl::StatusOr<store::Database> database = store::Database::Open(options_.path, store::Database::Mode::kReadWrite);
    ASSERT_TRUE(database.ok()) << database.status();
    ASSERT_TRUE(database->Execute("UPDATE symbol_table SET encoded = x'28b52ffd00000000'").ok());
  }
  Open(options_);
  EXPECT_EQ(store_->Get(Id(1)), nullptr);
  EXPECT_TRUE(List().empty());
  EXPECT_TRUE(store_->ShouldRequest(Id(1)));
  EXPECT_EQ(metrics_.AddCounter("tributary_symbolizer_unreadable_tables_total", "").value(), 1u);
}

TEST_F(SymbolStoreFileTest, FileThatIsNoDatabaseIsAnError) {
  FILE* file = fopen(options_.path.c_str(), "w");
  ASSERT_NE(file, nullptr);
  for (int i = 0; i < 1000; ++i) fputs("this is no database ", file);
  fclose(file);
  absl::StatusOr<std::unique_ptr<SymbolStore>> opened = SymbolStore::Open(options_, clock_, metrics_);
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(std::string(opened.status().message()), HasSubstr("symbols.db"));
}

}  // namespace
}  // namespace tributary
