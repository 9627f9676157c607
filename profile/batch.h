#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/types.h"
#include "profile/dictionary.h"
#include "profile/model.h"
#include "profile/process_event.h"

namespace tributary {

// Describes the node that samples come from. For imported samples, these values are part of the import.
struct NodeInfo {
  std::string node_id;  // does not change at a reboot: /etc/machine-id, or else the host name
  std::string boot_id;  // /proc/sys/kernel/random/boot_id
  std::string host_name;
  std::string kernel_release;
  std::string architecture;  // "amd64", "arm64" (OpenTelemetry host.arch)
  std::string agent_version;
  uint32_t cpu_count = 0;
  uint32_t sample_rate_hz = 0;
};

// Describes the sender of batches. During the life of a collector process, only sample_rate_hz can change.
struct SessionInfo : NodeInfo {
  std::array<uint8_t, 16> session_id{};  // random; Delivery sets the last byte to the reducer's index
};

// An earlier session of the same node that has ended. `captured` is the number of samples that the session must account
// for. Samples of this number that were neither stored nor reported lost count as lost for `reason`. From the number of
// the first closed session of a batch, the reducer first subtracts the samples of the batch's other closed sessions.
// For another closed session that it knows, the reducer uses the samples that were stored or reported lost, and ignores
// `captured`.
struct ClosedSession {
  std::array<uint8_t, 16> session_id{};
  SampleCounts captured;
  LossReason reason = LossReason::kCollectorKilled;  // or kShutdown

  friend bool operator==(const ClosedSession&, const ClosedSession&) = default;
};
constexpr size_t kClosedSessionsMax = 32;  // per batch

// Samples and process events, each in order of time, with the dictionary that defines their ids. Several batches share
// one dictionary. The dictionary may grow after a batch was closed. In another dictionary object, the same ids have
// other meanings.
struct Batch {
  uint64_t sequence = 0;  // the batch's number in its session: from 1, without gaps
  ClockPair clock;        // read when the batch was closed
  std::vector<Sample> samples;
  std::vector<ProcessEvent> events;  // at most kProcessEventsPerBatchMax
  Accounting accounting;             // the session's totals when the batch was closed
  std::shared_ptr<const Dictionary> dictionary;
  std::vector<SampleTypeDefinition> sample_types;  // of all type numbers that are not built in
  std::vector<ClosedSession> closes;               // at most kClosedSessionsMax; may be sent repeatedly
};

SampleCounts CountSamples(std::span<const Sample> samples);
// Returns the numbers of samples by type, and the number of process events, of a Batch or a RowBatch.
SampleCounts CountRecords(std::span<const Sample> samples, std::span<const ProcessEvent> events);
template <typename AnyBatch>
SampleCounts CountRecords(const AnyBatch& batch) {
  return CountRecords(batch.samples, batch.events);
}

// Returns the sample type definitions that must be sent with the batch. These are the batch's own definitions, and
// those built-in types above kSampleTypesUndefinedMax that occur in its samples, accounting or closed sessions: earlier
// releases do not know these built-in types.
std::vector<SampleTypeDefinition> TypesOf(const Batch& batch);

// Receives batches. For example, Delivery (intake/client/) sends them to reducers, and RecordingSink
// (intake/recording/) writes them to a file.
class BatchSink {
 public:
  virtual ~BatchSink() = default;

  // Takes ownership of one batch. Does not wait for a reducer, but may write to a disk. If the sink drops samples, it
  // must count them by LossReason. The caller only logs a returned error. Called on the loop's thread.
  virtual absl::Status Take(Batch batch) = 0;
};

}  // namespace tributary
