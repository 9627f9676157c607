#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "cli/api.h"
#include "cli/options.h"

namespace tributary::cli {

// Each command is in its own file together with its output, for example RunTop in top_command.cc. Each function returns
// the exit code, or an error with a message of one line. InvalidArgument: the user's input is wrong, or the server's
// answer cannot be understood (exit code 2). Other errors: exit code 1.
absl::StatusOr<int> RunStatus(const StatusOptions& options);
absl::StatusOr<int> RunTop(const TopOptions& options);
absl::StatusOr<int> RunFlameGraph(const FlameGraphOptions& options);
absl::StatusOr<int> RunRecord(const RecordOptions& options);
absl::StatusOr<int> RunCheck(const CheckOptions& options);
absl::StatusOr<int> RunInspect(const InspectOptions& options);
absl::StatusOr<int> RunReplay(const ReplayOptions& options);
absl::StatusOr<int> RunResolve(const ResolveOptions& options);
absl::StatusOr<int> RunSymbols(const SymbolsOptions& options);
absl::StatusOr<int> RunLines(const LinesOptions& options);
absl::StatusOr<int> RunRollouts(const RolloutsOptions& options);
absl::StatusOr<int> RunEvents(const EventsOptions& options);
absl::StatusOr<int> RunRemoveSymbols(const RemoveSymbolsOptions& options);
absl::StatusOr<int> RunPush(const PushOptions& options);

// The following functions format the output of the commands. They are declared here for tests.
// `recent`: the stack health of the last five minutes, or the error of that request.
std::string WriteStatus(const StatusAnswer& status, const absl::StatusOr<StackHealthAnswer>& recent);
std::string WriteTop(const TopAnswer& top);
std::string WriteLines(const LinesAnswer& lines);
std::string WriteRollouts(const RolloutsAnswer& rollouts);
std::string WriteEvents(const EventsAnswer& events);
std::string WriteEventPrograms(const EventProgramsAnswer& programs);
std::string WriteSymbols(const SymbolsAnswer& symbols);
// Returns the full build-id of the one symbol table whose build-id is `text` or begins with it. NotFound: there is no
// such table. InvalidArgument: there are several.
absl::StatusOr<std::string> FindTable(const SymbolsAnswer& symbols, std::string_view text);

}  // namespace tributary::cli
