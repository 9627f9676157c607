#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "profile/dictionary.h"
#include "profile/eviction.h"

namespace tributary::intake {

// For each frame, the frames that new nodes below it had most recently. The next new node below it probably has one of
// them. Both ends hold one such table. It depends only on the nodes in the generation's dictionary, in their order. A
// table that is built again from the nodes is always the same, even after evictions and repeated messages. Takes 4
// bytes a frame and 8 bytes for each pair of frames.
class Followers {
 public:
  static constexpr uint32_t kMax = 8;  // followers of one frame; a new one replaces the one that was used longest ago

  // Returns the frame that followed `parent` most recently (rank 0), or earlier (rank 1 and up); 0 if there is none.
  uint32_t At(FrameRef parent, uint32_t rank) const;
  // Returns kMax if `frame` is not among the followers.
  uint32_t RankOf(FrameRef parent, FrameRef frame) const;
  void Learn(FrameRef parent, FrameRef frame);
  size_t memory_bytes() const { return first_.capacity() * sizeof(uint32_t) + links_.capacity() * sizeof(Link); }

 private:
  struct Link {
    uint32_t frame, next;
  };
  std::vector<uint32_t> first_;      // by parent frame: index into links_; 0: none
  std::vector<Link> links_{Link{}};  // newest first
};

// The place of a frame, from which the place of a neighbouring new frame is encoded. Empty for an address beyond 4 GiB:
// such an address is not in a file.
struct FramePlace {
  uint32_t address = 0;
  uint32_t executable = 0;  // 0: unknown, or the address cannot be used
  uint8_t kind = 0;         // a FrameKind as on the wire: this release may not know it

  static FramePlace Of(const tributary::Frame& frame) { return Of(frame, static_cast<uint8_t>(frame.kind)); }
  static FramePlace Of(const tributary::Frame& frame, uint8_t kind) {
    if (frame.address > UINT32_MAX || frame.executable.value == 0) return {};
    return {static_cast<uint32_t>(frame.address), frame.executable.value, kind};
  }
};

// The nodes and frames of one generation, as the reading end of a connection needs them: to find the parent of a chain,
// to guess frames, and to hash. Takes 8 bytes a node, 12 bytes a frame, and Followers. The changes of a message can be
// undone.
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
  // The node's parent and frame must be held.
  void Append(Node node);
  // Returns false and changes nothing if a kept node refers to a node or frame that is not kept, or if a kept frame
  // refers to an executable that is not kept.
  bool Evict(const Eviction& eviction);

  // Rollback undoes every change after the last Begin.
  void Begin();
  void Rollback();
  // Forgets nodes and frames from these counts on, and calls Begin. Costs 20 ns for each node that stays.
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
