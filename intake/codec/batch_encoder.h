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

// Encodes batches as frames of one dictionary generation. Frames contain the ids of the batch's dictionary, because the
// peer builds an equal dictionary. In the frames, the definitions that were not sent yet precede the samples.
// Definitions, samples and process events are encoded as columns (docs/intake-protocol.md). Times of samples and events
// are rounded to 100 µs. All other values are exact.
//
// A generation either starts empty, or continues the previous generation without the evicted definitions. If the next
// batch has another dictionary, the client calls:
//   encoder = BatchEncoder::Following(++generation, encoder ? &*encoder : nullptr, *batch.dictionary);
// Following continues the previous generation if CanContinue returns true. This requires that the new dictionary is
// derived from the encoder's dictionary. The encoder need not have sent all definitions of its dictionary. After a
// reconnect, Welcome says whether the peer still has the generation. If so, the client calls set_sent and uses the
// encoder again. If the peer no longer has the generation, or has sent NeedDictionary, the client creates
// BatchEncoder(++generation), which starts empty.
class BatchEncoder {
 public:
  static constexpr size_t kSamplesPerBatchMax = 100'000;

  // Returns true if a batch with these numbers of samples and process events fits into one message, whatever their
  // values are. 100,000 samples fit without events, and 50,000 samples fit with kProcessEventsPerBatchMax events.
  static bool Fits(size_t samples, size_t events);
  static bool Fits(const Batch& batch) { return Fits(batch.samples.size(), batch.events.size()); }

  // Starts an empty generation: all definitions will be sent.
  explicit BatchEncoder(uint32_t generation) : generation_(generation) {}
  // False: the peer has not set kFeatureInterpreters, so frames of the kind kInterpreter are sent as kNative. All
  // batches of one generation, and of the generations that continue it, must have the same value.
  void set_knows_interpreters(bool knows) { knows_interpreters_ = knows; }
  bool knows_interpreters() const { return knows_interpreters_; }
  // Returns the encoder for batches with the dictionary `next`. It continues the generation of `previous` if
  // previous->CanContinue(next), else it starts empty. `previous` may be null.
  static BatchEncoder Following(uint32_t generation, const BatchEncoder* previous, const Dictionary& next);

  // Returns true if `next` was derived from the dictionary of the batches encoded so far, and if `next` omits enough of
  // the sent definitions (DropsEnough).
  bool CanContinue(const Dictionary& next) const;

  // Returns the frames of one batch: the definitions that do not fit into the last frame, as kDefinitions frames, then
  // one kBatch frame. `batch.dictionary` must be the generation's dictionary, and Fits(batch) must be true.
  // Encodes `batch.events` and their numbers in the accounting, if there are any. If the peer has not set
  // kFeatureProcessEvents, the caller must remove them first (WithoutEvents).
  std::vector<std::string> Encode(const Batch& batch);

  uint32_t generation() const { return generation_; }
  // The counts of definitions that the peer has after it has received all encoded frames.
  const DictionaryCounts& sent() const { return sent_; }
  // Sets the counts of definitions that the peer has. Call it only if the peer has this generation.
  void set_sent(const DictionaryCounts& sent);

 private:
  // Returns the eviction that leads to `next`, limited to definitions that were sent. Returns nullopt if `next` cannot
  // continue this generation.
  std::optional<Eviction> EvictionFor(const Dictionary& next) const;

  uint32_t generation_;
  bool knows_interpreters_ = true;
  DictionaryCounts sent_;
  std::weak_ptr<const Dictionary> dictionary_;  // of the last batch; for comparison only
  std::optional<DerivedFrom> derived_;          // not sent yet
  Followers followers_;
  uint32_t followed_nodes_ = 1;  // nodes with smaller ids are in `followers_`
};

// Removes the process events, and all numbers of process events, from a batch.
Batch WithoutEvents(Batch batch);

// Rounds a time to the resolution of the wire format, 100 µs.
MonotonicNs RoundToWire(MonotonicNs time);

}  // namespace tributary::intake
