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

// The hosts, containers, pods and so on that a process reports to its reducers: the latest state of each thing, in the
// order in which they changed. A reducer's session reads the feed with its own cursor: first a snapshot, then the
// changes. Each state is read once, and states that were replaced in between are left out. Things that have gone are
// reported too, and kept for `gone_keep_ns`, so that a session that was away learns of the end. A session that reads so
// slowly that it missed an end gets another snapshot. entities_max and bytes_max limit the memory. Things beyond these
// limits are counted and not reported. On one thread.
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

  // Cuts entities that are over a limit of profile/metadata.h: attributes with the longest values first. An entity with
  // the attributes that are already known changes nothing.
  void Set(Entity entity);
  // The thing has ended. Does nothing if it is unknown.
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
  // Builds the entity for the caller: the feed keeps things packed.
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
  uint64_t last_forgotten_ = 0;  // the latest change of a thing that was forgotten after it had gone
  size_t bytes_ = 0;
  bool complete_ = false;
  std::map<uint64_t, std::function<void()>> subscribers_;
  uint64_t last_subscriber_ = 0;
  Counter &turned_away_, &cut_;
};

}  // namespace tributary::intake
