#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/metrics.h"
#include "reducer/store/opt_out_filter.h"
#include "reducer/store/store.h"
#include "reducer/store/store_testing.h"
#include "reducer/store/store_times.h"

// A test suite for everything that a Store must do. It uses only the interface of Store. To run the suite for a kind of
// store, add one line to a test of this store and link the test with store_conformance:
//
//   INSTANTIATE_STORE_CONFORMANCE(Memory, [] { return std::make_unique<MemoryBackend>(); });

namespace tributary::store {

// Opens stores of one kind for the suite. The first store is empty.
class StoreBackend {
 public:
  virtual ~StoreBackend() = default;
  // Opens a store that contains everything that earlier stores of this backend have committed, as after a restart. The
  // caller must destroy the earlier store first.
  virtual absl::StatusOr<std::unique_ptr<Store>> Open(const StoreOptions& options, const Clock& clock,
                                                      Metrics& metrics) = 0;
  // Makes commits of samples to shard 0 fail from now on (true), or succeed again (false). A commit must fail as late
  // as possible, so that the test shows whether everything is undone.
  virtual void FailCommits(bool fail) = 0;
};
using MakeStoreBackend = std::function<std::unique_ptr<StoreBackend>()>;

inline constexpr UnixNs kNow{1'700'000'040 * kNsPerSecond};  // a whole minute
inline constexpr TimeRange kAlways{UnixNs{0}, UnixNs{4'000'000'000 * kNsPerSecond}};

// Test fixture: a store with one shard, and the shard's writer. For a store with other options, a test changes
// `options_` and calls Reopen.
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
  // Calls ShardWriter::Maintain. The default number of calls is enough to complete all maintenance.
  void Maintain(int calls = 50) {
    for (int i = 0; i < calls; ++i) {
      const absl::Status status = writer_->Maintain(clock_.Unix());
      ASSERT_TRUE(status.ok()) << status;
    }
  }
  static UnixNs At(int64_t seconds) { return UnixNs{kNow.value + seconds * kNsPerSecond}; }
  uint64_t Count(std::string_view counter) { return metrics_.AddCounter(counter, "").value(); }

  // Key: node, day, trie node and process. Value: sum of values, and count.
  using Sums = std::map<std::tuple<std::string, Day, uint32_t, uint32_t>, std::pair<uint64_t, uint64_t>>;
  Sums FromSums(TimeRange range);
  Sums FromSamples(TimeRange range);
  static uint64_t Total(const Sums& sums);  // Σ counts
  std::vector<SampleColumns> Chunks(StoreReader& reader, TimeRange range = kAlways);
  // Returns the addresses of a stack's frames, the leaf first.
  static std::vector<uint64_t> StackOf(const TrieView& trie, NodeNo node);

  FakeClock clock_{MonotonicNs{kNsPerSecond}, kNow};
  Metrics metrics_;
  Refusals refusals_{clock_, metrics_};
  StoreOptions options_{.refusals = &refusals_};
  std::unique_ptr<StoreBackend> backend_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<ShardWriter> writer_;
};

uint64_t CountSamples(StoreReader& reader, TimeRange range = kAlways);

// Each file of the suite has a fixture of its own.
class SampleConformance : public StoreConformanceTest {};
class RowBatchConformance : public StoreConformanceTest {
 protected:
  // Returns a batch with one sample of a process of the service `service`, and all definitions of the sample. `value`:
  // the sample's value.
  static RowBatch OneSample(std::string_view service, uint64_t value);
  static std::string Encode(std::string_view key, std::string_view value);
};
class ClosedSessionConformance : public StoreConformanceTest {
 protected:
  // Returns a batch of `samples` samples. `on_the_way`: the number of captured samples that are not in this batch or an
  // earlier one.
  static RowBatch BatchOf(TestCollector& collector, int samples, uint64_t on_the_way = 0);
  static RowBatch Closing(RowBatch batch, const TestCollector& ended, uint64_t captured,
                          LossReason reason = LossReason::kCollectorKilled);
  NodeStatus Status();  // Σ over nodes
  uint64_t Lost(LossReason reason) { return Status().accounting.LostFor(reason).total(); }
  void ExpectExact(uint64_t captured);
  uint64_t Refused() { return Count("tributary_reducer_closings_refused_total"); }
};
// Samples and events that are old when they arrive, and impossible times.
class AgeConformance : public StoreConformanceTest {
 protected:
  static constexpr int64_t kDay = 86'400;  // in seconds, for At

  NodeStatus Status() { return Reader()->Nodes()->at(0); }
  std::vector<UnixNs> EventTimes();
  // Expects that each captured sample and event was stored or counts as lost.
  void ExpectExact();
};
class GaugeConformance : public StoreConformanceTest {
 protected:
  // Returns a copy of the batch in which all samples are of a gauge type.
  static RowBatch AsGauge(RowBatch batch);
  // Key: minute (0 is the minute of kNow) and process. Value: sum of values, and count.
  using MinuteSums = std::map<std::pair<int64_t, uint32_t>, std::pair<uint64_t, uint64_t>>;
  MinuteSums Minutes(TimeRange range = kAlways);
};
class EventConformance : public StoreConformanceTest {
 protected:
  // Describes each event of the range in one line, sorted by time.
  std::vector<std::string> Events(TimeRange range = kAlways);
  // Returns the names of the processes of the events that were committed after `*cursor`, and moves the cursor.
  std::vector<std::string> Committed(int64_t* cursor, size_t events_max);
  NamedAccounting Accounting() { return Reader()->Nodes()->at(0).accounting; }
  NamedSampleCounts Stored() { return Reader()->Nodes()->at(0).stored; }
};
class LossConformance : public StoreConformanceTest {
 protected:
  // Calls Maintain when the records do not change any more.
  void Settle() {
    clock_.Advance(kLossWindowNs);
    Maintain(1);
  }
  // Returns "node type reason samples" for each record that was committed after `*cursor`, and moves the cursor.
  std::vector<std::string> Committed(int64_t* cursor, size_t losses_max = 1'000);
  // Expects that Σ samples over the records are the totals of each node.
  void ExpectTotals();
};
// A list of opted-out containers that a test fills.
class FakeOptOuts final : public OptOutList {
 public:
  bool IsEmpty() const override { return off.empty(); }
  bool Drops(std::string_view node_id, std::string_view container_id, std::string_view) override {
    ++asked;
    node = node_id;
    return off.contains(std::string(container_id));
  }

  std::set<std::string> off;
  std::string node;  // the last one that asked
  int asked = 0;
};
class OptOutConformance : public StoreConformanceTest {
 protected:
  OptOutConformance() {
    options_.opt_outs = &list_;
    Reopen();
  }
  NodeStatus Status() { return Reader()->Nodes()->at(0); }
  NamedSampleCounts OptedOut() { return Status().accounting.LostFor(LossReason::kOptedOut); }
  void ExpectExact();
  // Returns a thread of a process in the container.
  static ThreadRef ThreadIn(TestCollector& collector, int pid, const std::string& container);

  FakeOptOuts list_;
};
class FilterConformance : public StoreConformanceTest {
 protected:
  void Fill(TestCollector& collector, int pid);
  static MachineNo MachineOf(StoreReader& reader, std::string_view node_id);
  static TypeNo TypeOf(StoreReader& reader, SampleType type);
  // Return "node type" for each sample.
  static std::multiset<std::string> Samples(StoreReader& reader, const ScanFilter& filter);
  static std::multiset<std::string> Sums(StoreReader& reader, const ScanFilter& filter);
  // Returns the first row of each process.
  static std::map<ProcessNo, ProcessIds> Ids(StoreReader& reader, const ScanFilter& filter);
};
class ProcessConformance : public StoreConformanceTest {};
class TrieConformance : public StoreConformanceTest {};
class TrieShareConformance : public StoreConformanceTest {
 protected:
  // Opens the store again with these limits of a day's trie.
  void Limit(uint32_t nodes_max, uint32_t guaranteed) {
    options_.nodes_per_day_max = nodes_max;
    options_.machine_nodes_per_day_min = guaranteed;
    Reopen();
  }
  // Adds a sample. Its stack has `depth` frames that no other stack has. CommitStack also commits it.
  void AddStack(TestCollector& collector, uint32_t depth, UnixNs time = At(0));
  void CommitStack(TestCollector& collector, uint32_t depth, UnixNs time = At(0)) {
    AddStack(collector, depth, time);
    Commit(collector.Take(time));
  }
  struct Stacks {
    std::map<Ending, uint64_t> endings;
    std::map<size_t, uint64_t> depths;
  };
  Stacks StacksOf(std::string_view node_id);  // how the stored stacks of a machine end, and how deep they are
  size_t Nodes(UnixNs time = At(0));          // of the day's trie, without the root
  uint64_t CutStacks() { return Count("tributary_reducer_cut_stacks_total"); }

 private:
  uint64_t next_address_ = 0;
};
class ScanConformance : public StoreConformanceTest {};
class ShardConformance : public StoreConformanceTest {};

#define INSTANTIATE_STORE_CONFORMANCE(name, make)                                                                    \
  INSTANTIATE_TEST_SUITE_P(name, AgeConformance, testing::Values(::tributary::store::MakeStoreBackend(make)));       \
  INSTANTIATE_TEST_SUITE_P(name, SampleConformance, testing::Values(::tributary::store::MakeStoreBackend(make)));    \
  INSTANTIATE_TEST_SUITE_P(name, RowBatchConformance, testing::Values(::tributary::store::MakeStoreBackend(make)));  \
  INSTANTIATE_TEST_SUITE_P(name, ClosedSessionConformance,                                                           \
                           testing::Values(::tributary::store::MakeStoreBackend(make)));                             \
  INSTANTIATE_TEST_SUITE_P(name, GaugeConformance, testing::Values(::tributary::store::MakeStoreBackend(make)));     \
  INSTANTIATE_TEST_SUITE_P(name, EventConformance, testing::Values(::tributary::store::MakeStoreBackend(make)));     \
  INSTANTIATE_TEST_SUITE_P(name, LossConformance, testing::Values(::tributary::store::MakeStoreBackend(make)));      \
  INSTANTIATE_TEST_SUITE_P(name, OptOutConformance, testing::Values(::tributary::store::MakeStoreBackend(make)));    \
  INSTANTIATE_TEST_SUITE_P(name, FilterConformance, testing::Values(::tributary::store::MakeStoreBackend(make)));    \
  INSTANTIATE_TEST_SUITE_P(name, ProcessConformance, testing::Values(::tributary::store::MakeStoreBackend(make)));   \
  INSTANTIATE_TEST_SUITE_P(name, TrieConformance, testing::Values(::tributary::store::MakeStoreBackend(make)));      \
  INSTANTIATE_TEST_SUITE_P(name, TrieShareConformance, testing::Values(::tributary::store::MakeStoreBackend(make))); \
  INSTANTIATE_TEST_SUITE_P(name, ScanConformance, testing::Values(::tributary::store::MakeStoreBackend(make)));      \
  INSTANTIATE_TEST_SUITE_P(name, ShardConformance, testing::Values(::tributary::store::MakeStoreBackend(make)))

}  // namespace tributary::store
