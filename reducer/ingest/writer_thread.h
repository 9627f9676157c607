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
#include "reducer/store/store.h"

namespace tributary::ingest {

// The one store-writer thread of a shard. It gathers the waiting batches, commits them as a group, and reports the
// result. If a commit fails (mostly because of a full disk), the thread retries with growing pauses until the commit
// succeeds or the thread is stopped. Meanwhile the queue fills, the sessions are held back, and nothing is
// acknowledged.
class WriterThread final : public BatchWriter {
 public:
  struct Options {
    size_t queue_batches_max = 1024;
    size_t queue_bytes_max = 64u << 20;  // decoded size
    size_t group_batches_max = 256;
    size_t group_bytes_max = 16u << 20;
    int64_t retry_min_ms = 100, retry_max_ms = 5'000;
  };
  // Called on the writer's thread. They must not block.
  struct Callbacks {
    std::function<void(std::vector<CommittedBatch>)> committed;
    // `durable_sequence`: batches up to this one are durable; 0 for an unknown session.
    std::function<void(const SessionId&, absl::StatusOr<uint64_t> durable_sequence)> found;
  };

  // `name` is for log lines. `clock` and `metrics` must outlive the object.
  WriterThread(std::string name, std::unique_ptr<store::ShardWriter> writer, Options options, Callbacks callbacks,
               const Clock& clock, Metrics& metrics);
  ~WriterThread();  // Stop

  // BatchWriter. Call these from any one thread. The callbacks above return the answers.
  bool HasRoom() const override;
  bool TrySubmit(RowBatch batch) override;
  bool TryFind(const SessionId& id) override;
  void Maintain() override;

  // Commits the queued batches, then ends the thread. A commit that fails now is given up: its batches were never
  // acknowledged, so their senders still hold them.
  void Stop();

 private:
  struct MaintainJob {};
  using Job = std::variant<RowBatch, SessionId, MaintainJob>;

  void Run();
  void CommitGroup(std::vector<RowBatch> group, size_t bytes);
  absl::StatusOr<std::vector<store::ShardWriter::Outcome>> CommitUntilDurable(const std::vector<RowBatch>& group);
  void Find(const SessionId& id);
  void RunMaintenance();
  bool Pause(int64_t ms);  // returns false if stopping

  const std::string name_;
  const std::unique_ptr<store::ShardWriter> writer_;
  const Options options_;
  const Callbacks callbacks_;
  const Clock& clock_;
  Gauge& depth_;
  Counter& failures_;
  BoundedQueue<Job> queue_;
  std::atomic<size_t> queued_batches_{0};  // without the batches that are being committed
  std::atomic<size_t> queued_bytes_{0};    // with the batches that are being committed
  std::atomic<bool> maintenance_queued_{false};
  bool maintenance_failed_ = false;  // logged once until it works again
  std::mutex stop_mutex_;
  std::condition_variable stop_changed_;
  bool stopping_ = false;  // guarded by stop_mutex_
  std::thread thread_;
};

}  // namespace tributary::ingest
