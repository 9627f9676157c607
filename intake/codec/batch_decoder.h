#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "intake/codec/held_nodes.h"
#include "intake/wire/frame.h"
#include "intake/wire/messages.h"

namespace tributary::intake {

// The generation of a kDefinitions or kBatch payload, and the generation that it continues (0: none). GenerationOf does
// not decode the rest of the payload.
struct GenerationInfo {
  uint32_t generation = 0, derived_from = 0;
};
absl::StatusOr<GenerationInfo> GenerationOf(MessageType type, std::string_view payload);

// The reading end of BatchEncoder. Holds the nodes of the dictionary, the places of frames and the frames that follow
// them (HeldNodes, some MiB at most). Of all other tables it holds only counts, because the component that stores the
// batches holds their definitions. A failed Decode changes nothing; the session must then send NeedDictionary or close.
// The decoder follows a generation that continues the one it holds. A generation that starts empty needs another
// decoder. The caller must keep the decoder while the sender reconnects, because no other object has its state.
class BatchDecoder {
 public:
  explicit BatchDecoder(uint32_t generation, DictionaryLimits limits = {}) : generation_(generation), limits_(limits) {}
  // Starts in the middle of a generation: `nodes` are the nodes that `have` counts.
  BatchDecoder(uint32_t generation, const DictionaryCounts& have, HeldNodes nodes, DictionaryLimits limits = {});

  // Decodes a kDefinitions or a kBatch payload. A kDefinitions gives an IncomingBatch with sequence 0 and no samples.
  // InvalidArgument if malformed. FailedPrecondition: another generation, definitions that do not continue at `have`,
  // or nodes that differ from the sender's (its hash over all nodes differs). OutOfRange: over a limit of the
  // dictionary.
  absl::StatusOr<IncomingBatch> Decode(MessageType type, uint64_t sequence, std::string_view payload);
  // Undoes the last Decode, if it succeeded. Call it if the same message will be decoded again.
  void Undo();

  uint32_t generation() const { return generation_; }
  const DictionaryCounts& have() const { return have_; }
  // Forgets everything beyond `have`. Returns false and changes nothing if `have` counts more than is held.
  bool Truncate(const DictionaryCounts& have);
  size_t memory_bytes() const { return nodes_.memory_bytes(); }

 private:
  struct Position {
    uint32_t generation;
    DictionaryCounts have;
  };
  absl::Status Continue(const GenerationInfo& info, std::string_view evicted, IncomingBatch* out);

  uint32_t generation_;
  DictionaryCounts have_;
  DictionaryLimits limits_;
  HeldNodes nodes_;
  std::optional<Position> before_;  // before the last message; empty: nothing to undo
};

}  // namespace tributary::intake
