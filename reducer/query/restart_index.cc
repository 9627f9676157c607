#include "reducer/query/restart_index.h"

#include <algorithm>

namespace tributary {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

}  // namespace

RestartIndex::Key RestartIndex::KeyOf(Match match, const RestartCandidate& candidate) {
  const EventPlace& place = candidate.place;
  const int32_t parent = candidate.record.parent.value;
  switch (match) {
    case Match::kUnit:
      return {match, place.unit, "", "", "", parent};
    case Match::kCgroup:
      return {match, candidate.record.cgroup_path, "", "", "", parent};
    case Match::kContainerId:
      return {match, place.container_id, "", "", "", parent};
    case Match::kNamedContainerId:
      return {match, place.container_id, place.container, place.pod, place.name_space, parent};
    case Match::kNames:
      return {match, "", place.container, place.pod, place.name_space, 0};
  }
  return {};
}

RestartIndex::RestartIndex(std::span<const RestartCandidate> begins) : begins_(begins) {
  for (uint32_t i = 0; i < begins.size(); ++i) {
    const auto add = [&](Match match) { positions_[KeyOf(match, begins[i])].begins.push_back(i); };
    const EventPlace& place = begins[i].place;
    if (place.container_id.empty()) {
      add(Match::kCgroup);
      if (!place.unit.empty()) add(Match::kUnit);
      continue;
    }
    add(Match::kContainerId);
    if (place.container.empty()) continue;
    add(Match::kNamedContainerId);
    add(Match::kNames);
  }
  for (auto& [key, of] : positions_) {
    if (std::get<Match>(key) != Match::kNames) continue;
    const auto id = [&](size_t i) -> const std::string& { return begins_[of.begins[i]].place.container_id; };
    of.next_container.resize(of.begins.size());
    auto next = static_cast<uint32_t>(of.begins.size());
    for (size_t i = of.begins.size(); i-- > 0;) {
      if (i + 1 < of.begins.size() && id(i) != id(i + 1)) next = static_cast<uint32_t>(i + 1);
      of.next_container[i] = next;
    }
  }
}

size_t RestartIndex::FirstAfter(const Positions& positions, UnixNs time) const {
  const auto it = std::upper_bound(positions.begins.begin(), positions.begins.end(), time,
                                   [this](UnixNs t, uint32_t begin) { return t < begins_[begin].record.time; });
  return static_cast<size_t>(it - positions.begins.begin());
}

uint32_t RestartIndex::FirstAfter(const Key& key, UnixNs time) const {
  const auto of = positions_.find(key);
  if (of == positions_.end()) return kNone;
  const size_t at = FirstAfter(of->second, time);
  return at < of->second.begins.size() ? of->second.begins[at] : kNone;
}

uint32_t RestartIndex::FirstInOtherContainer(const RestartCandidate& end) const {
  const auto of = positions_.find(KeyOf(Match::kNames, end));
  if (of == positions_.end()) return kNone;
  const auto& [begins, next_container] = of->second;
  size_t at = FirstAfter(of->second, end.record.time);
  if (at < begins.size() && begins_[begins[at]].place.container_id == end.place.container_id) at = next_container[at];
  return at < begins.size() ? begins[at] : kNone;
}

const RestartCandidate* RestartIndex::FirstAfter(const RestartCandidate& end) const {
  const EventPlace& place = end.place;
  uint32_t begin = kNone;
  if (place.container_id.empty()) {
    begin = FirstAfter(KeyOf(place.unit.empty() ? Match::kCgroup : Match::kUnit, end), end.record.time);
  } else if (place.container.empty()) {
    begin = FirstAfter(KeyOf(Match::kContainerId, end), end.record.time);
  } else {
    begin = std::min(FirstAfter(KeyOf(Match::kNamedContainerId, end), end.record.time), FirstInOtherContainer(end));
  }
  return begin == kNone ? nullptr : &begins_[begin];
}

}  // namespace tributary
