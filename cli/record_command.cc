#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "base/clock.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/status.h"
#include "cli/commands.h"
#include "cli/folded.h"
#include "cli/http_client.h"
#include "cli/json_reader.h"
#include "cli/output.h"
#include "cli/picture.h"
#include "cli/process_tree.h"
#include "cli/program.h"
#include "cli/recorder.h"
#include "cli/signal_inbox.h"
#include "cli/text.h"

namespace tributary::cli {
namespace {

constexpr int kTreePollMs = 50;
constexpr size_t kTopFunctions = 5;
constexpr int64_t kTimeSlackMs = 2'000;
// After --duration a command that ignores SIGTERM gets this long.
constexpr int64_t kKillAfterNs = 5 * kNsPerSecond;

struct Run {
  int exit_code = 0;
  bool ended_by_duration = false;
  uint64_t cpu_ns = 0;
  int64_t wall_ns = 0;
  int64_t from_ms = 0, to_ms = 0;
  int64_t pid = 0;
  Parents parents;
};

// Signals the command and all its living descendants: a shell that ends alone would leave its children running.
void SignalTree(int64_t pid, int number) {
  Parents living;
  AddLivingChildren("/proc", pid, living);
  for (int64_t each : Descendants(pid, living)) kill(static_cast<pid_t>(each), number);
}

// Runs the command to its end. Passes signals on, ends the command after `duration_ns` (0: never), and records its
// descendants.
absl::StatusOr<Run> RunCommand(const std::vector<std::string>& command, int64_t duration_ns, SignalInbox& signals) {
  const Clock& clock = Clock::Real();
  ClockPair begin = clock.Pair();
  ASSIGN_OR_RETURN(Program child, Program::Start({.arguments = command, .signal_mask = signals.old_mask()}));
  Run run{.from_ms = begin.unix.value / kNsPerMs, .pid = child.pid()};
  while (child.running()) {
    AddLivingChildren("/proc", run.pid, run.parents);
    // A terminal sends its signals to the command as well, so passing them on would send them twice.
    auto signal = signals.Wait(kTreePollMs);
    if (signal && signal->number != SIGCHLD && !signal->from_terminal) child.Signal(signal->number);
    int64_t elapsed_ns = clock.Monotonic().value - begin.monotonic.value;
    if (duration_ns > 0 && elapsed_ns > duration_ns) {
      if (!run.ended_by_duration) SignalTree(run.pid, SIGTERM);
      run.ended_by_duration = true;
      if (elapsed_ns > duration_ns + kKillAfterNs) SignalTree(run.pid, SIGKILL);
    }
  }
  ClockPair end = clock.Pair();
  run.to_ms = end.unix.value / kNsPerMs + 1;
  run.wall_ns = end.monotonic.value - begin.monotonic.value;
  run.cpu_ns = child.cpu_ns();
  bool by_us = run.ended_by_duration && (child.term_signal() == SIGTERM || child.term_signal() == SIGKILL);
  run.exit_code = by_us ? 0 : child.exit_code();
  return run;
}

// Returns the flame graph of the command and its descendants.
absl::StatusOr<FlameGraph> QueryRun(const HttpClient& client, Run run) {
  HttpClient::Parameters range = {{"from", std::to_string(run.from_ms - kTimeSlackMs)},
                                  {"to", std::to_string(run.to_ms + kTimeSlackMs)}};
  HttpClient::Parameters parameters = range;
  parameters.emplace_back("limit", "1000");
  ASSIGN_OR_RETURN(std::string json, client.Get("/api/v1/series", parameters));
  ASSIGN_OR_RETURN(SeriesAnswer series, ParseSeries(json));
  for (const SeriesAnswer::Process& process : series.processes)
    run.parents.try_emplace(process.pid, process.parent_pid);
  std::set<int64_t> pids = Descendants(run.pid, run.parents);
  std::vector<FlameGraph> graphs;
  for (const std::string& selector : PidSelectors(pids)) {
    parameters = range;
    parameters.emplace_back("query", selector);
    ASSIGN_OR_RETURN(json, client.Get("/api/v1/flamegraph", parameters));
    ASSIGN_OR_RETURN(graphs.emplace_back(), ParseFlameGraph(json));
  }
  return Merge(graphs);
}

std::string CommandText(const std::vector<std::string>& command) {
  return CutToWidth(EscapeForDisplay(fmt::format("{}", fmt::join(command, " "))), 100);
}

std::string Summary(const RecordOptions& options, const Run& run, const FlameGraph& graph, const StatusAnswer& status,
                    const std::string& out) {
  std::string lost;
  for (const auto& [reason, count] : status.total.lost) {
    if (count > 0 && reason != kOptedOut) lost += fmt::format(" {} {}", EscapeForDisplay(reason), count);
  }
  std::string text = fmt::format(
      "\ncommand  {}\nended    {}, wall {}, CPU {}\nsamples  {} at {} Hz ({} of CPU time); lost on this machine: "
      "{}{}\n",
      CommandText(options.command),
      run.ended_by_duration ? "after " + options.duration : fmt::format("with exit code {}", run.exit_code),
      FormatNs(static_cast<uint64_t>(run.wall_ns)), FormatNs(run.cpu_ns), FormatCount(graph.total.count),
      options.rate_hz, FormatNs(graph.total.ns), FormatCount(status.total.TotalLost()), lost);
  if (graph.total.count == 0)
    text += "         no sample of the command was stored; if it used little CPU time, try a higher --rate\n";
  for (const TopAnswer::Function& function : TopFunctions(graph, kTopFunctions)) {
    if (function.self.ns == 0) continue;
    text += fmt::format("{:>8} {}{}\n", FormatPercent(function.self.ns, graph.total.ns),
                        CutToWidth(EscapeForDisplay(function.name), 80), function.kind == kKernel ? " [kernel]" : "");
  }
  return text + (out == "-" ? "" : fmt::format("written  {}\n", out));
}

}  // namespace

absl::StatusOr<int> RunRecord(const RecordOptions& options) {
  int64_t duration_ns = 0;
  if (!options.duration.empty()) {
    auto parsed = ParseDurationNs(options.duration);
    if (!parsed.ok() || *parsed <= 0) {
      return Error(absl::StatusCode::kInvalidArgument, "--duration must be a time such as 250ms, 30s or 5m");
    }
    duration_ns = *parsed;
  }
  if (geteuid() != 0) {
    return Error(absl::StatusCode::kPermissionDenied,
                 "tributary record must run as root, because it loads BPF programs into the kernel: run it with sudo");
  }
  std::string out = options.out.empty() ? "flamegraph." + options.format : options.out;
  SignalInbox signals;
  Recorder recorder(signals);
  RETURN_IF_ERROR(recorder.Start(options.rate_hz));
  auto run = RunCommand(options.command, duration_ns, signals);
  if (!run.ok()) {
    fprintf(stderr, "tributary: %s\n", Message(run.status()).c_str());
    return run.status().code() == absl::StatusCode::kNotFound ? 127 : 126;  // the exit codes that shells use
  }
  RETURN_IF_ERROR(recorder.WaitForSymbols());
  RETURN_IF_ERROR(recorder.StopCollector());
  ASSIGN_OR_RETURN(FlameGraph graph, QueryRun(recorder.client(), *run));
  ASSIGN_OR_RETURN(StatusAnswer status, recorder.Status());
  PictureOptions picture{.title = CommandText(options.command)};
  RETURN_IF_ERROR(WriteOutput(out, options.format == "folded" ? WriteFolded(graph, Unit::kValue, true)
                                   : options.format == "html" ? WriteHtml(graph, picture)
                                                              : WriteSvg(graph, picture)));
  fputs(Summary(options, *run, graph, status, out).c_str(), stderr);
  return run->exit_code;
}

}  // namespace tributary::cli
