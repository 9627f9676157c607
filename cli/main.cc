#include <cstdio>

#include "base/status.h"
#include "cli/commands.h"
#include "cli/options.h"

int main(int argc, char** argv) {
  using namespace tributary;
  cli::CommandLine line = cli::ParseCommandLine(argc, argv);
  using Command = cli::CommandLine::Command;
  absl::StatusOr<int> exit_code = line.exit_code;
  switch (line.command) {
    case Command::kNone:
      break;
    case Command::kStatus:
      exit_code = cli::RunStatus(line.status);
      break;
    case Command::kTop:
      exit_code = cli::RunTop(line.top);
      break;
    case Command::kFlameGraph:
      exit_code = cli::RunFlameGraph(line.flame_graph);
      break;
    case Command::kRecord:
      exit_code = cli::RunRecord(line.record);
      break;
    case Command::kCheck:
      exit_code = cli::RunCheck(line.check);
      break;
    case Command::kInspect:
      exit_code = cli::RunInspect(line.inspect);
      break;
    case Command::kReplay:
      exit_code = cli::RunReplay(line.replay);
      break;
    case Command::kResolve:
      exit_code = cli::RunResolve(line.resolve);
      break;
    case Command::kSymbols:
      exit_code = cli::RunSymbols(line.symbols);
      break;
    case Command::kRemoveSymbols:
      exit_code = cli::RunRemoveSymbols(line.remove_symbols);
      break;
    case Command::kLines:
      exit_code = cli::RunLines(line.lines);
      break;
    case Command::kRollouts:
      exit_code = cli::RunRollouts(line.rollouts);
      break;
    case Command::kEvents:
      exit_code = cli::RunEvents(line.events);
      break;
    case Command::kPush:
      exit_code = cli::RunPush(line.push);
      break;
  }
  if (exit_code.ok()) return *exit_code;
  fprintf(stderr, "tributary: %s\n", Message(exit_code.status()).c_str());
  return exit_code.status().code() == absl::StatusCode::kInvalidArgument ? cli::kExitUsage : cli::kExitFailure;
}
