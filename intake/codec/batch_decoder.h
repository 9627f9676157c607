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

// Which generation a kDefinitions or kBatch payload belongs to, and continues (0: none), without decoding the rest.
struct GenerationInfo {
  uint32_t generation = 0, derived_from = 0;
};
absl::StatusOr<GenerationInfo> GenerationOf(MessageType type, std::string_view payload);

// The reading end of BatchEncoder. Holds of the dictionary the nodes, where frames are and what follows them
// (HeldNodes, some MiB at most), and counts of the rest: whoever stores the batches maps ids on. After an error nothing
// has changed, and the session must send NeedDictionary or close. It follows a generation that continues the one it
// holds; for one that starts empty, make another decoder. Keep it over a reconnect: nothing else knows what it knows.
class BatchDecoder {
 public:
  explicit BatchDecoder(uint32_t generation, DictionaryLimits limits = {}) : generation_(generation), limits_(limits) {}
  // In the middle of a generation: `nodes` are those that `have` counts.
  BatchDecoder(uint32_t generation, const DictionaryCounts& have, HeldNodes nodes, DictionaryLimits limits = {});

  // A kDefinitions or a kBatch payload; a kDefinitions gives an IncomingBatch with sequence 0 and no samples.
  // InvalidArgument: malformed. FailedPrecondition: another generation, definitions that do not continue at `have`, or
  // nodes that are not the sender's (its hash over all of them is another).
  // OutOfRange: over a limit of the dictionary.
  absl::StatusOr<IncomingBatch> Decode(MessageType type, uint64_t sequence, std::string_view payload);
  // Takes back the last Decode, if that succeeded: its message will come again.
  void Undo();

  uint32_t generation() const { return generation_; }
  const DictionaryCounts& have() const { return have_; }
  // Forgets what is beyond `have`; false, and nothing is changed: there is more in it than is held.
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
  std::optional<Position> before_;  // the last message; empty: nothing to undo
};

}  // namespace tributary::intake
