#include "reducer/metadata/entity_timeline.h"

#include <algorithm>

namespace tributary {

bool EntityTimeline::Report(Entity entity, UnixNs now, uint64_t* lost_states) {
  if (entity.gone && !states_.empty()) return End(entity.from, now);
  const UnixNs reported_from = std::min(entity.from, now);
  const UnixNs end = entity.gone ? (reported_from.value == 0 ? now : reported_from) : kTimeEnd;
  UnixNs from = entity.gone || reported_from.value == 0 ? BeginOf(entity, now) : reported_from;
  if (!states_.empty()) {
    State& last = states_.back();
    if (last.to == kTimeEnd && last.entity->attributes == entity.attributes && from >= last.from) return false;
    while (!states_.empty() && states_.back().from >= from) states_.pop_back();
    // If the entity was away and comes back, its end stays. Otherwise the state before holds until `from`.
    if (!states_.empty()) states_.back().to = std::min(states_.back().to, from);
  }
  entity.from = from;
  entity.gone = false;
  states_.push_back({from, end, std::make_shared<const Entity>(std::move(entity))});
  if (states_.size() > kStatesMax) {
    states_.erase(states_.begin());
    if (lost_states != nullptr) ++*lost_states;
  }
  return true;
}

// Returns the begin of a state that was reported without one. The first state holds from the beginning of time. A state
// that only adds to the last state begins when the last state began. A different state begins now, when it was
// reported.
UnixNs EntityTimeline::BeginOf(const Entity& entity, UnixNs now) const {
  if (states_.empty()) return kTimeBegin;
  const State& last = states_.back();
  return !gone() && Includes(entity.attributes, last.entity->attributes) ? last.from : now;
}

bool EntityTimeline::End(UnixNs at, UnixNs now) {
  if (states_.empty() || gone()) return false;
  const UnixNs end = at.value == 0 ? now : std::min(at, now);
  states_.back().to = std::max(end, states_.back().from);
  return true;
}

FoundEntity EntityTimeline::Find(UnixNs at) const {
  if (states_.empty()) return {};
  auto next = std::upper_bound(states_.begin(), states_.end(), at,
                               [](UnixNs time, const State& state) { return time < state.from; });
  if (next == states_.begin()) ++next;  // before all states: the first state
  FoundEntity found;
  found.entity = std::prev(next)->entity;
  if (next != states_.end()) found.until = next->from;
  return found;
}

size_t EntityTimeline::DropBefore(UnixNs time) {
  size_t dropped = 0;
  while (dropped + 1 < states_.size() && states_[dropped].to < time) ++dropped;
  states_.erase(states_.begin(), states_.begin() + static_cast<ptrdiff_t>(dropped));
  return dropped;
}

size_t EntityBytes(const Entity& entity) {
  // Strings of up to 15 bytes are stored in place. Longer strings are on the heap, which adds at most 16 bytes.
  auto string_bytes = [](const std::string& text) { return text.size() > 15 ? text.size() + 16 : 0; };
  size_t bytes = sizeof(Entity) + 64 + string_bytes(entity.id);
  for (const Attribute& attribute : entity.attributes) {
    bytes += sizeof(Attribute) + string_bytes(attribute.key) + string_bytes(attribute.value);
  }
  return bytes;
}

}  // namespace tributary
