#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "profile/dictionary.h"
#include "profile/eviction.h"

namespace tributary::intake {

// Stores the followers of each frame. The followers of a frame F are the frames of the last new nodes that have a
// parent with frame F. The next such node probably has one of these frames, too. The encoder and the decoder each have
// one Followers table. It depends only on the nodes of the generation's dictionary and on their order. So both tables
// stay equal, and each end can build its table again from the nodes, even after evictions and repeated messages. Uses 4
// bytes per frame and 8 bytes per follower.
class Followers {
 public:
  static constexpr uint32_t kMax = 8;  // followers per frame; a new follower replaces the least recently used one

  // Returns the follower of `parent` that has this rank, or 0 if there is none. The most recent follower has rank 0.
  uint32_t At(FrameRef parent, uint32_t rank) const;
  // Returns kMax if `frame` is not a follower of `parent`.
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

// The executable, address and kind of a frame. They are used to predict these values of a new frame. A FramePlace is
// empty (all 0) if the frame has no executable, or if its address is 4 GiB or more.
struct FramePlace {
  uint32_t address = 0;
  uint32_t executable = 0;  // 0: the place is empty
  uint8_t kind = 0;         // a FrameKind as received: this release may not know it

  static FramePlace Of(const tributary::Frame& frame) { return Of(frame, static_cast<uint8_t>(frame.kind)); }
  static FramePlace Of(const tributary::Frame& frame, uint8_t kind) {
    if (frame.address > UINT32_MAX || frame.executable.value == 0) return {};
    return {static_cast<uint32_t>(frame.address), frame.executable.value, kind};
  }
};

// The nodes and frames of one generation. The decoder needs them to find the parent of a chain, to predict frames, and
// to compute the hash over all nodes. Uses 10 bytes per node and 12 bytes per frame, plus the memory of Followers. The
// changes made for one message can be undone.
class HeldNodes {
 public:
  uint32_t count() const { return static_cast<uint32_t>(nodes_.size()); }
  uint32_t frame_count() const { return static_cast<uint32_t>(places_.size()); }
  uint64_t hash() const { return hash_; }  // Dictionary::rolling_hash of the same nodes
  size_t memory_bytes() const {
    return nodes_.capacity() * sizeof(Node) + depths_.capacity() * sizeof(uint16_t) +
           places_.capacity() * sizeof(FramePlace) + followers_.memory_bytes() +
           (before_eviction_ != nullptr ? before_eviction_->memory_bytes() : 0);
  }

  FrameRef FrameOf(uint32_t node) const { return nodes_[node].frame; }
  // Returns the number of nodes from the root to this node, without the root. At most 65,535.
  uint32_t DepthOf(uint32_t node) const { return depths_[node]; }
  const Followers& followers() const { return followers_; }
  const FramePlace& PlaceOf(FrameRef frame) const { return places_[frame.value]; }

  void AppendFrame(const tributary::Frame& frame, uint8_t kind) { places_.push_back(FramePlace::Of(frame, kind)); }
  // The node's parent and frame must have been appended before.
  void Append(Node node);
  // Returns false and changes nothing if a kept node refers to a node or frame that is not kept, or if a kept frame
  // refers to an executable that is not kept.
  bool Evict(const Eviction& eviction);

  // Rollback undoes every change after the last Begin.
  void Begin();
  void Rollback();
  // Removes nodes and frames with ids from these counts on, and calls Begin. Takes 20 ns per remaining node.
  void Truncate(uint32_t nodes, uint32_t frames);

 private:
  std::vector<Node> nodes_{Node{}};
  std::vector<uint16_t> depths_{0};  // by node
  std::vector<FramePlace> places_{FramePlace{}};
  Followers followers_;
  uint64_t hash_ = 0;

  uint32_t nodes_before_ = 1, frames_before_ = 1;
  std::unique_ptr<HeldNodes> before_eviction_;
};

}  // namespace tributary::intake
