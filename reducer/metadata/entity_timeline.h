#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/types.h"
#include "profile/metadata.h"

namespace tributary {

constexpr UnixNs kTimeBegin{INT64_MIN}, kTimeEnd{INT64_MAX};

// The state of an entity at one time, and the time until which it is known to hold.
struct FoundEntity {
  std::shared_ptr<const Entity> entity;  // nullptr: unknown
  UnixNs until = kTimeEnd;               // from this time on, the state may be another
};

// The states of one entity over time. The last report is right from its `from` on: it replaces earlier reports about
// later times. So a sender may correct itself, and may report its history again. Reported times are cut to `now`.
//
// Metadata arrives after samples, and samples arrive after an entity's end. So the first state also holds for all time
// before it, and the last state also holds after the entity has ended (ids of containers and pods are not used again).
// Not thread-safe.
class EntityTimeline {
 public:
  struct State {
    UnixNs from, to;  // [from, to); `to` is at most the next state's `from`, less if the entity was away in between
    std::shared_ptr<const Entity> entity;
  };
  static constexpr size_t kStatesMax = 32;

  // Returns true if something changed. Adds the number of states that kStatesMax pushed out to `*lost_states` (may be
  // null).
  bool Report(Entity entity, UnixNs now, uint64_t* lost_states);
  // Ends the entity at `at` (0: now), unless it has ended already. Returns true if this call ended it.
  bool End(UnixNs at, UnixNs now);

  FoundEntity Find(UnixNs at) const;

  // gone: the entity has ended. gone_since: the time of its end.
  bool gone() const { return !states_.empty() && states_.back().to != kTimeEnd; }
  UnixNs gone_since() const { return states_.empty() ? kTimeBegin : states_.back().to; }
  const std::vector<State>& states() const { return states_; }

  // For a store: adds a state. The caller must add states in order of time.
  void Restore(State state) { states_.push_back(std::move(state)); }
  // Removes the states that ended before `time`, except the last state. Returns the number of removed states.
  size_t DropBefore(UnixNs time);

 private:
  UnixNs BeginOf(const Entity& entity, UnixNs now) const;

  std::vector<State> states_;  // in order of time
};

// Returns the approximate memory that an entity takes, in bytes.
size_t EntityBytes(const Entity& entity);

}  // namespace tributary
