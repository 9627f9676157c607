#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "intake/frame.h"
#include "intake/held_nodes.h"
#include "intake/messages.h"
#include "profile/batch.h"

namespace tributary::intake {

// Turns batches into frames for one dictionary generation. The two ends' dictionaries are equal: ids on the wire are
// the dictionary's own, and each batch is preceded by the definitions that `sent` does not cover yet. Definitions and
// samples are columns (docs/intake-protocol.md). Times are rounded to 100 µs; everything else is exact.
//
// A generation either starts empty, or continues the one before without what was evicted. A client that goes on to a
// batch with another dictionary:
//   encoder = BatchEncoder::Following(++generation, encoder ? &*encoder : nullptr, *batch.dictionary);
// does the second whenever it can: when that dictionary was derived from the one that the encoder speaks, however much
// of that was told. After a reconnect that kept the dictionary, set_sent and go on; after one that did not, and on
// NeedDictionary, BatchEncoder(++generation): nothing of earlier generations is known there.
class BatchEncoder {
 public:
  static constexpr size_t kSamplesPerBatchMax = 100'000;

  // Starts empty: everything is told.
  explicit BatchEncoder(uint32_t generation) : generation_(generation) {}
  // For batches of `next`: continues `previous` if CanContinue, else starts empty. `previous` may be null.
  static BatchEncoder Following(uint32_t generation, const BatchEncoder* previous, const Dictionary& next);

  // Whether `next` was derived from the dictionary of the batches encoded so far, and enough of what was told is
  // dropped.
  bool CanContinue(const Dictionary& next) const;

  // The frames of one batch: kDefinitions frames while there is more than a frame may hold, then one kBatch.
  // `batch.dictionary` is the generation's. A batch never has more than kSamplesPerBatchMax samples.
  std::vector<std::string> Encode(const Batch& batch);

  uint32_t generation() const { return generation_; }
  // What the peer has of this generation once it has all frames that were encoded.
  const DictionaryCounts& sent() const { return sent_; }
  // It has this much of it: the peer knows the generation.
  void set_sent(const DictionaryCounts& sent);

 private:
  // What was dropped, of what was told; nothing when `next` cannot be told so.
  std::optional<Eviction> EvictionFor(const Dictionary& next) const;

  uint32_t generation_;
  DictionaryCounts sent_;
  std::weak_ptr<const Dictionary> dictionary_;  // of the last batch; to be compared
  std::optional<DerivedFrom> derived_;          // not told yet
  Followers followers_;
  uint32_t followed_nodes_ = 1;  // nodes that `followers_` know
};

// Which generation a kDefinitions or kBatch payload belongs to, and continues (0: none), without decoding the rest.
struct GenerationInfo {
  uint32_t generation = 0, derived_from = 0;
};
absl::StatusOr<GenerationInfo> GenerationOf(MessageType type, std::string_view payload);

// What a time becomes on the wire.
MonotonicNs RoundToWire(MonotonicNs time);

// The reading end. Holds of the dictionary the nodes, where frames are and what follows them (HeldNodes, some MiB at
// most), and counts of the rest: whoever stores the batches maps ids on. After an error nothing has changed, and the
// session must send NeedDictionary or close. It follows a generation that continues the one it holds; for one that
// starts empty, make another decoder. Keep it over a reconnect: nothing else knows what it knows.
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
