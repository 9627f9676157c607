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
  kImport = 1,   // data that is imported as a whole; id: 1 to 64 bytes that name its owner
};

// The source of a batch. The store keeps the source's totals, and identifies its batches by their sequence numbers.
struct Source {
  SourceKind kind = SourceKind::kSession;
  std::string id;

  static Source Of(const SessionInfo& session) {
    return {SourceKind::kSession, {session.session_id.begin(), session.session_id.end()}};
  }
  friend auto operator<=>(const Source&, const Source&) = default;
};

// Says how a generation of definitions continues an earlier one: the evicted definitions are dropped, and the rest gets
// new ids.
struct DerivedFrom {
  uint32_t generation = 0;
  Eviction eviction;
};

// One batch as a store commits it, for every kind of source: samples, and the definitions that these samples are the
// first to need. `clock` converts the samples' monotonic times to unix times. If the times are unix times already, both
// times of `clock` are equal.
struct RowBatch {
  Source source;
  std::shared_ptr<const NodeInfo> node;
  void SetSession(const std::shared_ptr<const SessionInfo>& session) {
    source = Source::Of(*session);
    node = session;
  }

  // From 1, without gaps, for the life of the source. A batch with a number that is already durable changes nothing. 0:
  // the batch has no number, so a repeated batch is not detected.
  uint64_t sequence = 0;
  // The number of the oldest batch that the source still holds. If a batch comes without all batches from this number
  // on before it, the store refuses it like a batch with unknown definitions. The source then starts again at the first
  // batch that is not durable.
  uint64_t oldest_held = 1;

  // `definitions` continue at `before`: the counts that the source's earlier batches of this generation have defined.
  // Generation 0: the definitions are for this batch alone and are forgotten with it.
  uint32_t generation = 0;
  std::optional<DerivedFrom> derived;  // applied before everything else here; `before` is the state after it
  DictionaryCounts before;
  Definitions definitions;

  ClockPair clock;  // when the batch was closed
  std::vector<Sample> samples;
  std::vector<SampleTypeDefinition> sample_types;  // of the type numbers above kSampleTypesUndefinedMax
  // With a sequence: the source's totals when the batch was closed. Without a sequence: the counts of this batch alone,
  // which are added to the source's totals.
  Accounting accounting;
  std::vector<ClosedSession> closes;
  // Bytes received from this source since the previous batch. They are counted even if this batch is a duplicate.
  uint64_t wire_bytes = 0;
};

}  // namespace tributary
