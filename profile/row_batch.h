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

// The values are in the store: only append new values.
enum class SourceKind : uint8_t {
  kSession = 0,  // a session of a collector; id: its session id, 16 bytes
  kImport = 1,   // imported data; id: 1 to 64 bytes, the name of the import's owner
};

// The source of a batch. The store has totals for each source. It recognises a batch that it already has by the source
// and the sequence number.
struct Source {
  SourceKind kind = SourceKind::kSession;
  std::string id;

  static Source Of(const SessionInfo& session) {
    return {SourceKind::kSession, {session.session_id.begin(), session.session_id.end()}};
  }
  friend auto operator<=>(const Source&, const Source&) = default;
};

// The earlier generation that a new generation continues, and the eviction between them: evicted definitions are
// dropped, and the kept definitions get new ids.
struct DerivedFrom {
  uint32_t generation = 0;
  Eviction eviction;
};

// One batch in the form that a store commits: samples and process events, and the definitions that they need and that
// earlier batches do not have. Sources of every kind use it. `clock` is used to convert the monotonic times of samples
// to unix times. If the samples already have unix times, the two times of `clock` are equal.
struct RowBatch {
  Source source;
  std::shared_ptr<const NodeInfo> node;
  void SetSession(const std::shared_ptr<const SessionInfo>& session) {
    source = Source::Of(*session);
    node = session;
  }

  // The batch's number at its source: from 1, without gaps. If a batch with this number is already durable, the store
  // ignores the batch. 0: the batch has no number, so the store cannot recognise a repeated batch.
  uint64_t sequence = 0;
  // The number of the oldest batch that the source can still send. If the store does not have all batches from this
  // number up to the previous batch, it refuses this batch, like a batch with unknown definitions. The source then
  // sends again, from the first batch that is not durable.
  uint64_t oldest_held = 1;

  // A generation is the time during which the source uses one dictionary, so ids keep their meaning. `before`: the
  // counts of definitions in the source's earlier batches of this generation. The ids of `definitions` continue at
  // these counts. Generation 0: the definitions are only for this batch, and later batches cannot refer to them.
  uint32_t generation = 0;
  std::optional<DerivedFrom> derived;  // applied first; `before` are the counts after it
  DictionaryCounts before;
  Definitions definitions;

  ClockPair clock;  // when the batch was closed
  std::vector<Sample> samples;
  std::vector<ProcessEvent> events;
  std::vector<SampleTypeDefinition> sample_types;  // of the type numbers above kSampleTypesUndefinedMax
  // If the batch has a sequence number: the source's totals when the batch was closed. If not: the counts of only this
  // batch, which the store adds to the source's totals.
  Accounting accounting;
  std::vector<ClosedSession> closes;
  // Bytes received from this source since the previous batch. They are counted even if this batch is a duplicate.
  uint64_t wire_bytes = 0;
};

}  // namespace tributary
