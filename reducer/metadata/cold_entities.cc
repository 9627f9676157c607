#include "reducer/metadata/cold_entities.h"

#include <algorithm>

#include "base/status.h"

namespace tributary {

ColdEntities::ColdEntities(const Options& options, EntityStore* db, Counter& failures)
    : options_(options), db_(db), failures_(failures) {}

FoundEntity ColdEntities::Find(const MetadataSender& sender, EntityKind kind, std::string_view id, UnixNs at,
                               const FoundEntity& live) {
  if (db_ == nullptr) return live;
  const auto in = [&](Entry& entry) {
    if (entry.timeline.states().empty()) return live;
    entry.used = true;
    FoundEntity found = entry.timeline.Find(at);
    if (live.entity != nullptr) found.until = std::min(found.until, live.until);
    return found;
  };
  Entry entry{.key = {sender, {kind, std::string(id)}}, .bytes = sizeof(Entry)};
  std::unique_lock lock(mutex_);
  if (Entry* cached = FindCached(entry.key)) return in(*cached);
  const uint64_t forgotten = forgotten_;
  lock.unlock();
  absl::StatusOr<EntityStore::Row> row = db_->Find(sender, kind, id);
  if (!row.ok()) {
    failures_.Add();
    return live;
  }
  for (EntityTimeline::State& state : row->states) {
    entry.bytes += EntityBytes(*state.entity);
    entry.timeline.Restore(std::move(state));
  }
  FoundEntity found = in(entry);
  lock.lock();
  // The entity may have changed in the database since. Then the next look-up reads it again, and only the use is kept.
  if (forgotten == forgotten_) {
    Cache(std::move(entry));
  } else if (entry.used && uncached_uses_.size() < options_.entities_max) {
    uncached_uses_.insert(std::move(entry.key));
  }
  return found;
}

ColdEntities::Entry* ColdEntities::FindCached(const Key& key) {
  auto it = by_key_.find(key);
  if (it == by_key_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, it->second);
  return &entries_.front();
}

// Puts the entry at the front of entries_, unless another thread has cached the entity meanwhile.
void ColdEntities::Cache(Entry entry) {
  if (Entry* cached = FindCached(entry.key)) {
    cached->used |= entry.used;
    return;
  }
  bytes_ += entry.bytes;
  entries_.push_front(std::move(entry));
  by_key_.emplace(entries_.front().key, entries_.begin());
  DropOldest();
}

void ColdEntities::DropOldest() {
  while (entries_.size() > 1 && (entries_.size() > options_.entities_max || bytes_ > options_.bytes_max)) {
    by_key_.erase(entries_.back().key);
    bytes_ -= entries_.back().bytes;
    entries_.pop_back();
  }
}

void ColdEntities::Forget(const MetadataSender& sender, const std::pair<EntityKind, std::string>& key) {
  std::lock_guard lock(mutex_);
  ++forgotten_;
  auto it = by_key_.find(Key(sender, key));
  if (it == by_key_.end()) return;
  bytes_ -= it->second->bytes;
  entries_.erase(it->second);
  by_key_.erase(it);
}

void ColdEntities::TakeUsed(std::vector<EntityStore::Row>* rows) {
  std::lock_guard lock(mutex_);
  const auto take = [rows](const Key& of) {
    const auto& [sender, key] = of;
    rows->push_back({sender, key.first, key.second, true, false, {}});
  };
  for (Entry& entry : entries_) {
    if (std::exchange(entry.used, false)) take(entry.key);
  }
  for (const Key& key : std::exchange(uncached_uses_, {})) take(key);
}

}  // namespace tributary
