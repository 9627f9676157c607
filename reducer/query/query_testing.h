#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/directory_testing.h"
#include "reducer/query/query_engine.h"
#include "reducer/store/fake_store_testing.h"
#include "symbols/symbol_builder.h"
#include "symbols/symbol_codec.h"

namespace tributary {

inline constexpr UnixNs kStart{20'000 * kNsPerDay};  // midnight, so that minutes and days are easy to write
inline constexpr int64_t kMs = kNsPerMs;

inline UnixNs At(int64_t ns) { return UnixNs{kStart.value + ns}; }

inline ExecutableId Id(uint8_t n) {
  const uint8_t bytes[] = {n, 0x01};
  return *ExecutableId::Make(ExecutableIdKind::kGnuBuildId, std::span<const uint8_t>(bytes));
}

// Returns one line per node, "all;a;b total self", in the order of nodes.
inline std::string Render(const FlameGraph& graph) {
  std::string out;
  for (size_t i = 0; i < graph.parents.size(); ++i) {
    std::string path = graph.names[graph.node_names[i]];
    for (int32_t p = graph.parents[i]; p >= 0; p = graph.parents[static_cast<size_t>(p)]) {
      path = graph.names[graph.node_names[static_cast<size_t>(p)]] + ";" + path;
    }
    out += path + " " + std::to_string(graph.total_values[i]) + " " + std::to_string(graph.self_values[i]) + "\n";
  }
  return out;
}

// A QueryEngine with a store and symbols that the test fills.
class EngineTest : public ::testing::Test {
 protected:
  explicit EngineTest(uint32_t shards) : store_{shards} {}

  void SetUp() override {
    absl::StatusOr<std::unique_ptr<SymbolStore>> symbols =
        SymbolStore::Open({.directory = symbols_directory_.path()}, clock_, metrics_);
    ASSERT_TRUE(symbols.ok()) << symbols.status();
    symbols_ = *std::move(symbols);
    engine_ = std::make_unique<QueryEngine>(store_, *symbols_, QueryLimits{}, nullptr, 1);
  }

  FakeClock clock_;
  Metrics metrics_;
  store::FakeStore store_;
  const TestDirectory symbols_directory_;
  std::unique_ptr<SymbolStore> symbols_;
  std::unique_ptr<QueryEngine> engine_;
};

// Symbols of a program "truth" (build-id 01…) with main at 0x1000–0x10ff and work at 0x1100–0x11ff, and of the kernel
// (build-id 02…) with do_sys at 0x500. The function main calls work, and also 0x9000, for which there is no symbol.
class QueryTest : public EngineTest {
 protected:
  QueryTest() : EngineTest(1) {}

  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(EngineTest::SetUp());
    PutSymbols(Id(1), SymbolSource::kSymtab, {{0x1000, 0x100, "main"}, {0x1100, 0x100, "_ZN3app4workEi"}});
    PutSymbols(Id(2), SymbolSource::kKallsyms, {{0x500, 0x80, "do_sys"}});
    Fill(store_.shards[0]);
  }

  void PutSymbols(const ExecutableId& id, SymbolSource source, std::vector<SymbolRange> ranges) {
    const auto table = BuildSymbolTable(id, source, ranges);
    absl::Status put = symbols_->Put(id, EncodeSymbolTable(*table), SymbolOrigin::kNode).status();
    ASSERT_TRUE(put.ok()) << put;
  }

  static store::FrameRow Native(store::ExecutableNo executable, uint64_t address, bool is_caller = false) {
    return store::FrameRow{FrameKind::kNative, is_caller, executable, address};
  }

  void Fill(store::FakeShard& shard) {
    truth_ = shard.AddExecutable(Id(1), "/opt/truth");
    kernel_ = shard.AddExecutable(Id(2), "");
    day_ = store::FakeShard::DayOf(kStart);
    main_ = shard.AddNode(day_, store::NodeNo{0}, Native(truth_, 0x1010, true));
    main_other_site_ = shard.AddNode(day_, store::NodeNo{0}, Native(truth_, 0x1020, true));
    work_ = shard.AddNode(day_, main_, Native(truth_, 0x1150));
    work_other_site_ = shard.AddNode(day_, main_other_site_, Native(truth_, 0x1160));
    unnamed_ = shard.AddNode(day_, main_, Native(truth_, 0x9000));
    kernel_node_ = shard.AddNode(day_, work_, store::FrameRow{FrameKind::kKernel, false, kernel_, 0x510});
    unmapped_ = shard.AddNode(day_, store::NodeNo{0},
                              store::FrameRow{FrameKind::kUnknown, false, store::ExecutableNo{0}, 0xdead});
    AddProcess(shard, 1, 100, "truth", "");
    AddProcess(shard, 2, 200, "other", "c0ffee");
    shard.threads = {{store::ThreadNo{1}, store::ProcessNo{1}, Tid{100}, "truth"},
                     {store::ThreadNo{2}, store::ProcessNo{1}, Tid{101}, "worker"},
                     {store::ThreadNo{3}, store::ProcessNo{2}, Tid{200}, "other"}};
  }

  static void AddProcess(store::FakeShard& shard, uint32_t no, int32_t pid, const std::string& comm,
                         const std::string& container) {
    store::ProcessRow row;
    row.no = store::ProcessNo{no};
    row.node_id = "node-1";
    row.host_name = "host-1";
    row.pid = Pid{pid};
    row.comm = comm;
    row.executable_path = "/opt/" + comm;
    row.container_id = container;
    row.as_of = kStart;
    shard.processes.push_back(row);
  }

  void AddSample(int64_t at_ns, uint32_t process, uint32_t thread, store::NodeNo node, uint64_t value,
                 uint32_t count = 1) {
    store_.shards[0].samples.push_back(
        {At(at_ns), store::ProcessNo{process}, store::ThreadNo{thread}, node, value, count});
  }

  QueryRequest Request(std::string_view selector = "{}", int64_t from = 0, int64_t to = kNsPerMinute) {
    absl::StatusOr<Selector> parsed = Selector::Parse(selector);
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    return QueryRequest{.selector = *parsed, .range = store::TimeRange{At(from), At(to)}};
  }
  FlameGraph Graph(const QueryRequest& request, size_t nodes_max = 1000) {
    absl::StatusOr<FlameGraph> graph = engine_->QueryFlameGraph(request, nodes_max);
    EXPECT_TRUE(graph.ok()) << graph.status();
    return graph.ok() ? *std::move(graph) : FlameGraph{};
  }

  store::Day day_;
  store::ExecutableNo truth_, kernel_;
  store::NodeNo main_, main_other_site_, work_, work_other_site_, unnamed_, kernel_node_, unmapped_;
};

}  // namespace tributary
