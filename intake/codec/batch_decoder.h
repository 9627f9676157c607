#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "intake/codec/held_nodes.h"
#include "intake/wire/frame.h"
#include "intake/wire/messages.h"

namespace tributary::intake {

// `generation`: the dictionary generation of a kDefinitions or kBatch payload. `derived_from`: the earlier generation
// that this generation continues after an eviction; 0: none. GenerationOf reads only these two numbers.
struct GenerationInfo {
  uint32_t generation = 0, derived_from = 0;
};
absl::StatusOr<GenerationInfo> GenerationOf(MessageType type, std::string_view payload);

// Decodes the frames that a BatchEncoder made. Stores the nodes and frames of the session's dictionary (HeldNodes, a
// few MiB at most). Stores only the counts of the other tables, because the component that stores the batches has the
// definitions of these tables. A failed Decode changes nothing. After a failed Decode, the session must send
// NeedDictionary or close the connection. If a message begins a generation that continues the current generation, the
// decoder changes to the new generation. If a generation starts empty, the caller must create a new decoder. The caller
// must keep the decoder while the sender reconnects, because no other object has these nodes and frames.
class BatchDecoder {
 public:
  explicit BatchDecoder(uint32_t generation, DictionaryLimits limits = {}) : generation_(generation), limits_(limits) {}
  // Continues a generation after the definitions that `have` counts. `nodes` must contain the nodes and frames of these
  // definitions.
  BatchDecoder(uint32_t generation, const DictionaryCounts& have, HeldNodes nodes, DictionaryLimits limits = {});

  // Decodes a kDefinitions or a kBatch payload. The result for kDefinitions has sequence 0 and no samples.
  // InvalidArgument if the payload is malformed. FailedPrecondition if the payload's generation neither equals nor
  // continues the current generation, if its definitions do not continue at have(), or if the sender's hash over all
  // nodes differs. OutOfRange if a table of the dictionary would exceed its limit.
  absl::StatusOr<IncomingBatch> Decode(MessageType type, uint64_t sequence, std::string_view payload);
  // Returns the work (decode_work.h) of all calls of Decode and Undo since the last call of TakeWork, including calls
  // of Decode that failed.
  uint64_t TakeWork() { return std::exchange(work_, 0); }
  // Undoes the last Decode, if that Decode succeeded. Call Undo before the same message is decoded again.
  void Undo();

  uint32_t generation() const { return generation_; }
  const DictionaryCounts& have() const { return have_; }
  // Removes the definitions that `have` does not count. Returns false and changes nothing if `have` counts more
  // definitions than this decoder has.
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
  std::optional<Position> before_;  // state before the last message; empty: nothing to undo
  uint64_t work_ = 0;
};

}  // namespace tributary::intake
