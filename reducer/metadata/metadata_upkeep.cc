// What MetadataStore does on its own thread: the database, and what memory may forget.

#include <algorithm>
#include <chrono>

#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "reducer/metadata/metadata_store.h"

namespace tributary {
namespace {

constexpr int64_t kFlushNs = kNsPerSecond;
constexpr int64_t kMaintainNs = 10 * kNsPerSecond;
// Of entities: the lock is held for as long as it takes to copy their pointers.
constexpr size_t kSavedAtOnceMax = 4'096;

}  // namespace

void MetadataStore::Start(std::function<void()> mark_used) {
  mark_used_ = std::move(mark_used);
  thread_ = std::thread([this] { Run(); });
}

void MetadataStore::Stop() {
  {
    std::lock_guard lock(thread_mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void MetadataStore::Run() {
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

std::vector<MetadataDb::Row> MetadataStore::TakeDirty(std::vector<std::pair<Told*, Key>>* taken) {
  std::vector<MetadataDb::Row> rows;
  std::unique_lock lock(mutex_);
  const size_t count = std::min(dirty_.size(), kSavedAtOnceMax);
  taken->assign(std::make_move_iterator(dirty_.begin()),
                std::make_move_iterator(dirty_.begin() + static_cast<ptrdiff_t>(count)));
  dirty_.erase(dirty_.begin(), dirty_.begin() + static_cast<ptrdiff_t>(count));
  for (const auto& [told, key] : *taken) {
    auto it = told->records.find(key);
    if (it == told->records.end()) continue;
    Record& record = *it->second;
    record.dirty = false;
    record.used_saved = record.used;
    rows.push_back(
        {told->teller, key.first, key.second, record.used_saved, record.ended_unseen, record.timeline.states()});
  }
  return rows;
}

void MetadataStore::Flush() {
  std::lock_guard one(flush_mutex_);
  if (db_ == nullptr) {
    std::unique_lock lock(mutex_);
    for (const auto& [told, key] : dirty_) {
      if (auto it = told->records.find(key); it != told->records.end()) it->second->dirty = false;
    }
    dirty_.clear();
    return;
  }
  std::vector<std::pair<Told*, Key>> taken;
  for (;;) {
    const std::vector<MetadataDb::Row> rows = TakeDirty(&taken);
    if (rows.empty()) break;
    if (absl::Status saved = db_->Save(rows); !saved.ok()) {
      LogFailure("write", saved);
      std::unique_lock lock(mutex_);
      for (auto& [told, key] : taken) {
        auto it = told->records.find(key);
        if (it == told->records.end() || it->second->dirty) continue;
        it->second->dirty = true;
        dirty_.emplace_back(told, std::move(key));
      }
      return;
    }
  }
  std::vector<std::pair<Told*, Key>> trimmed;
  {
    std::unique_lock lock(mutex_);
    trimmed.swap(trimmed_);
  }
  for (const auto& [told, key] : trimmed) ForgetCold(told->teller, key);
}

// Rows without states: that they were joined with samples.
std::vector<MetadataDb::Row> MetadataStore::CollectUsed() {
  std::vector<MetadataDb::Row> rows;
  {
    std::lock_guard lock(cold_mutex_);
    for (Cold& cold : cold_) {
      if (!std::exchange(cold.used, false)) continue;
      rows.push_back({cold.teller, cold.key.first, cold.key.second, true, false, {}});
    }
  }
  std::unique_lock lock(mutex_);
  for (const auto& [teller, told] : tellers_) {
    for (auto& [key, record] : told->records) {
      if (record->dirty || record->used_saved || !record->used) continue;
      record->used_saved = true;
      rows.push_back({teller, key.first, key.second, true, false, {}});
    }
  }
  return rows;
}

void MetadataStore::Maintain() {
  std::lock_guard one(flush_mutex_);
  const UnixNs now = clock_.Unix();
  if (db_ != nullptr) {
    const std::vector<MetadataDb::Row> used = CollectUsed();
    if (!used.empty()) {
      if (absl::Status saved = db_->Save(used); !saved.ok()) LogFailure("write", saved);
    }
    for (int piece = 0; piece < 16; ++piece) {
      absl::StatusOr<bool> more =
          db_->Expire(UnixNs{now.value - options_.keep_ns}, UnixNs{now.value - options_.keep_used_ns});
      if (!more.ok()) LogFailure("clean", more.status());
      if (!more.ok() || !*more) break;
    }
  }
  ForgetAway(now);
  DropGone(now);
}

bool MetadataStore::IsAway(const Told& told, UnixNs now) const {
  return told.connections == 0 && told.last_heard.value < now.value - options_.away_ns;
}

// What lived when a node or a watcher was heard of last has ended then. Returns those of whom nothing is in memory.
std::vector<MetadataTeller> MetadataStore::EndAway(UnixNs now) {
  std::vector<MetadataTeller> empty;
  std::unique_lock lock(mutex_);
  for (const auto& [teller, told] : tellers_) {
    if (!IsAway(*told, now)) continue;
    if (told->records.empty()) empty.push_back(teller);
    for (auto& [key, record] : told->records) {
      if (!record->timeline.End(told->last_heard, now)) continue;
      Changed(*told, key, *record);
      gone_.push_back({told.get(), key, now});
    }
  }
  return empty;
}

void MetadataStore::ForgetAway(UnixNs now) {
  std::vector<MetadataTeller> leaving = EndAway(now);
  // The history of a cluster is found by its watcher; a node is known to whoever asks.
  std::erase_if(leaving, [this](const MetadataTeller& teller) {
    if (db_ == nullptr || !teller.is_cluster) return false;
    const absl::StatusOr<bool> has_history = db_->Knows(teller);
    if (!has_history.ok()) LogFailure("read", has_history.status());
    return !has_history.ok() || *has_history;
  });
  if (leaving.empty()) return;
  absl::flat_hash_set<const Told*> left;
  std::unique_lock lock(mutex_);
  for (const MetadataTeller& teller : leaving) {
    const auto it = tellers_.find(teller);
    if (it != tellers_.end() && IsAway(*it->second, now) && it->second->records.empty()) left.insert(it->second.get());
  }
  std::erase_if(gone_, [&left](const Gone& gone) { return left.contains(gone.told); });
  for (auto* keys : {&dirty_, &trimmed_}) {
    std::erase_if(*keys, [&left](const auto& key) { return left.contains(key.first); });
  }
  std::erase_if(clusters_, [&left](const Told* told) { return left.contains(told); });
  absl::erase_if(tellers_, [&left](const auto& teller) { return left.contains(teller.second.get()); });
  tellers_gauge_.Set(static_cast<int64_t>(tellers_.size()));
}

void MetadataStore::DropGone(UnixNs now) {
  const int64_t keep_ns = db_ != nullptr ? options_.gone_in_memory_ns : options_.keep_ns;
  std::vector<std::pair<Told*, Key>> leaving;
  {
    std::unique_lock lock(mutex_);
    while (!gone_.empty() && gone_.front().heard.value < now.value - keep_ns) {
      Gone& front = gone_.front();
      auto it = front.told->records.find(front.key);
      const bool is_gone = it != front.told->records.end() && it->second->timeline.gone();
      if (is_gone && it->second->dirty) break;  // not saved yet: the disk is full, or slow
      if (is_gone) leaving.emplace_back(front.told, std::move(front.key));
      gone_.pop_front();
    }
  }
  // First the cache, which may know of less than the database has by now; then memory.
  for (const auto& [told, key] : leaving) ForgetCold(told->teller, key);
  std::vector<std::unique_ptr<Record>> left;  // destroyed without the lock
  std::unique_lock lock(mutex_);
  for (auto& [told, key] : leaving) {
    auto it = told->records.find(key);
    if (it == told->records.end()) continue;
    if (!it->second->timeline.gone() || it->second->dirty) continue;  // it came back meanwhile
    if (db_ != nullptr && it->second->used && !it->second->used_saved) {
      gone_.push_back({told, key, now});
      continue;
    }
    bytes_ -= it->second->bytes;
    --entities_;
    left.push_back(std::move(it->second));
    told->records.erase(it);
  }
  entities_gauge_.Set(static_cast<int64_t>(entities_));
  bytes_gauge_.Set(static_cast<int64_t>(bytes_));
}

void MetadataStore::LogFailure(std::string_view what, const absl::Status& status) {
  failures_.Add();
  uint64_t held = 0;
  if (failure_log_.Allow(clock_.Monotonic(), &held)) {
    LogWarning("metadata cannot {}, will try again path={} error=\"{}\" suppressed={}", what, options_.path,
               Message(status), held);
  }
}

}  // namespace tributary
