#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "absl/status/statusor.h"
#include "base/child_process.h"
#include "base/fd.h"
#include "base/metrics.h"
#include "profile/executable_id.h"
#include "reducer/symbolizer/extractor_process.h"

namespace tributary {

// Makes symbol tables from executables and debug files, in sandboxed processes (extractor_process.h). If a file makes
// its process crash, or needs too much memory or time, only this process ends. At most `at_once` processes run at a
// time; further calls wait. Any thread.
class SymbolExtractor {
 public:
  struct Options {
    uint64_t memory_bytes_max = 4ull << 30;  // limit of address space; half of it for a file's debug sections
    uint64_t cpu_seconds_max = 300;
    int timeout_ms = 600'000;
    unsigned at_once = 1;
  };
  struct Files {
    int file = -1;
    int shared = -1, package = -1;  // -1: not available
  };
  // Starts an extractor process with these file descriptors. SpawnSelf starts the reducer's binary; tests fork instead.
  using Spawn =
      std::function<absl::StatusOr<ChildProcess>(const Files& files, int output, const ExtractorRequest& request)>;
  static absl::StatusOr<ChildProcess> SpawnSelf(const Files& files, int output, const ExtractorRequest& request);

  SymbolExtractor(Options options, Spawn spawn, Metrics& metrics);
  ~SymbolExtractor() { Stop(); }

  struct Extracted {
    ExecutableId id;
    std::string encoded;    // output of EncodeSymbolTable for this id; not checked yet
    std::string shared_id;  // not empty: build-id of the dwz file that was needed, but not passed
    uint64_t missing_split = 0, malformed = 0, left_out = 0;
  };
  // `claimed`: the executable to which the file must belong, if known. InvalidArgument, NotFound: no table can be made
  // from the file; the message says why. ResourceExhausted: over a limit of memory or time. Internal: the process
  // crashed or sent a wrong answer. Unavailable: Stop was called.
  absl::StatusOr<Extracted> Extract(const Files& files, const ExecutableId& claimed);

  void Stop();  // ends the running processes and starts no new ones

 private:
  absl::StatusOr<Extracted> RunAndRead(const Files& files, const ExecutableId& claimed);
  absl::Status Run(const Files& files, int output, const ExtractorRequest& request);

  const Options options_;
  const Spawn spawn_;
  Counter &extracted_, &failed_, &deaths_;
  std::mutex mutex_;
  std::condition_variable free_;
  unsigned running_ = 0;
  Fd stop_;  // readable after Stop
  bool stopping_ = false;
};

}  // namespace tributary
