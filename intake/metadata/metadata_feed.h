#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/container/node_hash_map.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "intake/metadata/packed_attributes.h"
#include "profile/metadata.h"

namespace tributary::intake {

// The entities (hosts, containers, pods and so on) that a process reports to its reducers: the latest state of each, in
// the order in which they changed. A reducer's session reads the feed with its own cursor: first a snapshot, then the
// changes. A session reads each state once, and does not read a state that was replaced before. The end of an entity is
// reported too. Ended entities are kept for `gone_keep_ns`, so that a session that was disconnected still learns of the
// end. A session that reads so slowly that it missed an end gets another snapshot. entities_max and bytes_max limit the
// memory. Entities beyond these limits are counted and not reported. On one thread.
class MetadataFeed {
 public:
  struct Options {
    size_t entities_max = 500'000;
    size_t bytes_max = 256u << 20;  // in memory, approximately
    int64_t gone_keep_ns = 3'600 * kNsPerSecond;
    size_t update_bytes_max = 256u << 10;  // of one message; one entity is always allowed
  };
  MetadataFeed(Options options, const Clock& clock, Metrics& metrics);
  ~MetadataFeed();

  // Cuts an entity that is over a limit (CutToLimits). An entity with the attributes that are already known changes
  // nothing.
  void Set(Entity entity);
  // Call it when the entity has ended. Does nothing if the entity is unknown.
  void Remove(EntityKind kind, std::string_view id, UnixNs at);
  // The caller has set everything that exists now: a snapshot may end. Until then the feed sends everything that is
  // set, and reducers keep the state that they knew before.
  void SetComplete();
  bool complete() const { return complete_; }

  // Calls `changed` when there may be something to read; not from inside Next. Unsubscribe takes the returned key.
  uint64_t Subscribe(std::function<void()> changed);
  void Unsubscribe(uint64_t key);

  struct Cursor {
    uint64_t change = 0;                // sent up to this change
    uint64_t first = 0;                 // the latest change when the snapshot began
    bool begun = false, ended = false;  // the snapshot
    bool missed = false;                // an end was forgotten before it was sent: everything is sent again
  };
  // Returns the next update and moves the cursor past it. nullopt: nothing to send until `changed`.
  std::optional<MetadataUpdate> Next(Cursor& cursor);

  size_t size() const { return entities_.size(); }
  size_t bytes() const { return bytes_; }
  // Unpacks the entity for the caller, because the feed stores entities packed.
  std::optional<Entity> Find(EntityKind kind, std::string_view id) const;

 private:
  struct Known {
    std::string attributes;  // packed
    UnixNs from;
    bool gone = false;
    uint64_t change = 0;
    size_t bytes = 0;
    MonotonicNs gone_since;
  };
  using Key = std::pair<EntityKind, std::string>;

  void Put(Key key, std::string attributes, UnixNs from, bool gone);
  Entity Unpack(const Key& key, const Known& known) const;
  void ForgetGone();
  void Changed();

  const Options options_;
  const Clock& clock_;
  using Entities = absl::node_hash_map<Key, Known>;
  AttributePacker packer_;
  Entities entities_;
  absl::btree_map<uint64_t, const Entities::value_type*> by_change_;
  std::list<std::pair<MonotonicNs, Key>> gone_;  // oldest first
  uint64_t last_change_ = 0;
  uint64_t last_forgotten_ = 0;  // the latest change of an ended entity that was forgotten
  size_t bytes_ = 0;
  bool complete_ = false;
  std::map<uint64_t, std::function<void()>> subscribers_;
  uint64_t last_subscriber_ = 0;
  Counter &turned_away_, &cut_;
};

}  // namespace tributary::intake
