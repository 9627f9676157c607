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

// Stores the entities (hosts, containers, pods and so on) that a process reports to its reducers. For each entity it
// stores only the latest state. Each session with a reducer reads the feed with its own Cursor: first a snapshot of all
// entities, then the changes, oldest first. After an entity ended, the feed keeps it for `gone_keep_ns`. So a session
// that was disconnected in the meantime can still report the end. If a session missed an end, it reads a new snapshot.
// `entities_max` and `bytes_max` limit the memory. New entities and changes that would exceed these limits are counted
// and not reported. Not thread-safe.
class MetadataFeed {
 public:
  struct Options {
    size_t entities_max = 500'000;
    size_t bytes_max = 256u << 20;  // in memory, approximately
    int64_t gone_keep_ns = 3'600 * kNsPerSecond;
    size_t update_bytes_max = 256u << 10;  // limit for one message; a larger entity is sent alone
  };
  MetadataFeed(Options options, const Clock& clock, Metrics& metrics);
  ~MetadataFeed();

  // Adds an entity, or replaces its state. Cuts the entity if it is over a limit (CutToLimits). Does nothing if the
  // feed already has the entity with the same attributes and the same `gone`.
  void Set(Entity entity);
  // Reports that the entity ended at `at`. Does nothing if the entity is unknown or already reported as ended.
  void Remove(EntityKind kind, std::string_view id, UnixNs at);
  // Call it after Set was called for all entities that exist now. Before this call, no snapshot ends. So reducers keep
  // entities of earlier snapshots until then.
  void SetComplete();
  bool complete() const { return complete_; }

  // Calls `changed` when Next may have an update. Next itself never calls it. Returns the key for Unsubscribe.
  uint64_t Subscribe(std::function<void()> changed);
  void Unsubscribe(uint64_t key);

  struct Cursor {
    uint64_t change = 0;                // the last change that was read
    uint64_t first = 0;                 // the feed's latest change when the snapshot began
    bool begun = false, ended = false;  // whether the snapshot has begun, and ended
    bool missed = false;                // an ended entity was removed before its end was read: read all again
  };
  // Returns the next update and moves the cursor past it. Returns nullopt if there is no update: wait until `changed`
  // is called.
  std::optional<MetadataUpdate> Next(Cursor& cursor);

  size_t size() const { return entities_.size(); }
  size_t bytes() const { return bytes_; }
  // Returns an unpacked copy of the entity, or nullopt if it is unknown.
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
  uint64_t last_forgotten_ = 0;  // the latest change among the ended entities that were removed
  size_t bytes_ = 0;
  bool complete_ = false;
  std::map<uint64_t, std::function<void()>> subscribers_;
  uint64_t last_subscriber_ = 0;
  Counter &turned_away_, &cut_;
};

}  // namespace tributary::intake
