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

// Looks for debug files of sampled executables whose symbol tables were not made from debug information, or came from
// nodes. First it
// searches directories for the paths that distributions use (DIR/.build-id/ab/cdef.debug, DIR/path/of/program.debug),
// and for files with the program's name (DIR/program.debug, DIR/program). Then it sends requests to debuginfod servers.
// It uses a file only if the file's build-id is that of the executable. A program's path comes from a node, so a path
// that leads out of the directory is not opened. It works on its own thread.
class DebugFileFinder {
 public:
  static constexpr size_t kRememberedMax = 262'144;  // executables; if there are more, all are looked for again

  struct Options {
    std::vector<std::string> directories;
    std::vector<std::string> urls;  // of debuginfod servers
    // Returns all executables in the store.
    std::function<absl::StatusOr<std::vector<store::ExecutableRow>>()> executables;
    uint64_t file_bytes_max = 8ull << 30;
    std::string temporary_directory;
    int64_t period_ms = 10'000;  // 0: no thread; the owner calls LookForAll
    int64_t directory_retry_ns = 60 * kNsPerSecond;
    int64_t missing_retry_ns = 3'600 * kNsPerSecond;  // after no server had the file
    int64_t failed_retry_ns = 120 * kNsPerSecond;     // after a server did not answer
  };
  // Starts the thread only if `directories` or `urls` is not empty. All references must outlive the DebugFileFinder.
  DebugFileFinder(Options options, SymbolStore& symbols, SymbolImporter& importer, SymbolNotices& notices,
                  const Clock& clock, Metrics& metrics);
  ~DebugFileFinder() { Stop(); }

  void Stop();
  // Returns the file into which the tool dwz moved debug information that several debug files share. The Fd is invalid
  // if the file was not found. Any thread may call FindShared. The call may block until a server has answered.
  Fd FindShared(const ExecutableId& build_id);

  // Looks for the debug files of all sampled executables with a GNU build-id, once. The thread calls it every
  // `period_ms`.
  void LookForAll();

 private:
  struct Tried {
    MonotonicNs directories_at, servers_at;  // not before these times
  };
  void Run();
  void LookFor(const store::ExecutableRow& executable, Tried& tried);
  bool TryDirectories(const store::ExecutableRow& executable);
  // Opens a path relative to a directory.
  using Opener = Fd (*)(int directory, const std::string& path);
  bool TryFile(const std::string& directory, const std::string& path, Opener open_file, const ExecutableId& id);
  void TryServers(const ExecutableId& id, Tried& tried);
  void CheckDirectories();

  const Options options_;
  SymbolStore& symbols_;
  SymbolImporter& importer_;
  SymbolNotices& notices_;
  const Clock& clock_;
  std::atomic<bool> stopping_{false};
  std::mutex servers_mutex_;  // because FindShared runs on other threads
  DebuginfodClient servers_;
  Counter& found_;
  absl::flat_hash_map<ExecutableId, Tried> tried_;
  std::mutex wake_mutex_;
  std::condition_variable wake_;
  std::thread thread_;
};

}  // namespace tributary
