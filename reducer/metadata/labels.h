#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reducer/store/store.h"

namespace tributary {

// Kinds of Kubernetes workloads, as in the attribute k8s.KIND.name. A kind comes before the kinds that its objects own:
// deployment before replicaset, cronjob before job.
constexpr std::array<std::string_view, 6> kWorkloadKinds = {"deployment", "statefulset", "daemonset",
                                                            "cronjob",    "job",         "replicaset"};
inline bool IsWorkloadKind(std::string_view kind) {
  return std::find(kWorkloadKinds.begin(), kWorkloadKinds.end(), kind) != kWorkloadKinds.end();
}

// Labels with values in the store's rows of processes and threads, where LabelValue reads them. All other labels are
// attributes of the process's resource (resource_joiner.h), and AttributeNames has their names. host.name and host.id
// are in both groups, because a host's metadata may have other values than the session of its node. All of these labels
// are OpenTelemetry attributes except node.id: this is the id that the node sends to reducers.
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
// Returns true if NormalizeLabel(name) == normalized. Allocates no memory.
bool IsNormalizedAs(std::string_view name, std::string_view normalized);
std::optional<Label> FindLabel(std::string_view name);  // ignores differences that NormalizeLabel removes

inline bool IsHostLabel(Label label) { return label == Label::kHostName || label == Label::kHostId; }

// A query for a label of a thread needs samples: the stored sums are per process.
inline bool IsThreadLabel(Label label) { return label == Label::kThreadId || label == Label::kThreadName; }

// Returns the part after the last '/', or the whole path if it has no '/'.
std::string_view BaseName(std::string_view path);

// Returns the label's value as the API shows it: ill-formed UTF-8 is replaced. So a user can copy a value from the web
// page into a query. Returns "" if the process or thread does not have the label.
std::string LabelValue(Label label, const store::ProcessRow& process);
std::string LabelValue(Label label, const store::ThreadRow& thread);

}  // namespace tributary
