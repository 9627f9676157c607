#include "intake/metadata/metadata_feed.h"

#include <algorithm>
#include <utility>

#include "intake/metadata/metadata_message.h"

namespace tributary::intake {
namespace {

// The memory of one thing in addition to its id and its attributes: the entries in both tables.
constexpr size_t kOverheadBytes = 256;

}  // namespace

MetadataFeed::MetadataFeed(Options options, const Clock& clock, Metrics& metrics)
    : options_(options),
      clock_(clock),
      turned_away_(metrics.AddCounter("tributary_intake_client_metadata_turned_away_total",
                                      "New or changed entities (hosts, containers, pods and others) that were not "
                                      "sent, because the memory for entities was full")),
      cut_(metrics.AddCounter("tributary_intake_client_metadata_cut_total",
                              "Entities (hosts, containers, pods and others) that were not sent in full, because they "
                              "had too many or too long attributes")) {}

MetadataFeed::~MetadataFeed() = default;

void MetadataFeed::Set(Entity entity) {
  if (!CutToLimits(entity)) cut_.Add();
  Put({entity.kind, std::move(entity.id)}, packer_.Pack(entity.attributes), entity.from, entity.gone);
}

void MetadataFeed::Remove(EntityKind kind, std::string_view id, UnixNs at) {
  const auto it = entities_.find(Key(kind, id));
  if (it == entities_.end() || it->second.gone) return;
  Put(it->first, it->second.attributes, at, /*gone=*/true);
}

void MetadataFeed::SetComplete() {
  if (!std::exchange(complete_, true)) Changed();
}

void MetadataFeed::Put(Key key, std::string attributes, UnixNs from, bool gone) {
  ForgetGone();
  const auto found = entities_.find(key);
  const bool is_new = found == entities_.end();
  if (!is_new && found->second.gone == gone && found->second.attributes == attributes) return;
  const size_t before = is_new ? 0 : found->second.bytes;
  const size_t bytes = kOverheadBytes + key.second.size() + attributes.size();
  if (bytes_ - before + bytes > options_.bytes_max || (is_new && entities_.size() >= options_.entities_max)) {
    return turned_away_.Add();
  }
  Entities::value_type& entry = is_new ? *entities_.try_emplace(std::move(key)).first : *found;
  Known& known = entry.second;
  if (known.change != 0) by_change_.erase(known.change);
  known.change = ++last_change_;
  bytes_ += bytes - known.bytes;
  known.bytes = bytes;
  if (gone && !known.gone) {
    known.gone_since = clock_.Monotonic();
    gone_.emplace_back(known.gone_since, entry.first);
  }
  known.attributes = std::move(attributes);
  known.from = from;
  known.gone = gone;
  by_change_.emplace(last_change_, &entry);
  Changed();
}

Entity MetadataFeed::Unpack(const Key& key, const Known& known) const {
  return {.kind = key.first,
          .id = key.second,
          .from = known.from,
          .gone = known.gone,
          .attributes = packer_.Unpack(known.attributes)};
}

void MetadataFeed::ForgetGone() {
  const int64_t now = clock_.Monotonic().value;
  while (!gone_.empty() && now - gone_.front().first.value >= options_.gone_keep_ns) {
    const auto& [since, key] = gone_.front();
    const auto it = entities_.find(key);
    // The thing may have come back since, and gone again.
    if (it != entities_.end() && it->second.gone && it->second.gone_since == since) {
      last_forgotten_ = std::max(last_forgotten_, it->second.change);
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
  if (cursor.begun && last_forgotten_ > std::max(cursor.first, cursor.change)) cursor.missed = true;
  if (cursor.missed && cursor.ended) cursor = {};
  if (!cursor.begun) cursor.first = last_change_;
  MetadataUpdate update;
  update.begins_snapshot = !cursor.begun;
  size_t bytes = 0;
  auto next = by_change_.upper_bound(cursor.change);
  for (; next != by_change_.end() && update.entities.size() < kUpdateEntitiesMax; ++next) {
    Entity entity = Unpack(next->second->first, next->second->second);
    const size_t more = BytesOf(entity);
    if (bytes != 0 && bytes + more > options_.update_bytes_max) break;
    bytes += more;
    update.entities.push_back(std::move(entity));
    cursor.change = next->first;
  }
  const bool all = next == by_change_.end();
  update.ends_snapshot = all && complete_ && !cursor.ended;
  if (update.entities.empty() && !update.ends_snapshot) return std::nullopt;
  cursor.begun = true;
  cursor.ended = cursor.ended || update.ends_snapshot;
  return update;
}

std::optional<Entity> MetadataFeed::Find(EntityKind kind, std::string_view id) const {
  const auto it = entities_.find(Key(kind, id));
  if (it == entities_.end()) return std::nullopt;
  return Unpack(it->first, it->second);
}

}  // namespace tributary::intake
