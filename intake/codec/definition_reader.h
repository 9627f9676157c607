#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "intake/codec/columns.h"
#include "intake/codec/held_nodes.h"
#include "intake/codec/process_coder.h"
#include "intake/wire/messages.h"

namespace tributary::intake {

// Reads the column `evicted`. FailedPrecondition if the column is for tables with other counts than `held`.
// InvalidArgument if the column is malformed, or if the eviction drops too few ids (DropsEnough).
absl::Status ReadEviction(std::string_view column, const DictionaryCounts& held, Eviction* out);
// Returns true if the eviction drops at least a sixteenth of all ids. A smaller eviction costs more than it saves,
// because the receiver needs time for every id that is kept.
bool DropsEnough(const Eviction& eviction);

// Reads the definitions of one message. Checks that every definition refers only to ids that are defined before it. The
// order is strings, executables, frames, nodes, processes, threads. Appends the new nodes and frames to `nodes` while
// it reads. If Read returns an error, some of them may already be appended.
class DefinitionReader {
 public:
  // All borrowed objects must outlive this object.
  DefinitionReader(const DefinitionColumnSet& columns, const DictionaryCounts& before, const DictionaryLimits& limits,
                   HeldNodes& nodes, IncomingBatch* out)
      : columns_(columns),
        before_(before),
        after_(before),
        limits_(limits),
        nodes_(nodes),
        out_(*out),
        definitions_(out->definitions),
        frame_kinds_(columns[DefinitionColumn::kFrameKinds]),
        frame_executables_(columns[DefinitionColumn::kFrameExecutables]),
        frame_addresses_(columns[DefinitionColumn::kFrameAddresses]),
        node_frames_(columns[DefinitionColumn::kNodeFrames]),
        node_frame_ids_(columns[DefinitionColumn::kNodeFrameIds]),
        frame_positions_(columns[DefinitionColumn::kFramePositions], 0),
        frame_names_(columns[DefinitionColumn::kFrameNames], 0) {}

  // FailedPrecondition if the definitions do not continue at `before`. OutOfRange if a table would exceed its limit.
  // InvalidArgument if the message is malformed.
  absl::Status Read();

  const DictionaryCounts& after() const { return after_; }
  // Returns the ids of the last nodes of the chains (LeafCursor describes chains), in ascending order.
  std::vector<uint32_t> TakeLeaves() { return std::move(leaves_); }

 private:
  absl::Status ReadBefore();
  absl::Status ReadStrings();
  absl::Status ReadExecutables();
  absl::Status CountFrames();
  absl::Status ReadFrame(const FrameContext& context);
  absl::Status ReadFramesUpTo(uint32_t end);
  absl::StatusOr<FrameRef> ReadFrameUnder(uint32_t parent, bool is_leaf);
  absl::Status ReadNodes();
  absl::Status ReadProcesses();
  absl::Status ReadThreads();

  const DefinitionColumnSet& columns_;
  const DictionaryCounts before_;
  DictionaryCounts after_;
  const DictionaryLimits& limits_;
  HeldNodes& nodes_;
  IncomingBatch& out_;
  Definitions& definitions_;
  VarintReader frame_kinds_, frame_executables_, frame_addresses_, node_frames_, node_frame_ids_;
  ValueReader frame_positions_, frame_names_;
  LastAddresses last_addresses_;
  std::vector<uint32_t> leaves_;
};

}  // namespace tributary::intake
