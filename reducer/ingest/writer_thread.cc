#include "reducer/ingest/writer_thread.h"

#include <chrono>
#include <optional>

#include "base/log.h"
#include "base/status.h"
#include "reducer/ingest/queue_share.h"
#include "reducer/store/damage.h"

namespace tributary::ingest {
WriterThread::WriterThread(std::string name, std::unique_ptr<store::ShardWriter> writer, Options options,
                           Callbacks callbacks, const Clock& clock, Metrics& metrics)
    : name_(std::move(name)),
      writer_(std::move(writer)),
      options_(options),
      callbacks_(std::move(callbacks)),
      clock_(clock),
      depth_(metrics.AddGauge("tributary_reducer_queue_batches",
                              "Batches of all shards that wait to be committed to the store, or are being committed")),
      commits_(
          name_, *writer_,
          {.retry_min_ms = options.retry_min_ms, .retry_max_ms = options.retry_max_ms, .refusals = options.refusals},
          [this](int64_t ms) { return Pause(ms); }, clock, metrics),
      // Look-ups and maintenance have space even if batches have taken all of theirs.
      queue_(options.queue_batches_max + kLookUpsMax + 1),
      thread_([this] { Run(); }) {}

WriterThread::~WriterThread() { Stop(); }

bool WriterThread::HasRoom() const {
  return queued_batches_.load() < options_.queue_batches_max && queued_bytes_.load() < options_.queue_bytes_max;
}

bool WriterThread::TrySubmit(RowBatch batch) {
  if (!HasRoom()) return false;
  const size_t bytes = MemoryOf(batch);
  queued_bytes_.fetch_add(bytes);
  queued_batches_.fetch_add(1);
  depth_.Add(1);
  if (queue_.TryPush(Job(std::move(batch)))) return true;
  queued_bytes_.fetch_sub(bytes);
  queued_batches_.fetch_sub(1);
  depth_.Add(-1);
  return false;
}

bool WriterThread::TryFind(const SessionId& id) { return queue_.TryPush(Job(id)); }

void WriterThread::Maintain() {
  if (maintenance_queued_.exchange(true)) return;
  if (!queue_.TryPush(Job(MaintainJob{}))) maintenance_queued_.store(false);
}

void WriterThread::Stop() {
  {
    std::lock_guard lock(stop_mutex_);
    stopping_ = true;
  }
  stop_changed_.notify_all();
  queue_.Close();
  if (thread_.joinable()) thread_.join();
}

bool WriterThread::Pause(int64_t ms) {
  std::unique_lock lock(stop_mutex_);
  return !stop_changed_.wait_for(lock, std::chrono::milliseconds(ms), [&] { return stopping_; });
}

void WriterThread::Run() {
  std::optional<Job> job = queue_.Pop();
  while (job.has_value()) {
    if (auto* id = std::get_if<SessionId>(&*job)) {
      Find(*id);
      job = queue_.Pop();
    } else if (std::holds_alternative<MaintainJob>(*job)) {
      RunMaintenance();
      job = queue_.Pop();
    } else {
      std::vector<RowBatch> group;
      size_t bytes = 0;
      while (job.has_value() && std::holds_alternative<RowBatch>(*job)) {
        group.push_back(std::get<RowBatch>(std::move(*job)));
        bytes += MemoryOf(group.back());
        job = std::nullopt;
        if (group.size() >= options_.group_batches_max || bytes >= options_.group_bytes_max) break;
        job = queue_.TryPop();
      }
      queued_batches_.fetch_sub(group.size());
      CommitGroup(std::move(group), bytes);
      if (!job.has_value()) job = queue_.Pop();
    }
  }
}

void WriterThread::CommitGroup(std::vector<RowBatch> group, size_t bytes) {
  std::optional<std::vector<CommittedBatch>> done = commits_.Commit(group);
  // This comes before the callback, because the callback resumes the sessions that were held back.
  queued_bytes_.fetch_sub(bytes);
  depth_.Add(-static_cast<int64_t>(group.size()));
  if (done) callbacks_.committed(*std::move(done));
}

void WriterThread::Find(const SessionId& id) {
  absl::StatusOr<store::ShardWriter::SessionState> state = writer_->FindSession(id);
  if (state.ok()) {
    callbacks_.found(id, state->durable_sequence);
  } else if (absl::IsNotFound(state.status())) {
    callbacks_.found(id, uint64_t{0});
  } else {
    callbacks_.found(id, state.status());
  }
}

void WriterThread::RunMaintenance() {
  maintenance_queued_.store(false);
  absl::Status status = writer_->Maintain(clock_.Unix());
  if (!status.ok() && !maintenance_failed_)
    LogWarning("{}: maintenance failed: {}", name_, Message(store::AdviseOnDamage(status)));
  maintenance_failed_ = !status.ok();
}

}  // namespace tributary::ingest
