#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "base/bounded_queue.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "reducer/ingest/batch_writer.h"
#include "reducer/ingest/group_commit.h"
#include "reducer/store/store.h"

namespace tributary::ingest {

// The store-writer thread of a shard. It commits the waiting batches in groups, and reports the results. If a commit
// fails because of a condition that may pass (mostly a full disk), the thread retries the commit with growing pauses,
// until it succeeds or Stop is called. Until then nothing is acknowledged, and when the queue is full, the sessions
// stop reading. A batch that can never be committed is refused (group_commit.h).
class WriterThread final : public BatchWriter {
 public:
  struct Options {
    size_t queue_batches_max = 1024;
    size_t queue_bytes_max = 64u << 20;  // decoded size
    size_t group_batches_max = 256;
    size_t group_bytes_max = 16u << 20;
    int64_t retry_min_ms = 100, retry_max_ms = 5'000;
    Refusals* refusals = nullptr;  // as in GroupCommit::Options
  };
  // The callbacks run on the writer's thread. They must not block.
  struct Callbacks {
    std::function<void(std::vector<CommittedBatch>)> committed;
    // `durable_sequence`: the batches of the session up to this sequence number are durable. It is 0 for an unknown
    // session.
    std::function<void(const SessionId&, absl::StatusOr<uint64_t> durable_sequence)> found;
  };

  // `name` appears in log messages. `clock` and `metrics` must outlive the WriterThread.
  WriterThread(std::string name, std::unique_ptr<store::ShardWriter> writer, Options options, Callbacks callbacks,
               const Clock& clock, Metrics& metrics);
  ~WriterThread();  // Stop

  // BatchWriter. Call these methods always on the same thread. Results arrive in the callbacks above.
  bool HasRoom() const override;
  bool TrySubmit(RowBatch batch) override;
  bool TryFind(const SessionId& id) override;
  void Maintain() override;

  // Commits the queued batches, then ends the thread. A commit that fails now is not retried. Its batches are not lost:
  // they were not acknowledged, so the collectors still have them.
  void Stop();

 private:
  struct MaintainJob {};
  using Job = std::variant<RowBatch, SessionId, MaintainJob>;

  void Run();
  void CommitGroup(std::vector<RowBatch> group, size_t bytes);
  void Find(const SessionId& id);
  void RunMaintenance();
  bool Pause(int64_t ms);  // returns false if stopping

  const std::string name_;
  const std::unique_ptr<store::ShardWriter> writer_;
  const Options options_;
  const Callbacks callbacks_;
  const Clock& clock_;
  Gauge& depth_;
  GroupCommit commits_;
  BoundedQueue<Job> queue_;
  std::atomic<size_t> queued_batches_{0};  // without the batches that are being committed
  std::atomic<size_t> queued_bytes_{0};    // with the batches that are being committed
  std::atomic<bool> maintenance_queued_{false};
  bool maintenance_failed_ = false;  // a repeated failure is not logged again
  std::mutex stop_mutex_;
  std::condition_variable stop_changed_;
  bool stopping_ = false;  // guarded by stop_mutex_
  std::thread thread_;
};

}  // namespace tributary::ingest
