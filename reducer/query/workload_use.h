#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "reducer/store/store.h"

namespace tributary {

struct QueryContext;

// A workload such as a Deployment, or a service of an environment, by the attributes of its processes.
struct WorkloadKey {
  std::string kind;  // one of kWorkloadKinds, or "service"
  std::string name_space, name;
  std::string environment;  // deployment.environment.name of a service; "" for workloads

  friend auto operator<=>(const WorkloadKey&, const WorkloadKey&) = default;
};
struct WorkloadWindow {
  WorkloadKey workload;
  store::TimeRange range;
};
struct WorkloadUse {
  uint64_t value = 0, count = 0;
};

// Returns for each window the sum over the samples of its workload in its range, of the type of `context`. For a gauge,
// the mean over the minutes in which the workload has samples. The request's range must contain the ranges of all
// windows; its selector has no effect. Reads the processes and the sums of each shard once, however many windows there
// are. An empty or reversed range gives 0.
absl::StatusOr<std::vector<WorkloadUse>> MakeWorkloadUse(const QueryContext& context,
                                                         std::span<const WorkloadWindow> windows);

}  // namespace tributary
