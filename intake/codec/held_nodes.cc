#include "intake/codec/held_nodes.h"

#include <algorithm>
#include <utility>

namespace tributary::intake {

uint32_t Followers::At(FrameRef parent, uint32_t rank) const {
  if (parent.value >= first_.size()) return 0;
  uint32_t link = first_[parent.value];
  for (; link != 0 && rank > 0; --rank) link = links_[link].next;
  return links_[link].frame;
}

uint32_t Followers::RankOf(FrameRef parent, FrameRef frame) const {
  if (parent.value >= first_.size()) return kMax;
  uint32_t rank = 0;
  for (uint32_t link = first_[parent.value]; link != 0; link = links_[link].next, ++rank) {
    if (links_[link].frame == frame.value) return rank;
  }
  return kMax;
}

void Followers::Learn(FrameRef parent, FrameRef frame) {
  if (parent.value >= first_.size()) first_.resize(size_t{parent.value} + 1);
  uint32_t* to = &first_[parent.value];
  uint32_t length = 0;
  // Stops at the link to move to the front, or at the end of the list.
  while (*to != 0 && links_[*to].frame != frame.value && ++length < kMax) to = &links_[*to].next;
  uint32_t link = *to;
  if (link == 0) {
    link = static_cast<uint32_t>(links_.size());
    links_.push_back({frame.value, first_[parent.value]});
  } else {
    *to = links_[link].next;
    links_[link] = {frame.value, first_[parent.value]};
  }
  first_[parent.value] = link;
}

void HeldNodes::Append(Node node) {
  followers_.Learn(nodes_[node.parent.value].frame, node.frame);
  hash_ = Dictionary::RollHash(hash_, node);
  depths_.push_back(static_cast<uint16_t>(std::min<uint32_t>(DepthOf(node.parent.value) + 1, UINT16_MAX)));
  nodes_.push_back(node);
}

bool HeldNodes::Evict(const Eviction& eviction) {
  const std::vector<uint32_t> nodes = eviction.nodes.NewIds(), frames = eviction.frames.NewIds(),
                              executables = eviction.executables.NewIds();
  if (nodes.size() != nodes_.size() || frames.size() != places_.size()) return false;
  auto after = std::make_unique<HeldNodes>();
  after->nodes_.reserve(eviction.nodes.after());
  after->depths_.reserve(eviction.nodes.after());
  after->places_.reserve(eviction.frames.after());
  for (uint32_t i = 1; i < frames.size(); ++i) {
    if (frames[i] == 0) continue;
    FramePlace place = places_[i];
    if (place.executable >= executables.size()) return false;
    if (place.executable != 0 && executables[place.executable] == 0) return false;
    place.executable = place.executable != 0 ? executables[place.executable] : 0;
    after->places_.push_back(place);
  }
  for (uint32_t i = 1; i < nodes.size(); ++i) {
    if (nodes[i] == 0) continue;
    const Node node = nodes_[i];
    if (node.frame.value >= frames.size()) return false;
    const bool parent_kept = node.parent.value == 0 || nodes[node.parent.value] != 0;
    const bool frame_kept = node.frame.value == 0 || frames[node.frame.value] != 0;
    if (!parent_kept || !frame_kept) return false;
    after->Append({NodeRef{nodes[node.parent.value]}, FrameRef{frames[node.frame.value]}});
  }
  auto before = std::make_unique<HeldNodes>(std::move(*this));
  *this = std::move(*after);
  before_eviction_ = std::move(before);
  return true;
}

void HeldNodes::Begin() {
  before_eviction_.reset();
  nodes_before_ = count();
  frames_before_ = frame_count();
}

void HeldNodes::Rollback() {
  if (before_eviction_ != nullptr) {
    HeldNodes before = std::move(*before_eviction_);
    *this = std::move(before);
    return;
  }
  if (count() != nodes_before_ || frame_count() != frames_before_) Truncate(nodes_before_, frames_before_);
}

void HeldNodes::Truncate(uint32_t nodes, uint32_t frames) {
  HeldNodes kept;
  kept.places_.assign(places_.begin(), places_.begin() + std::min(frames, frame_count()));
  for (uint32_t i = 1; i < nodes && i < nodes_.size(); ++i) kept.Append(nodes_[i]);
  *this = std::move(kept);
  Begin();
}

}  // namespace tributary::intake
