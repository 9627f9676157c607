#include "reducer/ingest/writer_thread.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <deque>
#include <future>
#include <set>

namespace tributary::ingest {
namespace {

// A writer that follows the test's script, and remembers the groups.
class ScriptedWriter : public store::ShardWriter {
 public:
  absl::StatusOr<std::vector<Outcome>> Commit(std::span<const RowBatch> group) override {
    std::unique_lock lock(mutex);
    ++attempts;
    changed.notify_all();
    changed.wait(lock, [&] { return !blocked; });
    if (failures > 0) {
      --failures;
      return absl::ResourceExhaustedError("disk is full");
    }
    for (const RowBatch& pending : group) {
      if (poisoned.contains(pending.sequence)) return poison;
    }
    std::vector<Outcome> outcomes;
    for (const RowBatch& pending : group) outcomes.push_back({pending.sequence, false});
    groups.push_back(group.size());
    return outcomes;
  }
  absl::StatusOr<SessionState> FindSession(std::span<const uint8_t> id) override {
    if (id[0] == 1) return SessionState{77};
    return absl::NotFoundError("never seen");
  }
  absl::Status Maintain(UnixNs) override {
    std::lock_guard lock(mutex);
    ++maintained;
    changed.notify_all();
    return absl::OkStatus();
  }

  std::mutex mutex;
  std::condition_variable changed;
  bool blocked = false;
  std::set<uint64_t> poisoned;  // a group with one of these batches fails
  absl::Status poison = absl::DataLossError("a damaged page");
  int failures = 0, attempts = 0, maintained = 0;
  std::vector<size_t> groups;
};

class WriterThreadTest : public ::testing::Test {
 protected:
  void Start(WriterThread::Options options) {
    auto writer = std::make_unique<ScriptedWriter>();
    script_ = writer.get();
    thread_ = std::make_unique<WriterThread>(
        "test", std::move(writer), options,
        WriterThread::Callbacks{.committed =
                                    [this](std::vector<CommittedBatch> done) {
                                      std::lock_guard lock(mutex_);
                                      for (auto& one : done) {
                                        done_.push_back(one.outcome.sequence);
                                        if (one.refused) refused_.push_back(one.refused_sequence);
                                      }
                                      changed_.notify_all();
                                    },
                                .found =
                                    [this](const SessionId& id, absl::StatusOr<uint64_t> durable) {
                                      std::lock_guard lock(mutex_);
                                      found_.emplace_back(id[0], durable.value_or(999), done_.size());
                                      changed_.notify_all();
                                    }},
        clock_, metrics_);
  }
  static RowBatch Batch(uint64_t sequence) {
    RowBatch pending;
    pending.SetSession(std::make_shared<SessionInfo>());
    pending.sequence = sequence;
    return pending;
  }
  void WaitForDone(size_t count) {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, std::chrono::minutes(1), [&] { return done_.size() >= count; }))
        << done_.size() << " of " << count << " batches are done";
  }
  void Block(bool blocked) {
    std::lock_guard lock(script_->mutex);
    script_->blocked = blocked;
    script_->changed.notify_all();
  }
  void WaitForAttempts(int count) {
    std::unique_lock lock(script_->mutex);
    script_->changed.wait(lock, [&] { return script_->attempts >= count; });
  }
  // Starts a thread that is committing batch 1 until Block(false).
  void StartBusy(WriterThread::Options options) {
    Start(options);
    Block(true);
    ASSERT_TRUE(thread_->TrySubmit(Batch(1)));
    WaitForAttempts(1);
  }

  const Clock& clock_ = Clock::Real();
  Metrics metrics_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<uint64_t> done_, refused_;
  std::vector<std::tuple<int, uint64_t, size_t>> found_;
  ScriptedWriter* script_ = nullptr;
  std::unique_ptr<WriterThread> thread_;
};

TEST_F(WriterThreadTest, CommitsWaitingBatchesAsOneGroupInOrder) {
  StartBusy({.group_batches_max = 4});
  for (uint64_t i = 2; i <= 8; ++i) ASSERT_TRUE(thread_->TrySubmit(Batch(i)));
  Block(false);
  WaitForDone(8);
  EXPECT_EQ(done_, (std::vector<uint64_t>{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(script_->groups, (std::vector<size_t>{1, 4, 3}));
}

TEST_F(WriterThreadTest, TriesAgainUntilItIsDurable) {
  Start({.retry_min_ms = 1, .retry_max_ms = 2});
  {
    std::lock_guard lock(script_->mutex);
    script_->failures = 5;
  }
  ASSERT_TRUE(thread_->TrySubmit(Batch(1)));
  WaitForDone(1);
  EXPECT_EQ(script_->attempts, 6);
  EXPECT_EQ(script_->groups, std::vector<size_t>{1});
}

// Without the refusal, the commits of the shard would end here for ever.
TEST_F(WriterThreadTest, RefusesOnlyTheBatchThatCannotBeCommitted) {
  Refusals refusals(clock_, metrics_);
  StartBusy({.group_batches_max = 4, .retry_min_ms = 1, .retry_max_ms = 2, .refusals = &refusals});
  {
    std::lock_guard lock(script_->mutex);
    script_->poisoned = {3};
  }
  for (uint64_t i = 2; i <= 5; ++i) ASSERT_TRUE(thread_->TrySubmit(Batch(i)));
  Block(false);
  WaitForDone(5);
  EXPECT_EQ(done_, (std::vector<uint64_t>{1, 2, 0, 4, 5})) << "the mark of a refused batch is unknown";
  EXPECT_EQ(refused_, std::vector<uint64_t>{3});
  EXPECT_EQ(script_->groups, (std::vector<size_t>{1, 1, 1, 1}));
  EXPECT_EQ(metrics_.AddCounter("tributary_reducer_poisoned_batches_total", "").value(), 1u);
  ASSERT_EQ(refusals.List().size(), 1u);
  EXPECT_EQ(refusals.List()[0].reason, "poisoned_batch");
  thread_.reset();
  EXPECT_EQ(metrics_.AddCounter("tributary_reducer_commit_failures_total", "").value(), 2u);
}

TEST_F(WriterThreadTest, RetriesAnIoErrorForAWhileAndThenRefusesTheBatch) {
  Start({.retry_min_ms = 1, .retry_max_ms = 2});
  {
    std::lock_guard lock(script_->mutex);
    script_->poisoned = {1};
    script_->poison = absl::AbortedError("a broken sector");
  }
  ASSERT_TRUE(thread_->TrySubmit(Batch(1)));
  ASSERT_TRUE(thread_->TrySubmit(Batch(2)));
  WaitForDone(2);
  EXPECT_EQ(refused_, std::vector<uint64_t>{1});
  EXPECT_GE(script_->attempts, 13) << "12 in a group, and one alone";
}

TEST_F(WriterThreadTest, RefusesMoreThanItsCaps) {
  StartBusy({.queue_batches_max = 3});
  for (uint64_t i = 2; i <= 4; ++i) EXPECT_TRUE(thread_->TrySubmit(Batch(i)));
  EXPECT_FALSE(thread_->HasRoom());
  EXPECT_FALSE(thread_->TrySubmit(Batch(5)));
  Block(false);
  WaitForDone(4);
  EXPECT_TRUE(thread_->HasRoom());

  Start({.queue_bytes_max = 1000});
  Block(true);
  RowBatch large = Batch(1);
  large.samples.resize(1000);
  EXPECT_TRUE(thread_->TrySubmit(std::move(large))) << "the first is let in, whatever its size";
  EXPECT_FALSE(thread_->TrySubmit(Batch(2)));
  Block(false);
}

TEST_F(WriterThreadTest, LookUpsAndBatchesTakeNoSpaceFromEachOther) {
  StartBusy({.queue_batches_max = 3});
  for (uint64_t i = 2; i <= 3; ++i) EXPECT_TRUE(thread_->TrySubmit(Batch(i)));
  for (size_t i = 0; i < kLookUpsMax; ++i) {
    SessionId id{};
    std::memcpy(id.data(), &i, sizeof(i));
    ASSERT_TRUE(thread_->TryFind(id)) << "as many nodes come back at once";
  }
  EXPECT_TRUE(thread_->TrySubmit(Batch(4)));
  EXPECT_FALSE(thread_->TrySubmit(Batch(5)));
  EXPECT_FALSE(thread_->TryFind(SessionId{1}) && thread_->TryFind(SessionId{2})) << "but no more";
  Block(false);
  WaitForDone(4);
}

TEST_F(WriterThreadTest, FindsASessionAfterTheSubmittedBatches) {
  Start({});
  Block(true);
  ASSERT_TRUE(thread_->TrySubmit(Batch(1)));
  ASSERT_TRUE(thread_->TryFind(SessionId{1}));
  ASSERT_TRUE(thread_->TryFind(SessionId{2}));
  Block(false);
  thread_->Stop();
  ASSERT_EQ(found_.size(), 2u);
  EXPECT_EQ(found_[0], std::make_tuple(1, uint64_t{77}, size_t{1}));
  EXPECT_EQ(found_[1], std::make_tuple(2, uint64_t{0}, size_t{1}));
}

TEST_F(WriterThreadTest, MaintenanceCallsAddUpToOne) {
  StartBusy({});
  for (int i = 0; i < 10; ++i) thread_->Maintain();
  Block(false);
  thread_->Stop();
  EXPECT_EQ(script_->maintained, 1);
}

TEST_F(WriterThreadTest, StopCommitsQueuedBatchesAndGivesUpOnAFullDisk) {
  Start({});
  for (uint64_t i = 1; i <= 20; ++i) ASSERT_TRUE(thread_->TrySubmit(Batch(i)));
  thread_->Stop();
  EXPECT_EQ(done_.size(), 20u);
  EXPECT_FALSE(thread_->TrySubmit(Batch(21)));

  Start({.retry_min_ms = 60'000, .retry_max_ms = 60'000});
  {
    std::lock_guard lock(script_->mutex);
    script_->failures = 1'000'000;
  }
  ASSERT_TRUE(thread_->TrySubmit(Batch(1)));
  WaitForAttempts(1);
  thread_->Stop();  // returns, although the disk stays full
  EXPECT_EQ(done_.size(), 20u);
}

}  // namespace
}  // namespace tributary::ingest
