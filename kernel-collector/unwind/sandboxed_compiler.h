#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "base/child_process.h"
#include "base/fd.h"
#include "base/metrics.h"
#include "kernel-collector/unwind/unwind_compiler.h"

namespace tributary {

// Parses unwind information in a separate, sandboxed process (base/sandbox.h), the parser. The parser is started when
// it is needed, ends when it is idle, and is killed when it takes too long. If the parser dies before a request has
// passed the file to it, the request is repeated once with a new parser. If it dies after that, the request fails, and
// the next request starts a new parser. The collector opens the files and passes them to the parser, because the
// sandbox does not allow the parser to open files. Worker thread only.
class SandboxedCompiler : public UnwindCompiler {
 public:
  using Spawn = std::function<absl::StatusOr<ChildProcess>()>;
  // Starts this binary again as the parser (parser_process.h).
  static absl::StatusOr<ChildProcess> SpawnSelf();

  static constexpr int kAnswerTimeoutMs = 10'000;

  SandboxedCompiler(std::string proc_root, Spawn spawn, Metrics& metrics, int timeout_ms = kAnswerTimeoutMs);

  Result Compile(const Request& request) override;
  void Tidy() override;  // reaps a parser that has ended by itself

 private:
  enum class Exchange { kAnswered, kNeedsFile, kBroken };
  Exchange Ask(const Request& request, int file, Result* result);
  bool Receive(const Request& request, uint32_t* code, Result* result);
  absl::StatusOr<Fd> OpenFile(const Request& request);
  uint64_t NumberOf(const ExecutableId& id);

  const std::string proc_root_;
  const Spawn spawn_;
  const int timeout_ms_;
  ChildProcess child_;
  absl::flat_hash_map<ExecutableId, uint64_t> numbers_;  // numbers of files, for the parser
  uint64_t next_number_ = 1;
  Counter& deaths_;
};

}  // namespace tributary
