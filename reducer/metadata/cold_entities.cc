#include "reducer/metadata/cold_entities.h"

#include <algorithm>

#include "base/status.h"

namespace tributary {

ColdEntities::ColdEntities(const Options& options, EntityStore* db, Counter& failures)
    : options_(options), db_(db), failures_(failures) {}

FoundEntity ColdEntities::Find(const MetadataSender& sender, EntityKind kind, std::string_view id, UnixNs at,
                               const FoundEntity& live) {
  if (db_ == nullptr) return live;
  Key key(sender, {kind, std::string(id)});
  std::lock_guard lock(mutex_);
  if (auto it = by_key_.find(key); it != by_key_.end()) {
    entries_.splice(entries_.begin(), entries_, it->second);
  } else if (!Read(std::move(key)).ok()) {
    failures_.Add();
    return live;
  }
  Entry& entry = entries_.front();
  if (entry.timeline.states().empty()) return live;
  entry.used = true;
  FoundEntity found = entry.timeline.Find(at);
  if (live.entity != nullptr) found.until = std::min(found.until, live.until);
  return found;
}

// Reads the entity from the database and puts it at the front of entries_.
absl::Status ColdEntities::Read(Key key) {
  ASSIGN_OR_RETURN(EntityStore::Row row, db_->Find(key.first, key.second.first, key.second.second));
  Entry& entry = entries_.emplace_front();
  entry.key = key;
  entry.bytes = sizeof(Entry);
  for (EntityTimeline::State& state : row.states) {
    entry.bytes += EntityBytes(*state.entity);
    entry.timeline.Restore(std::move(state));
  }
  bytes_ += entry.bytes;
  by_key_.emplace(std::move(key), entries_.begin());
  DropOldest();
  return absl::OkStatus();
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
  auto it = by_key_.find(Key(sender, key));
  if (it == by_key_.end()) return;
  bytes_ -= it->second->bytes;
  entries_.erase(it->second);
  by_key_.erase(it);
}

void ColdEntities::TakeUsed(std::vector<EntityStore::Row>* rows) {
  std::lock_guard lock(mutex_);
  for (Entry& entry : entries_) {
    if (!std::exchange(entry.used, false)) continue;
    const auto& [sender, key] = entry.key;
    rows->push_back({sender, key.first, key.second, true, false, {}});
  }
}

}  // namespace tributary
