#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "intake/codec/held_nodes.h"
#include "intake/wire/messages.h"
#include "profile/batch.h"

namespace tributary::intake {

// Turns batches into frames for one dictionary generation. Ids on the wire are the ids of the batch's dictionary,
// because both ends hold equal dictionaries. Each batch is preceded by the definitions that `sent` does not cover yet.
// Definitions and samples are columns (docs/intake-protocol.md). Times are rounded to 100 µs; everything else is exact.
//
// A generation either starts empty, or continues the previous one without the evicted definitions. A client that has
// a batch with another dictionary calls:
//   encoder = BatchEncoder::Following(++generation, encoder ? &*encoder : nullptr, *batch.dictionary);
// Following continues the generation if CanContinue is true. For this the new dictionary must be derived from the
// encoder's dictionary; the encoder need not have sent all of that dictionary. If the peer still knows the generation
// after a reconnect (Welcome), call set_sent and use the encoder again. Otherwise, and after NeedDictionary, use
// BatchEncoder(++generation): the peer knows no earlier generation.
class BatchEncoder {
 public:
  static constexpr size_t kSamplesPerBatchMax = 100'000;

  // Starts empty: all definitions will be sent.
  explicit BatchEncoder(uint32_t generation) : generation_(generation) {}
  // For batches of `next`: continues `previous` if CanContinue, else starts empty. `previous` may be null.
  static BatchEncoder Following(uint32_t generation, const BatchEncoder* previous, const Dictionary& next);

  // True if `next` was derived from the dictionary of the batches encoded so far, and if enough of the sent definitions
  // are dropped (DropsEnough).
  bool CanContinue(const Dictionary& next) const;

  // Returns the frames of one batch: kDefinitions frames as long as the definitions do not fit into one frame, then one
  // kBatch. `batch.dictionary` must be the generation's dictionary. A batch must not have more than kSamplesPerBatchMax
  // samples.
  std::vector<std::string> Encode(const Batch& batch);

  uint32_t generation() const { return generation_; }
  // The counts of definitions that the peer has when it has received all encoded frames.
  const DictionaryCounts& sent() const { return sent_; }
  // Sets how much of this generation the peer has. The peer must know the generation.
  void set_sent(const DictionaryCounts& sent);

 private:
  // Returns the eviction, limited to definitions that were sent; nullopt if `next` cannot continue this generation.
  std::optional<Eviction> EvictionFor(const Dictionary& next) const;

  uint32_t generation_;
  DictionaryCounts sent_;
  std::weak_ptr<const Dictionary> dictionary_;  // of the last batch; for comparison only
  std::optional<DerivedFrom> derived_;          // not sent yet
  Followers followers_;
  uint32_t followed_nodes_ = 1;  // nodes that `followers_` know
};

// Rounds a time to the resolution of the wire format.
MonotonicNs RoundToWire(MonotonicNs time);

}  // namespace tributary::intake
