#include <cerrno>
#include <csignal>
#include <cstdio>

#include "base/status.h"
#include "cli/commands.h"
#include "intake/recording/inspect.h"

namespace tributary::cli {
namespace {

absl::Status Print(std::string_view line) {
  if (fwrite(line.data(), 1, line.size(), stdout) == line.size()) return absl::OkStatus();
  return ErrnoStatus("write", "standard output", errno);
}

}  // namespace

absl::StatusOr<int> RunInspect(const InspectOptions& options) {
  // With `… | head`, the work ends with a write error, not with a signal.
  signal(SIGPIPE, SIG_IGN);
  ASSIGN_OR_RETURN(std::unique_ptr<intake::RecordingReader> reader, intake::RecordingReader::Open(options.file));
  absl::Status status = intake::Inspect(*reader, Print);
  if (fflush(stdout) != 0 && status.ok()) status = ErrnoStatus("write", "standard output", errno);
  if (status.ok()) return kExitOk;
  // A damaged file is not a usage error.
  fprintf(stderr, "tributary: %s\n", Message(status).c_str());
  return kExitFailure;
}

}  // namespace tributary::cli
