#pragma once

#include <fcntl.h>
#include <unistd.h>

#include "reducer/symbolizer/symbol_extractor.h"

namespace tributary {

// Does the same as SymbolExtractor::SpawnSelf, but in a forked process instead of a new program.
inline absl::StatusOr<ChildProcess> ForkExtractor(const SymbolExtractor::Files& files, int output,
                                                  const ExtractorRequest& request) {
  const pid_t pid = fork();
  if (pid != 0) return ChildProcess(pid);
  const int file = fcntl(files.file, F_DUPFD, 64), out = fcntl(output, F_DUPFD, 64);
  dup2(file, kExtractorFile);
  dup2(out, kExtractorOutput);
  _exit(RunSymbolExtractor(request));
}

}  // namespace tributary
