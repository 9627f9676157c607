#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/metrics.h"
#include "reducer/store/store.h"
#include "reducer/symbolizer/debuginfod_client.h"
#include "reducer/symbolizer/symbol_importer.h"

namespace tributary {

// Looks for debug files of sampled executables that have no debug information yet. It searches directories for the
// paths that distributions use (DIR/.build-id/ab/cdef.debug, DIR/path/of/program.debug), and for files with the
// program's name (DIR/program.debug, DIR/program). Then it asks debuginfod servers. Whether a file is the right one is
// decided by its build-id, never by its name. The finder has its own thread.
class DebugFileFinder {
 public:
  static constexpr size_t kRememberedMax = 262'144;  // executables that were looked for

  struct Options {
    std::vector<std::string> directories;
    std::vector<std::string> urls;  // of debuginfod servers
    // Returns all executables that were ever sampled.
    std::function<absl::StatusOr<std::vector<store::ExecutableRow>>()> executables;
    uint64_t file_bytes_max = 8ull << 30;
    std::string temporary_directory;
    int64_t period_ms = 10'000;  // 0: no thread; the owner calls LookForAll
    int64_t directory_retry_ns = 60 * kNsPerSecond;
    int64_t missing_retry_ns = 3'600 * kNsPerSecond;  // after no server had the file
    int64_t failed_retry_ns = 120 * kNsPerSecond;     // after a server could not be asked
  };
  // The thread runs only if a directory or a server is given. All references must outlive the object.
  DebugFileFinder(Options options, SymbolStore& symbols, SymbolImporter& importer, SymbolNotices& notices,
                  const Clock& clock, Metrics& metrics);
  ~DebugFileFinder() { Stop(); }

  void Stop();
  // Returns the file with the parts that dwz moved out of other files. The Fd is not valid if the file was not found.
  // Any thread may call it; the call may wait for a server.
  Fd FindShared(const ExecutableId& build_id);

  // Makes one pass over all sampled executables with a GNU build-id. The thread does this every period.
  void LookForAll();

 private:
  struct Tried {
    MonotonicNs directories_at, servers_at;  // not before these times
  };
  void Run();
  void LookFor(const store::ExecutableRow& executable, Tried& tried);
  bool TryDirectories(const store::ExecutableRow& executable);
  bool TryFile(const std::string& path, const ExecutableId& id);
  void TryServers(const ExecutableId& id, Tried& tried);
  void CheckDirectories();

  const Options options_;
  SymbolStore& symbols_;
  SymbolImporter& importer_;
  SymbolNotices& notices_;
  const Clock& clock_;
  std::atomic<bool> stopping_{false};
  std::mutex servers_mutex_;  // uploads ask for the files of dwz, too
  DebuginfodClient servers_;
  Counter& found_;
  absl::flat_hash_map<ExecutableId, Tried> tried_;
  std::mutex wake_mutex_;
  std::condition_variable wake_;
  std::thread thread_;
};

}  // namespace tributary
