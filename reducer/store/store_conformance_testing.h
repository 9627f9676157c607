#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/metrics.h"
#include "reducer/store/store.h"
#include "reducer/store/store_testing.h"
#include "reducer/store/store_times.h"

// Tests of everything that a Store must do. They use only its interface. A kind of store runs the suite with one line
// in its own test, which links store_conformance:
//
//   INSTANTIATE_STORE_CONFORMANCE(Memory, [] { return std::make_unique<MemoryBackend>(); });

namespace tributary::store {

// Opens a kind of store for the suite. The store is empty at first.
class StoreBackend {
 public:
  virtual ~StoreBackend() = default;
  // Opens the store with all that earlier stores of this backend committed, as after a restart. The caller must have
  // destroyed the earlier store.
  virtual absl::StatusOr<std::unique_ptr<Store>> Open(const StoreOptions& options, const Clock& clock,
                                                      Metrics& metrics) = 0;
  // Makes commits of samples to shard 0 fail from now on, or succeed again. They fail as late as the store allows.
  virtual void FailCommits(bool fail) = 0;
};
using MakeStoreBackend = std::function<std::unique_ptr<StoreBackend>()>;

inline constexpr UnixNs kNow{1'700'000'040 * kNsPerSecond};  // a whole minute
inline constexpr TimeRange kAlways{UnixNs{0}, UnixNs{4'000'000'000 * kNsPerSecond}};

// A store with one shard and its writer. For another store, a test changes `options_` and calls Reopen.
class StoreConformanceTest : public testing::TestWithParam<MakeStoreBackend> {
 protected:
  StoreConformanceTest() : backend_(GetParam()()) { Reopen(); }

  void Reopen() {
    writer_.reset();
    store_.reset();
    absl::StatusOr<std::unique_ptr<Store>> store = backend_->Open(options_, clock_, metrics_);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    writer_ = store_->OpenWriter(0).value();
  }
  std::unique_ptr<StoreReader> Reader(uint32_t shard = 0) { return store_->OpenReader(shard).value(); }
  ShardWriter::Outcome CommitOne(const RowBatch& batch) {
    absl::StatusOr<std::vector<ShardWriter::Outcome>> outcomes = writer_->Commit({&batch, 1});
    EXPECT_TRUE(outcomes.ok()) << outcomes.status();
    return outcomes.ok() ? outcomes->at(0) : ShardWriter::Outcome{};
  }
  void Commit(const RowBatch& batch) { ASSERT_FALSE(CommitOne(batch).need_dictionary); }
  // The default number of calls leaves no work undone.
  void Maintain(int calls = 50) {
    for (int i = 0; i < calls; ++i) {
      const absl::Status status = writer_->Maintain(clock_.Unix());
      ASSERT_TRUE(status.ok()) << status;
    }
  }
  static UnixNs At(int64_t seconds) { return UnixNs{kNow.value + seconds * kNsPerSecond}; }
  uint64_t Count(std::string_view counter) { return metrics_.AddCounter(counter, "").value(); }

  // Value and count by node, day, trie node and process.
  using Sums = std::map<std::tuple<std::string, Day, uint32_t, uint32_t>, std::pair<uint64_t, uint64_t>>;
  Sums FromSums(TimeRange range);
  Sums FromSamples(TimeRange range);
  static uint64_t Total(const Sums& sums);  // Σ counts
  std::vector<SampleColumns> Chunks(StoreReader& reader, TimeRange range = kAlways);
  // The addresses of a sample's stack, the leaf first.
  static std::vector<uint64_t> StackOf(const Trie& trie, NodeNo node);

  FakeClock clock_{MonotonicNs{kNsPerSecond}, kNow};
  Metrics metrics_;
  StoreOptions options_;
  std::unique_ptr<StoreBackend> backend_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<ShardWriter> writer_;
};

uint64_t CountSamples(StoreReader& reader, TimeRange range = kAlways);

// One fixture per file of the suite.
class SampleConformance : public StoreConformanceTest {};
class RowBatchConformance : public StoreConformanceTest {
 protected:
  // Returns one sample of `value` in the service's main, and all its definitions.
  static RowBatch OneSample(std::string_view service, uint64_t value);
  static std::string Encode(std::string_view key, std::string_view value);
};
class ClosedSessionConformance : public StoreConformanceTest {
 protected:
  // Returns a batch of `samples` samples. `on_the_way`: samples that are captured but still on their way when the batch
  // is closed.
  static RowBatch BatchOf(TestCollector& collector, int samples, uint64_t on_the_way = 0);
  static RowBatch Closing(RowBatch batch, const TestCollector& ended, uint64_t captured,
                          LossReason reason = LossReason::kCollectorKilled);
  NodeStatus Status();  // Σ over nodes
  uint64_t Lost(LossReason reason) { return Status().accounting.LostFor(reason).total(); }
  void ExpectExact(uint64_t captured);
  uint64_t Refused() { return Count("tributary_reducer_closings_refused_total"); }
};
class GaugeConformance : public StoreConformanceTest {
 protected:
  // Returns the batch with its samples turned into samples of a gauge.
  static RowBatch AsGauge(RowBatch batch);
  // Value and count by minute (0 is the minute of kNow) and process.
  using MinuteSums = std::map<std::pair<int64_t, uint32_t>, std::pair<uint64_t, uint64_t>>;
  MinuteSums Minutes(TimeRange range = kAlways);
};
class ProcessConformance : public StoreConformanceTest {};
class TrieConformance : public StoreConformanceTest {};
class ScanConformance : public StoreConformanceTest {};
class ShardConformance : public StoreConformanceTest {};

#define INSTANTIATE_STORE_CONFORMANCE(name, make)                                                                   \
  INSTANTIATE_TEST_SUITE_P(name, SampleConformance, testing::Values(::tributary::store::MakeStoreBackend(make)));   \
  INSTANTIATE_TEST_SUITE_P(name, RowBatchConformance, testing::Values(::tributary::store::MakeStoreBackend(make))); \
  INSTANTIATE_TEST_SUITE_P(name, ClosedSessionConformance,                                                          \
                           testing::Values(::tributary::store::MakeStoreBackend(make)));                            \
  INSTANTIATE_TEST_SUITE_P(name, GaugeConformance, testing::Values(::tributary::store::MakeStoreBackend(make)));    \
  INSTANTIATE_TEST_SUITE_P(name, ProcessConformance, testing::Values(::tributary::store::MakeStoreBackend(make)));  \
  INSTANTIATE_TEST_SUITE_P(name, TrieConformance, testing::Values(::tributary::store::MakeStoreBackend(make)));     \
  INSTANTIATE_TEST_SUITE_P(name, ScanConformance, testing::Values(::tributary::store::MakeStoreBackend(make)));     \
  INSTANTIATE_TEST_SUITE_P(name, ShardConformance, testing::Values(::tributary::store::MakeStoreBackend(make)))

}  // namespace tributary::store
