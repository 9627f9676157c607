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

// What a time becomes on the wire.
MonotonicNs RoundToWire(MonotonicNs time);

}  // namespace tributary::intake
