#include "intake/metadata_feed.h"

#include <utility>

#include "intake/metadata_message.h"

namespace tributary::intake {

MetadataFeed::MetadataFeed(Options options, const Clock& clock, Metrics& metrics)
    : options_(options),
      clock_(clock),
      turned_away_(metrics.AddCounter("tributary_intake_client_metadata_turned_away_total",
                                      "Hosts, containers, pods and the like that found no room in memory")),
      cut_(metrics.AddCounter("tributary_intake_client_metadata_cut_total",
                              "Hosts, containers, pods and the like of which only a part is told: too long")) {}

MetadataFeed::~MetadataFeed() = default;

void MetadataFeed::Set(Entity entity) {
  if (!CutToLimits(entity)) cut_.Add();
  Put(std::move(entity));
}

void MetadataFeed::Remove(EntityKind kind, std::string_view id, UnixNs at) {
  const auto it = entities_.find(Key(kind, id));
  if (it == entities_.end() || it->second.entity.gone) return;
  Entity entity = it->second.entity;
  entity.gone = true;
  entity.from = at;
  Put(std::move(entity));
}

void MetadataFeed::SetComplete() {
  if (!std::exchange(complete_, true)) Changed();
}

void MetadataFeed::Put(Entity entity) {
  ForgetGone();
  Key key(entity.kind, entity.id);
  const auto found = entities_.find(key);
  const bool is_new = found == entities_.end();
  if (!is_new) {
    const Entity& known = found->second.entity;
    if (known.gone == entity.gone && known.attributes == entity.attributes) return;
  }
  const size_t before = is_new ? 0 : found->second.bytes;
  const size_t bytes = 2 * entity.id.size() + BytesOf(entity) + entity.attributes.size() * sizeof(Attribute);
  if (bytes_ - before + bytes > options_.bytes_max || (is_new && entities_.size() >= options_.entities_max)) {
    return turned_away_.Add();
  }
  Known& known = is_new ? entities_[key] : found->second;
  if (known.change != 0) by_change_.erase(known.change);
  known.change = ++last_change_;
  bytes_ += bytes - known.bytes;
  known.bytes = bytes;
  if (entity.gone && !known.entity.gone) {
    known.gone_since = clock_.Monotonic();
    gone_.emplace_back(known.gone_since, key);
  }
  known.entity = std::move(entity);
  by_change_.emplace(last_change_, std::move(key));
  Changed();
}

void MetadataFeed::ForgetGone() {
  const int64_t now = clock_.Monotonic().value;
  while (!gone_.empty() && now - gone_.front().first.value >= options_.gone_keep_ns) {
    const auto& [since, key] = gone_.front();
    const auto it = entities_.find(key);
    // It may have come back since, and gone again.
    if (it != entities_.end() && it->second.entity.gone && it->second.gone_since == since) {
      by_change_.erase(it->second.change);
      bytes_ -= it->second.bytes;
      entities_.erase(it);
    }
    gone_.pop_front();
  }
}

uint64_t MetadataFeed::Subscribe(std::function<void()> changed) {
  subscribers_.emplace(++last_subscriber_, std::move(changed));
  return last_subscriber_;
}

void MetadataFeed::Unsubscribe(uint64_t key) { subscribers_.erase(key); }

void MetadataFeed::Changed() {
  for (const auto& [key, changed] : subscribers_) changed();
}

std::optional<MetadataUpdate> MetadataFeed::Next(Cursor& cursor) {
  MetadataUpdate update;
  update.begins_snapshot = !cursor.begun;
  size_t bytes = 0;
  auto next = by_change_.upper_bound(cursor.change);
  for (; next != by_change_.end() && update.entities.size() < kUpdateEntitiesMax; ++next) {
    const Known& known = entities_.at(next->second);
    const size_t more = BytesOf(known.entity);
    if (bytes != 0 && bytes + more > options_.update_bytes_max) break;
    bytes += more;
    update.entities.push_back(known.entity);
    cursor.change = next->first;
  }
  const bool all = next == by_change_.end();
  update.ends_snapshot = all && complete_ && !cursor.ended;
  if (update.entities.empty() && !update.ends_snapshot) return std::nullopt;
  cursor.begun = true;
  cursor.ended = cursor.ended || update.ends_snapshot;
  return update;
}

const Entity* MetadataFeed::Find(EntityKind kind, std::string_view id) const {
  const auto it = entities_.find(Key(kind, id));
  return it != entities_.end() ? &it->second.entity : nullptr;
}

}  // namespace tributary::intake
