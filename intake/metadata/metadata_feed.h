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

// What a process knows of hosts, containers, pods, as its reducers are to be told it: the latest state of each thing,
// in the order in which they changed. A reducer's session reads it with a cursor of its own: first a snapshot, then
// what changed, each state once, those in between left out. What has gone is told, too, and kept for `gone_keep_ns`,
// so that who was away hears of it; who reads so slowly that an end was missed gets another snapshot. Memory is bounded
// by entities_max and bytes_max; what finds no room is counted and not told. On one thread.
class MetadataFeed {
 public:
  struct Options {
    size_t entities_max = 500'000;
    size_t bytes_max = 256u << 20;  // in memory, about
    int64_t gone_keep_ns = 3'600 * kNsPerSecond;
    size_t update_bytes_max = 256u << 10;  // of one message; one entity may always be
  };
  MetadataFeed(Options options, const Clock& clock, Metrics& metrics);
  ~MetadataFeed();

  // Entities over a limit of profile/metadata.h are cut: attributes with the longest values first. One that says what
  // is known already changes nothing.
  void Set(Entity entity);
  // It has ended; nothing when it is not known.
  void Remove(EntityKind kind, std::string_view id, UnixNs at);
  // Everything there is at present is known: a snapshot may end. Until then what is set is told, and what reducers know
  // of earlier stays.
  void SetComplete();
  bool complete() const { return complete_; }

  // Calls back when there may be something to read; not from inside Next. The key takes it back.
  uint64_t Subscribe(std::function<void()> changed);
  void Unsubscribe(uint64_t key);

  struct Cursor {
    uint64_t change = 0;                // told up to here
    uint64_t first = 0;                 // the latest change when the snapshot began
    bool begun = false, ended = false;  // the snapshot
    bool missed = false;                // an end that was forgotten before it was told: all is told anew
  };
  // What is to be told next, moving the cursor behind it; none: nothing until `changed`.
  std::optional<MetadataUpdate> Next(Cursor& cursor);

  size_t size() const { return entities_.size(); }
  size_t bytes() const { return bytes_; }
  // Made for the caller: things are kept packed.
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
  uint64_t last_forgotten_ = 0;  // of the changes of what has gone
  size_t bytes_ = 0;
  bool complete_ = false;
  std::map<uint64_t, std::function<void()>> subscribers_;
  uint64_t last_subscriber_ = 0;
  Counter &turned_away_, &cut_;
};

}  // namespace tributary::intake
