#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/types.h"
#include "profile/metadata.h"

namespace tributary {

constexpr UnixNs kTimeBegin{INT64_MIN}, kTimeEnd{INT64_MAX};

// What is known of a thing at one time, and when to ask again.
struct FoundEntity {
  std::shared_ptr<const Entity> entity;  // nullptr: not known
  UnixNs until = kTimeEnd;               // from here on it may be another
};

// The states of one thing, in time. What was told last is right from its `from` on: it replaces what was said of later
// times before, so that a teller may correct itself, and may tell its history anew. Told times are at most `now`.
//
// Metadata comes after samples, and samples come after a thing's end: the first state holds for all time before it, and
// the last one after the thing has gone (ids of containers and pods are not used again). Not thread-safe.
class EntityTimeline {
 public:
  struct State {
    UnixNs from, to;  // [from, to); `to` of a state is at most the next one's `from`, more where the thing was away
    std::shared_ptr<const Entity> entity;
  };
  static constexpr size_t kStatesMax = 32;

  // True: something changed. `lost_states` (may be null) is raised by what kStatesMax pushed out.
  bool Tell(Entity entity, UnixNs now, uint64_t* lost_states);
  // It has gone, if it had not; `at` 0: now.
  bool End(UnixNs at, UnixNs now);

  FoundEntity Find(UnixNs at) const;

  // Whether the thing has gone, and since when.
  bool gone() const { return !states_.empty() && states_.back().to != kTimeEnd; }
  UnixNs gone_since() const { return states_.empty() ? kTimeBegin : states_.back().to; }
  const std::vector<State>& states() const { return states_; }

  // Of a store: states in order of time.
  void Restore(State state) { states_.push_back(std::move(state)); }
  // Forgets the states that ended before `time`, but for the last. How many.
  size_t DropBefore(UnixNs time);

 private:
  UnixNs BeginOf(const Entity& entity, UnixNs now) const;

  std::vector<State> states_;  // in order of time
};

// Memory that an entity takes, about.
size_t EntityBytes(const Entity& entity);

}  // namespace tributary
