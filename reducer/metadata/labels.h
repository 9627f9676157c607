#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reducer/store/store.h"

namespace tributary {

// Of Kubernetes workloads, as in k8s.KIND.name; what owns others stands before them.
constexpr std::array<std::string_view, 6> kWorkloadKinds = {"deployment", "statefulset", "daemonset",
                                                            "cronjob",    "job",         "replicaset"};
inline bool IsWorkloadKind(std::string_view kind) {
  return std::find(kWorkloadKinds.begin(), kWorkloadKinds.end(), kind) != kWorkloadKinds.end();
}

// What a series can be selected by without a join: OpenTelemetry attribute names, and where each value comes from. All
// others are attributes of its resource (resource_joiner.h); AttributeNames knows which there are. host.name and
// host.id are both: a host may tell others than its session. node.id is ours: what the node calls itself to its
// reducers.
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
std::string NormalizeLabel(std::string_view name);  // `.`, `-` and `/` as `_`
// Whether `name` is written as `normalized` when it is normalized.
bool IsNormalizedAs(std::string_view name, std::string_view normalized);
std::optional<Label> FindLabel(std::string_view name);  // however it is written

inline bool IsHostLabel(Label label) { return label == Label::kHostName || label == Label::kHostId; }

// Labels of a thread cannot be answered from sums, which are kept per process.
inline bool IsThreadLabel(Label label) { return label == Label::kThreadId || label == Label::kThreadName; }

// Behind the last '/'; the whole when there is none.
std::string_view BaseName(std::string_view path);

// Values as people see them: ill-formed UTF-8 replaced, as in every JSON answer, so that what a page shows can be asked
// for. "" where the process or thread has no such label.
std::string LabelValue(Label label, const store::ProcessRow& process);
std::string LabelValue(Label label, const store::ThreadRow& thread);

}  // namespace tributary
