#include "reducer/metadata/metadata_upkeep.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "base/status.h"

namespace tributary {
namespace {

constexpr int64_t kFlushNs = kNsPerSecond;
constexpr int64_t kMaintainNs = 10 * kNsPerSecond;
// Entities to save at once. The lock of LiveEntities is held while their pointers are copied.
constexpr size_t kSavedAtOnceMax = 4'096;
// The observer also sees the stored entities that ended within this time.
constexpr int64_t kObservedEndsNs = 7 * kNsPerDay;

}  // namespace

MetadataUpkeep::MetadataUpkeep(Options options, EntityStore* db, LiveEntities& live, ColdEntities& cold,
                               const Clock& clock, Metrics& metrics, Counter& failures)
    : options_(std::move(options)),
      db_(db),
      live_(live),
      cold_(cold),
      clock_(clock),
      failures_(failures),
      retry_("metadata", clock, metrics, failures) {}

MetadataUpkeep::~MetadataUpkeep() {
  Stop();
  std::lock_guard one(work_mutex_);
  if (db_ != nullptr) SaveChanges();  // the last attempt, even during a pause
}

void MetadataUpkeep::Load(AttributeNames& names) {
  if (db_ == nullptr) return;
  std::lock_guard one(work_mutex_);
  const UnixNs now = clock_.Unix();
  absl::Status loaded = db_->Load(UnixNs{now.value - options_.gone_in_memory_ns}, [&](const EntityStore::Row& row) {
    if (!live_.Restore(row, now)) return;
    for (const EntityTimeline::State& state : row.states) names.Learn(state.entity->attributes);
  });
  if (loaded.ok() && live_.is_observed()) {
    loaded = db_->Load(UnixNs{now.value - kObservedEndsNs}, [&](const EntityStore::Row& row) {
      if (row.states.back().to != kTimeEnd) live_.ObserveEnd(row);
    });
    live_.ObserveLoaded();
  }
  absl::StatusOr<std::vector<MetadataSender>> clusters = db_->Clusters();
  if (clusters.ok()) {
    for (const MetadataSender& cluster : *clusters) live_.AddSender(cluster, now);
  }
  if (!loaded.ok()) LogFailure("read", loaded);
  const LiveEntities::Totals totals = live_.totals();
  if (totals.entities > 0) LogInfo("stored metadata read entities={} bytes={}", totals.entities, totals.bytes);
}

void MetadataUpkeep::Start(std::function<void()> mark_used) {
  mark_used_ = std::move(mark_used);
  thread_ = std::thread([this] { Run(); });
}

void MetadataUpkeep::Stop() {
  {
    std::lock_guard lock(thread_mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void MetadataUpkeep::Run() {
  int64_t maintained = clock_.Monotonic().value;
  int64_t marked = maintained;
  std::unique_lock lock(thread_mutex_);
  while (!stopping_) {
    changed_.wait_for(lock, std::chrono::nanoseconds(kFlushNs), [this] { return stopping_; });
    if (stopping_) return;
    lock.unlock();
    Flush();
    const int64_t now = clock_.Monotonic().value;
    if (mark_used_ && now - marked >= std::min(kMarkUsedNs, options_.keep_ns / 4)) {
      marked = now;
      mark_used_();
    }
    if (now - maintained >= kMaintainNs) {
      maintained = now;
      Maintain();
    }
    lock.lock();
  }
}

void MetadataUpkeep::Flush() {
  std::lock_guard one(work_mutex_);
  if (db_ == nullptr) {
    live_.DiscardChanges();
    return;
  }
  if (retry_.MayTry()) SaveChanges();
}

void MetadataUpkeep::SaveChanges() {
  std::vector<LiveEntities::Ref> taken;
  for (;;) {
    const std::vector<EntityStore::Row> rows = live_.TakeChanges(kSavedAtOnceMax, &taken);
    if (rows.empty()) break;
    const absl::Status saved = db_->Save(rows);
    retry_.Record(saved);
    if (!saved.ok()) {
      live_.GiveBack(std::move(taken));
      return;
    }
  }
  for (const LiveEntities::Ref& trimmed : live_.TakeTrimmed()) cold_.Forget(trimmed.sender(), trimmed.key());
}

void MetadataUpkeep::Maintain() {
  std::lock_guard one(work_mutex_);
  const UnixNs now = clock_.Unix();
  if (db_ != nullptr && retry_.MayTry()) {
    SaveUsed();
    if (used_.empty()) Expire(now);  // a used entity is kept longer
  }
  ForgetAway(now);
  DropGone(now);
}

// Saves which entities were joined with samples.
void MetadataUpkeep::SaveUsed() {
  if (used_.empty()) {
    cold_.TakeUsed(&used_);
    live_.TakeUsed(&used_);
  }
  if (used_.empty()) return;
  const absl::Status saved = db_->Save(used_);
  retry_.Record(saved);
  if (saved.ok()) used_.clear();
}

void MetadataUpkeep::Expire(UnixNs now) {
  for (int piece = 0; piece < 16; ++piece) {
    absl::StatusOr<bool> more =
        db_->Expire(UnixNs{now.value - options_.keep_ns}, UnixNs{now.value - options_.keep_used_ns});
    if (!more.ok()) LogFailure("clean", more.status());
    if (!more.ok() || !*more) break;
  }
}

void MetadataUpkeep::ForgetAway(UnixNs now) {
  std::vector<MetadataSender> leaving = live_.EndAway(now);
  // A cluster's history is only found while its watcher is known. For a node, every caller of Find knows the node.
  std::erase_if(leaving, [this](const MetadataSender& sender) {
    if (db_ == nullptr || !sender.is_cluster) return false;
    const absl::StatusOr<bool> has_history = db_->Knows(sender);
    if (!has_history.ok()) LogFailure("read", has_history.status());
    return !has_history.ok() || *has_history;
  });
  if (!leaving.empty()) live_.ForgetSenders(leaving, now);
}

void MetadataUpkeep::DropGone(UnixNs now) {
  std::vector<LiveEntities::Ref> leaving = live_.TakeGone(now);
  // Drop from the cache first, because it may be older than the database; then from memory.
  for (const LiveEntities::Ref& gone : leaving) cold_.Forget(gone.sender(), gone.key());
  live_.DropGone(std::move(leaving), now);
}

void MetadataUpkeep::LogFailure(std::string_view operation, const absl::Status& status) {
  failures_.Add();
  uint64_t held = 0;
  if (failure_log_.Allow(clock_.Monotonic(), &held)) {
    LogWarning("cannot {} metadata.db, will try again error=\"{}\" suppressed={}", operation, Message(status), held);
  }
}

}  // namespace tributary
