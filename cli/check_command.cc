#include <unistd.h>

#include <cerrno>

#include "base/status.h"
#include "cli/commands.h"
#include "cli/program.h"

namespace tributary::cli {

// Only the reducer's program knows the formats of its files. It writes the output in place of this program.
absl::StatusOr<int> RunCheck(const CheckOptions& options) {
  const absl::StatusOr<std::string> reducer = FindProgram("reducer");
  if (!reducer.ok()) return Error(absl::StatusCode::kInvalidArgument, Message(reducer.status()));
  execl(reducer->c_str(), reducer->c_str(), "--check-data-dir", options.directory.c_str(),
        options.symbols_directory.c_str(), options.json ? "json" : "text", nullptr);
  return Error(absl::StatusCode::kInvalidArgument, Message(ErrnoStatus("run", *reducer, errno)));
}

}  // namespace tributary::cli
