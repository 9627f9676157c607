// Measures how long an exporter takes to read the stacks of a commit's samples when the day's trie is large: from the
// whole trie, or from a part of it. Between two reads a commit adds nodes, as in a fleet.
//   trie_bench [--benchmark_filter=…]; docs/benchmarks.md has its figures.

#include <benchmark/benchmark.h>

#include <filesystem>
#include <map>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/status.h"
#include "reducer/sqlite/sqlite_store.h"
#include "reducer/store/store_testing.h"
#include "reducer/store/store_times.h"

namespace tributary::store {
namespace {

constexpr UnixNs kNow{1'700'000'040 * kNsPerSecond};
constexpr uint32_t kNodesOfSession = 100'000;
constexpr int kSamplesOfBatch = 200, kNewNodesOfBatch = 50;

// A store with one day of `nodes` nodes.
class LargeDay {
 public:
  explicit LargeDay(int64_t nodes) {
    std::filesystem::remove_all(directory_);
    store_ = SqliteStore::Open(directory_, {}, clock_, metrics_).value();
    writer_ = store_->OpenWriter(0).value();
    for (int64_t made = 0; made < nodes; made += kNodesOfSession) {
      TestCollector collector("node-a", ++session_);
      for (uint32_t i = 0; i < kNodesOfSession; ++i) {
        Add(collector, static_cast<uint64_t>(made) + i);
        if (i % 5'000 == 4'999) Commit(collector);
      }
    }
    collector_ = std::make_unique<TestCollector>("node-a", ++session_);
    CommitNew();
    cursor_ = store_->OpenReader(0)
                  .value()
                  ->ScanCommitted({}, SIZE_MAX, [](const SampleColumns&, const Cursor&) { return absl::OkStatus(); })
                  .value()
                  .next;
  }
  ~LargeDay() {
    writer_.reset();
    store_.reset();
    std::filesystem::remove_all(directory_);
  }

  void CommitNew() {
    for (int i = 0; i < kSamplesOfBatch; ++i) {
      Add(*collector_, (uint64_t{1} << 40) + next_ + static_cast<uint64_t>(i % kNewNodesOfBatch));
    }
    next_ += kNewNodesOfBatch;
    Commit(*collector_);
  }
  std::vector<NodeNo> NewLeaves(StoreReader& reader) {
    std::vector<NodeNo> leaves;
    cursor_ = reader
                  .ScanCommitted(cursor_, SIZE_MAX,
                                 [&](const SampleColumns& columns, const Cursor&) {
                                   leaves.insert(leaves.end(), columns.nodes.begin(), columns.nodes.end());
                                   return absl::OkStatus();
                                 })
                  .value()
                  .next;
    return leaves;
  }
  std::unique_ptr<StoreReader> Reader() { return store_->OpenReader(0).value(); }

 private:
  static void Add(TestCollector& collector, uint64_t number) {
    collector.Add(kNow, collector.Thread(1, "t"), collector.Stack({1, 2 + number % 32, 1'000 + number}));
  }
  void Commit(TestCollector& collector) {
    const RowBatch batch = collector.Take(kNow);
    TRIBUTARY_CHECK(!writer_->Commit({&batch, 1}).value().at(0).need_dictionary);
  }

  const std::string directory_ = (std::filesystem::temp_directory_path() / "tributary-trie-bench").string();
  FakeClock clock_{MonotonicNs{kNsPerSecond}, kNow};
  Metrics metrics_;
  std::unique_ptr<SqliteStore> store_;
  std::unique_ptr<ShardWriter> writer_;
  uint8_t session_ = 0;
  std::unique_ptr<TestCollector> collector_;
  uint64_t next_ = 0;
  Cursor cursor_;
};

// Keeps the last day, so that both benchmarks can use it.
LargeDay& DayOfNodes(int64_t nodes) {
  static std::pair<int64_t, std::unique_ptr<LargeDay>> kept;
  if (kept.first != nodes) {
    kept.second.reset();
    kept = {nodes, std::make_unique<LargeDay>(nodes)};
  }
  return *kept.second;
}

template <typename Load>
void ReadNew(benchmark::State& state, Load load) {
  LargeDay& day = DayOfNodes(state.range(0));
  load(*day.Reader(), std::vector<NodeNo>());
  for (auto _ : state) {
    state.PauseTiming();
    day.CommitNew();
    state.ResumeTiming();
    const std::unique_ptr<StoreReader> reader = day.Reader();
    load(*reader, day.NewLeaves(*reader));
  }
}

void Part(benchmark::State& state) {
  ReadNew(state, [](StoreReader& reader, const std::vector<NodeNo>& leaves) {
    const TriePart part = reader.LoadTriePart(DayOf(kNow), leaves).value();
    benchmark::DoNotOptimize(part.trie.parents.data());
  });
}
void Whole(benchmark::State& state) {
  ReadNew(state, [](StoreReader& reader, const std::vector<NodeNo>& leaves) {
    const TrieView trie = reader.LoadTrie(DayOf(kNow)).value();
    uint64_t sum = 0;
    for (NodeNo node : leaves) {
      for (; node.value != 0; node = trie.parents[node.value]) sum += trie.frames[node.value];
    }
    benchmark::DoNotOptimize(sum);
  });
}
BENCHMARK(Part)->Arg(100'000)->Arg(1'000'000)->Arg(4'000'000)->Unit(benchmark::kMicrosecond)->Iterations(100);
BENCHMARK(Whole)->Arg(100'000)->Arg(1'000'000)->Arg(4'000'000)->Unit(benchmark::kMicrosecond)->Iterations(100);

}  // namespace
}  // namespace tributary::store

BENCHMARK_MAIN();
