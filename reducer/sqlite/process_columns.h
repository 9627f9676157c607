#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "reducer/store/store_times.h"

// Encodes and decodes the descriptions of processes and threads, which the store keeps as columns (docs/store.md). They
// are stored in pieces. A piece describes processes and threads that samples of one slot of ten minutes refer to. A
// piece that was converted from schema 2 may cover several slots. The functions are pure. The decoder checks
// everything: a corrupt file gives DataLoss, never an out-of-bounds read.

namespace tributary::store {

// All ids are ids of the store. A member that is a text in profile/model.h is the id of a string here.
struct StoredProcess {
  uint32_t no = 0;
  int64_t machine = 0;
  uint32_t boot = 0;
  int32_t pid = 0, parent = 0;
  int64_t start_time_ns = 0;
  uint32_t exec_sequence = 0;
  uint32_t comm = 0, executable_path = 0, container_id = 0, cgroup_path = 0, attributes = 0;
  uint32_t executable = 0;
};
struct StoredThread {
  uint32_t no = 0, process = 0;
  int32_t tid = 0;
  uint32_t name = 0;
};
struct StoredProcesses {
  std::vector<StoredProcess> processes;
  std::vector<StoredThread> threads;
};

enum class PieceParts { kProcesses, kProcessesAndThreads };

std::string EncodeProcesses(const StoredProcesses& rows);
// Without threads, does not check the bytes of threads, which come last.
absl::Status DecodeProcesses(std::string_view bytes, StoredProcesses* out,
                             PieceParts parts = PieceParts::kProcessesAndThreads);

}  // namespace tributary::store
