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

namespace tributary {

// The node that samples come from: a machine, or for an import the values that the import gives instead.
struct NodeInfo {
  std::string node_id;  // stable over reboots: /etc/machine-id, else the host name
  std::string boot_id;  // /proc/sys/kernel/random/boot_id
  std::string host_name;
  std::string kernel_release;
  std::string architecture;  // "amd64", "arm64" (OpenTelemetry host.arch)
  std::string agent_version;
  uint32_t cpu_count = 0;
  uint32_t sample_rate_hz = 0;
};

// The sender of batches. Does not change during the life of a collector process.
struct SessionInfo : NodeInfo {
  std::array<uint8_t, 16> session_id{};  // random
};

// An earlier session of the same node that has ended. The first closed session of a batch accounts for its `captured`,
// minus the samples of the other closed sessions. Those of these samples that were neither stored nor reported lost
// count as lost for `reason`.
struct ClosedSession {
  std::array<uint8_t, 16> session_id{};
  SampleCounts captured;
  LossReason reason = LossReason::kCollectorKilled;  // or kShutdown

  friend bool operator==(const ClosedSession&, const ClosedSession&) = default;
};
constexpr size_t kClosedSessionsMax = 32;  // per batch

// Samples in order of time, with the dictionary that defines their ids. Several batches share one dictionary, which
// keeps growing after a batch is closed. A new dictionary object means that ids start again.
struct Batch {
  uint64_t sequence = 0;  // from 1, without gaps, for the life of the session
  ClockPair clock;        // read when the batch was closed
  std::vector<Sample> samples;
  Accounting accounting;  // the session's totals when the batch was closed
  std::shared_ptr<const Dictionary> dictionary;
  std::vector<SampleTypeDefinition> sample_types;  // of type numbers that are not built in; TypesOf adds built-in ones
  std::vector<ClosedSession> closes;               // at most kClosedSessionsMax; sending one again changes nothing
};

SampleCounts CountSamples(std::span<const Sample> samples);

// Returns the sample type definitions that must be sent with the batch, because some releases do not know these type
// numbers: the batch's own definitions, and the built-in types above kSampleTypesUndefinedMax that its samples,
// accounting or closed sessions have.
std::vector<SampleTypeDefinition> TypesOf(const Batch& batch);

// Receives batches. Implemented by the intake client, the reducer's store, and the OTLP and log encoders.
class BatchSink {
 public:
  virtual ~BatchSink() = default;

  // Takes ownership of one batch. Never blocks. A sink that must drop samples counts them by LossReason itself. The
  // caller only logs a returned error. Called on the owner's loop.
  virtual absl::Status Take(Batch batch) = 0;
};

}  // namespace tributary
