#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "profile/dictionary.h"
#include "profile/eviction.h"

namespace tributary::intake {

// What has followed each frame in new nodes: the frames that a new node's is likely to be. Both ends hold one; it is a
// function of the nodes in the generation's dictionary, in their order, and of nothing else: whatever was told, evicted
// or told again, one that is made anew from the nodes is the same. 4 bytes a frame and 8 for each pair of frames.
class Followers {
 public:
  static constexpr uint32_t kMax = 8;  // of one frame; the one that followed it longest ago gives way

  // The frame that followed `parent` newest (rank 0), or before that; 0 when there is none.
  uint32_t At(FrameRef parent, uint32_t rank) const;
  // kMax when it is not among them.
  uint32_t RankOf(FrameRef parent, FrameRef frame) const;
  void Learn(FrameRef parent, FrameRef frame);
  size_t memory_bytes() const { return first_.capacity() * sizeof(uint32_t) + links_.capacity() * sizeof(Link); }

 private:
  struct Link {
    uint32_t frame, next;
  };
  std::vector<uint32_t> first_;      // by parent frame: index into links_; 0 = none
  std::vector<Link> links_{Link{}};  // newest first
};

// Where a frame is, as a new one's neighbour is told from it. None of an address beyond 4 GiB: no file's.
struct FramePlace {
  uint32_t address = 0;
  uint32_t executable = 0;  // 0: not known, or useless
  uint8_t kind = 0;         // a FrameKind as it was told: it may be one that this release does not know

  static FramePlace Of(const tributary::Frame& frame) { return Of(frame, static_cast<uint8_t>(frame.kind)); }
  static FramePlace Of(const tributary::Frame& frame, uint8_t kind) {
    if (frame.address > UINT32_MAX || frame.executable.value == 0) return {};
    return {static_cast<uint32_t>(frame.address), frame.executable.value, kind};
  }
};

// The nodes and frames of one generation as the reading end of a connection needs them: to see what a chain grows from,
// to guess frames, to hash. 8 bytes a node, 12 a frame, and Followers. What a message did can be taken back.
class HeldNodes {
 public:
  uint32_t count() const { return static_cast<uint32_t>(nodes_.size()); }
  uint32_t frame_count() const { return static_cast<uint32_t>(places_.size()); }
  uint64_t hash() const { return hash_; }  // Dictionary::rolling_hash of the same nodes
  size_t memory_bytes() const {
    return nodes_.capacity() * sizeof(Node) + places_.capacity() * sizeof(FramePlace) + followers_.memory_bytes() +
           (before_eviction_ != nullptr ? before_eviction_->memory_bytes() : 0);
  }

  FrameRef FrameOf(uint32_t node) const { return nodes_[node].frame; }
  const Followers& followers() const { return followers_; }
  const FramePlace& PlaceOf(FrameRef frame) const { return places_[frame.value]; }

  void AppendFrame(const tributary::Frame& frame, uint8_t kind) { places_.push_back(FramePlace::Of(frame, kind)); }
  // Its parent and its frame are held.
  void Append(Node node);
  // False, and nothing is changed: a node that is kept refers to one or to a frame that is not, or a frame to an
  // executable that is not.
  bool Evict(const Eviction& eviction);

  // Rollback takes back what came after the last Begin.
  void Begin();
  void Rollback();
  // Forgets nodes and frames from these counts on. A Begin too. Costs 20 ns a node that stays.
  void Truncate(uint32_t nodes, uint32_t frames);

 private:
  std::vector<Node> nodes_{Node{}};
  std::vector<FramePlace> places_{FramePlace{}};
  Followers followers_;
  uint64_t hash_ = 0;

  uint32_t nodes_before_ = 1, frames_before_ = 1;
  std::unique_ptr<HeldNodes> before_eviction_;
};

}  // namespace tributary::intake
