#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/types.h"
#include "reducer/store/store.h"

namespace tributary {

struct QueryContext;

// The selected processes and threads, and the containers, hosts, pods, namespaces, workloads and services to which they
// belong.
struct SeriesList {
  struct Process {
    store::ProcessRow row;
    uint64_t value = 0, count = 0;
    UnixNs ended;  // 0: not known to have ended; AddProcessEnds sets it
  };
  struct Thread {
    Pid pid;
    store::ThreadRow row;
    std::string host_name;
    uint64_t value = 0, count = 0;
  };
  struct Named {
    std::string id;          // of a container, pod (uid) or host
    std::string name;        // "": unknown
    std::string name_space;  // of a pod, workload or service
    std::string kind;        // of a workload: "deployment"
    uint64_t value = 0, count = 0;
  };
  std::vector<Process> processes;
  std::vector<Thread> threads;
  std::vector<Named> containers, hosts, pods, namespaces, workloads, services;
  bool truncated = false;
};

// Returns at most `limit` entries per list, those with the largest values.
absl::StatusOr<SeriesList> MakeSeries(const QueryContext& context, size_t limit);

}  // namespace tributary
