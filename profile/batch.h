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

// The machine that samples come from, or whatever stands for one.
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

// Who sends: fixed for the life of a collector process.
struct SessionInfo : NodeInfo {
  std::array<uint8_t, 16> session_id{};  // random
};

// An earlier session of the same node that has ended. A batch's first answers for `captured` less what the others have,
// whatever became of it: what of that is neither stored nor told as lost is lost for `reason`.
struct ClosedSession {
  std::array<uint8_t, 16> session_id{};
  SampleCounts captured;
  LossReason reason = LossReason::kCollectorKilled;  // or kShutdown

  friend bool operator==(const ClosedSession&, const ClosedSession&) = default;
};
constexpr size_t kClosedSessionsMax = 32;  // a batch

// Samples in order of time, and the dictionary that their ids are of. Several batches share one dictionary, which goes
// on growing behind them; a new dictionary object means that ids start again.
struct Batch {
  uint64_t sequence = 0;  // from 1, without gaps, for the life of the session
  ClockPair clock;        // read when the batch was closed
  std::vector<Sample> samples;
  Accounting accounting;  // the session's totals when the batch was closed
  std::shared_ptr<const Dictionary> dictionary;
  std::vector<SampleTypeDefinition> sample_types;  // of numbers that are not our own: TypesOf has those as well
  std::vector<ClosedSession> closes;               // at most kClosedSessionsMax; telling one again changes nothing
};

SampleCounts CountSamples(std::span<const Sample> samples);

// What the batch's numbers of types mean, wherever not every release knows it: the batch's own definitions, and those
// of our own types that its samples or its accounting have.
std::vector<SampleTypeDefinition> TypesOf(const Batch& batch);

// What takes batches: the intake client, the reducer's store, OTLP and log encoders.
class BatchSink {
 public:
  virtual ~BatchSink() = default;

  // Takes over one batch. Never blocks. A sink that must drop counts it by LossReason itself; an error is for the log.
  // Called on the owner's loop.
  virtual absl::Status Take(Batch batch) = 0;
};

}  // namespace tributary
