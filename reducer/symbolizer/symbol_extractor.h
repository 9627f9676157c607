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

// Makes symbol tables of files, in processes that can do nothing else (extractor_process.h). If a file crashes its
// reader, or takes too much memory or time, only that process ends. Only a few processes run at a time; callers wait.
// Any thread.
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
  // Starts the process with these descriptors. A test's Spawn runs without a program.
  using Spawn =
      std::function<absl::StatusOr<ChildProcess>(const Files& files, int output, const ExtractorRequest& request)>;
  static absl::StatusOr<ChildProcess> SpawnSelf(const Files& files, int output, const ExtractorRequest& request);

  SymbolExtractor(Options options, Spawn spawn, Metrics& metrics);
  ~SymbolExtractor() { Stop(); }

  struct Extracted {
    ExecutableId id;
    std::string encoded;    // from EncodeSymbolTable, of that id; not checked yet
    std::string shared_id;  // not empty: build-id of the file with the parts that dwz moved, which was not handed over
    uint64_t missing_split = 0, malformed = 0, left_out = 0;
  };
  // `claimed`: the executable that the file must belong to, if known. InvalidArgument, NotFound, with the reason: the
  // file gives no table. ResourceExhausted: over a limit. Internal: the process died. Unavailable: Stop was called.
  absl::StatusOr<Extracted> Extract(const Files& files, const ExecutableId& claimed);

  void Stop();  // ends running processes; no new one starts

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
