#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "intake/codec/columns.h"
#include "intake/codec/held_nodes.h"
#include "intake/codec/process_coder.h"
#include "intake/wire/messages.h"
#include "profile/dictionary.h"

namespace tributary::intake {

// Writes the definitions of one message as columns. `before` counts the definitions that the reader already has.
// `followers` must have learned the nodes that `before` counts, and learns the new nodes.
class DefinitionColumns {
 public:
  // The message is full when its columns have this size. Then the longest string and the message's structure still fit
  // into a frame.
  static constexpr size_t kBytesMax = 3u << 20;

  // All borrowed objects must outlive this object. `knows_interpreters`: as in BatchEncoder.
  DefinitionColumns(const Dictionary& dictionary, const DictionaryCounts& before, Followers& followers,
                    bool knows_interpreters)
      : dictionary_(dictionary),
        knows_interpreters_(knows_interpreters),
        followers_(followers),
        before_(before),
        after_(before),
        next_frame_(before.frames),
        thread_coder_(before.processes) {}

  // Writes which ids of the earlier generation are evicted. Call it for the first message of a generation that
  // continues an earlier one. Needs about one byte per run of ids: less than 0.5 MiB for full tables.
  void PutEviction(const Eviction& eviction);
  // Adds definitions in the order in which a reader needs them, until the message is full. Returns true if all
  // definitions were added.
  bool Fill();

  const DictionaryCounts& after() const { return after_; }
  // The ids of the last nodes of the chains (LeafCursor describes chains), in ascending order.
  const std::vector<uint32_t>& leaves() const { return leaves_; }
  size_t bytes() const;
  void Write(ColumnWriter& to);

 private:
  bool FillNodes();
  bool StartsChain(uint32_t node) const;
  template <typename Add>
  bool FillTable(uint32_t end, uint32_t* next, Add&& add) {
    for (; *next < end; ++*next) {
      if (bytes() >= kBytesMax) return false;
      add(*next);
    }
    return true;
  }
  // What the reader sees of a frame.
  uint8_t KindOf(const tributary::Frame& frame) const {
    const bool is_hidden = frame.kind == FrameKind::kInterpreter && !knows_interpreters_;
    return static_cast<uint8_t>(is_hidden ? FrameKind::kNative : frame.kind);
  }
  FramePlace PlaceOf(FrameRef ref) const {
    const tributary::Frame& frame = dictionary_.frame(ref);
    return FramePlace::Of(frame, KindOf(frame));
  }
  void AddString(uint32_t i);
  void AddExecutable(uint32_t i);
  void AddFrame(const FrameContext& context);
  void AddFramesUpTo(uint32_t end);
  void AddNode(uint32_t i);
  void AddProcess(uint32_t i);
  void AddThread(uint32_t i);

  const Dictionary& dictionary_;
  const bool knows_interpreters_;
  Followers& followers_;
  const DictionaryCounts before_;
  DictionaryCounts after_;
  uint32_t next_frame_;
  LastAddresses last_addresses_;
  ProcessCoder process_coder_;
  ThreadCoder thread_coder_;
  ValueWriter process_attributes_{0}, frame_positions_{0}, frame_names_{0};
  std::vector<uint32_t> leaves_;
  std::string evicted_, string_lengths_, string_bytes_, executables_, frame_kinds_, frame_executables_,
      frame_addresses_, chain_attach_, node_frames_, node_frame_ids_, processes_, threads_;
};

}  // namespace tributary::intake
