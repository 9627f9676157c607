#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/types.h"
#include "profile/batch.h"
#include "profile/definitions.h"
#include "profile/eviction.h"

namespace tributary {

// Values are in the store: append only.
enum class SourceKind : uint8_t {
  kSession = 0,  // one run of a collector; id: its session's 16 bytes
  kImport = 1,   // data that somebody hands over as a whole; id: 1 to 64 bytes that name whose they are
};

// Whose samples a batch has: its totals are kept, and its batches are told apart by their numbers.
struct Source {
  SourceKind kind = SourceKind::kSession;
  std::string id;

  static Source Of(const SessionInfo& session) {
    return {SourceKind::kSession, {session.session_id.begin(), session.session_id.end()}};
  }
  friend auto operator<=>(const Source&, const Source&) = default;
};

// How a generation of definitions continues an earlier one: without what was evicted, the rest numbered anew.
struct DerivedFrom {
  uint32_t generation = 0;
  Eviction eviction;
};

// Samples with the definitions that they are the first to need, by value: what a store commits, from whomever it came.
// Times are on the clock that `clock` reads; where they are unix times already, its two readings are the same.
struct RowBatch {
  Source source;
  std::shared_ptr<const NodeInfo> node;
  void SetSession(const std::shared_ptr<const SessionInfo>& session) {
    source = Source::Of(*session);
    node = session;
  }

  // From 1, without gaps, for the life of the source: a batch whose number is durable changes nothing. 0: it has none,
  // and nothing tells whether it was there before.
  uint64_t sequence = 0;
  // The oldest batch that the source still holds. A batch that skips one at or above this is refused like one whose
  // definitions are not known, so that the source starts again at the first that is not durable.
  uint64_t oldest_held = 1;

  // `definitions` continue at `before`, which is what the source's earlier batches of this generation have defined.
  // Generation 0: they are for this batch alone, and forgotten with it.
  uint32_t generation = 0;
  std::optional<DerivedFrom> derived;  // done before anything else here; `before` is after it
  DictionaryCounts before;
  Definitions definitions;

  ClockPair clock;  // when the batch was closed
  std::vector<Sample> samples;
  std::vector<SampleTypeDefinition> sample_types;  // of numbers from kSampleTypesUndefinedMax on that samples have
  // With a sequence: the source's totals when the batch was closed; without one: what this batch adds to them.
  Accounting accounting;
  std::vector<ClosedSession> closes;
  // Received from this source since the batch before: added even where the batch is a duplicate.
  uint64_t wire_bytes = 0;
};

}  // namespace tributary
