#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/types.h"
#include "profile/metadata.h"

namespace tributary {

constexpr UnixNs kTimeBegin{INT64_MIN}, kTimeEnd{INT64_MAX};

// The state of an entity at the requested time, and the time until which this state is known to be valid.
struct FoundEntity {
  std::shared_ptr<const Entity> entity;  // nullptr: unknown
  UnixNs until = kTimeEnd;               // from this time on, the state may be another
};

// The states of one entity over time. A new report is valid from its `from` on. It replaces all states that earlier
// reports set for times after `from`. So a sender may correct an earlier report, and may send the entity's history
// again. A reported time after `now` counts as `now`. If a report has no time (`from` is 0) and the timeline has no
// states, the new state begins at kTimeBegin. If it only adds attributes to the last state, it begins when the last
// state began. Otherwise it begins at `now`.
//
// Metadata may arrive after the first samples of an entity, and samples may arrive after the entity's end. So Find
// returns the first state for all earlier times too, and the last state for times after the entity's end. This is safe,
// because ids of containers and pods are not reused. Not thread-safe.
class EntityTimeline {
 public:
  struct State {
    UnixNs from, to;  // [from, to); `to` is at most the next state's `from`, less if the entity was away in between
    std::shared_ptr<const Entity> entity;
  };
  static constexpr size_t kStatesMax = 32;

  // Returns true if the timeline has changed. If there would be more than kStatesMax states, drops the oldest state,
  // and adds 1 to `*lost_states` (may be nullptr).
  bool Report(Entity entity, UnixNs now, uint64_t* lost_states);
  // Ends the entity at `at` (0: at `now`). Returns false and does nothing if the entity has already ended or has no
  // states.
  bool End(UnixNs at, UnixNs now);

  FoundEntity Find(UnixNs at) const;

  // gone returns true if the entity has ended. gone_since returns the time of its end.
  bool gone() const { return !states_.empty() && states_.back().to != kTimeEnd; }
  UnixNs gone_since() const { return states_.empty() ? kTimeBegin : states_.back().to; }
  const std::vector<State>& states() const { return states_; }

  // Adds a state that was read from a store. The caller must add states in order of time.
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
