#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "intake/frame.h"
#include "intake/messages.h"
#include "profile/batch.h"

namespace tributary::intake {

// Turns batches into frames for one dictionary generation. The two ends' dictionaries are equal: ids on the wire are
// the dictionary's own, and each batch is preceded by the definitions that `sent` does not cover yet. Definitions and
// samples are LEB128 columns (docs/intake-protocol.md): nodes as chains (distance back to the node a chain grows from,
// length, frame references with 0 = the next new frame), samples sorted by time: time deltas in units of 100 µs,
// thread, node (0 = the next new stack, else distance back from the newest), cpu; type, ending, value and count as run
// lengths. Times are rounded to 100 µs; everything else is exact.
class BatchEncoder {
 public:
  explicit BatchEncoder(uint32_t generation) : generation_(generation) {}

  // The frames of one batch: kDefinitions frames while there is more than a frame may hold, then one kBatch.
  // `batch.dictionary` is the generation's. A batch never has more than kSamplesPerBatchMax samples.
  std::vector<std::string> Encode(const Batch& batch);
  static constexpr size_t kSamplesPerBatchMax = 100'000;

  uint32_t generation() const { return generation_; }
  const DictionaryCounts& sent() const { return sent_; }
  void set_sent(const DictionaryCounts& sent) { sent_ = sent; }

 private:
  uint32_t generation_;
  DictionaryCounts sent_;
};

// Which generation a kDefinitions or kBatch payload belongs to, without decoding the rest.
absl::StatusOr<uint32_t> GenerationOf(MessageType type, std::string_view payload);

// What a time becomes on the wire.
MonotonicNs RoundToWire(MonotonicNs time);

// The reading end of one generation. Holds counts only, not the dictionary: whoever stores the batches maps ids on.
// After an error nothing has changed, and the session must send NeedDictionary or close.
class BatchDecoder {
 public:
  explicit BatchDecoder(uint32_t generation, DictionaryCounts have = {}, DictionaryLimits limits = {})
      : generation_(generation), have_(have), limits_(limits) {
    if (have_.nodes == DictionaryCounts().nodes) nodes_hash_ = 0;
  }

  // A kDefinitions or a kBatch payload; a kDefinitions gives an IncomingBatch with sequence 0 and no samples.
  // InvalidArgument: malformed. FailedPrecondition: another generation, definitions that do not continue at `have`, or
  // nodes that are not the sender's (its hash over all of them is another).
  // OutOfRange: over a limit of the dictionary.
  absl::StatusOr<IncomingBatch> Decode(MessageType type, uint64_t sequence, std::string_view payload);

  uint32_t generation() const { return generation_; }
  const DictionaryCounts& have() const { return have_; }

 private:
  uint32_t generation_;
  DictionaryCounts have_;
  // Over the nodes so far. Not known when a generation is taken up in the middle: the first batch then tells it.
  std::optional<uint64_t> nodes_hash_;
  DictionaryLimits limits_;
};

}  // namespace tributary::intake
