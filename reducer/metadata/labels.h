#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reducer/store/store.h"

namespace tributary {

// Kinds of Kubernetes workloads, as in k8s.KIND.name. A kind that owns others stands before them.
constexpr std::array<std::string_view, 6> kWorkloadKinds = {"deployment", "statefulset", "daemonset",
                                                            "cronjob",    "job",         "replicaset"};
inline bool IsWorkloadKind(std::string_view kind) {
  return std::find(kWorkloadKinds.begin(), kWorkloadKinds.end(), kind) != kWorkloadKinds.end();
}

// Labels that select a series without a join. Each is an OpenTelemetry attribute; LabelValue reads its value from the
// store's rows. All other labels are attributes of the series' resource (resource_joiner.h); AttributeNames knows their
// names. host.name and host.id are in both groups, because a host may report other values than its session. node.id is
// not an OpenTelemetry attribute: it is the id that the node reports to its reducers.
enum class Label {
  kProcessPid,
  kProcessExecutableName,
  kProcessExecutablePath,
  kProcessCommand,
  kThreadId,
  kThreadName,
  kContainerId,
  kHostName,
  kHostId,
  kNodeId,
};

std::string_view LabelName(Label label);            // "process.pid"
std::string NormalizeLabel(std::string_view name);  // writes `.`, `-` and `/` as `_`
// Returns true if NormalizeLabel(name) equals `normalized`.
bool IsNormalizedAs(std::string_view name, std::string_view normalized);
std::optional<Label> FindLabel(std::string_view name);  // accepts every spelling

inline bool IsHostLabel(Label label) { return label == Label::kHostName || label == Label::kHostId; }

// Labels of a thread cannot be answered from sums, which are kept per process.
inline bool IsThreadLabel(Label label) { return label == Label::kThreadId || label == Label::kThreadName; }

// Returns the part after the last '/', or the whole path if it has no '/'.
std::string_view BaseName(std::string_view path);

// Returns the value as people see it. Ill-formed UTF-8 is replaced, as in every JSON answer, so that a user can query
// for a value that a page shows. Returns "" if the process or thread does not have the label.
std::string LabelValue(Label label, const store::ProcessRow& process);
std::string LabelValue(Label label, const store::ThreadRow& thread);

}  // namespace tributary
