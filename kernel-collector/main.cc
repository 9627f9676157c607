#include <csignal>
#include <string_view>

#include "base/child_process.h"
#include "base/descriptor_limit.h"
#include "base/health_check.h"
#include "base/heap.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/options.h"
#include "base/resident.h"
#include "base/status.h"
#include "kernel-collector/collector.h"
#include "kernel-collector/options.h"
#include "kernel-collector/unwind/parser_process.h"
#include "kernel-collector/uplink/symbol_maker_process.h"

namespace {

// Two perf events per CPU on machines with some hundred CPUs, and the open files of processes.
constexpr size_t kEnoughDescriptors = 1'024;

}  // namespace

// Returns 0: stopped on request, or healthy. 1: sampling could not begin, or not healthy. 2: an option is wrong.
int main(int argc, char** argv) {
  using namespace tributary;
  LimitHeap();
  ReleaseCodePages();  // of this program's own constructors; lean_start.cc has released those of the libraries
  signal(SIGPIPE, SIG_IGN);
  signal(SIGUSR1, SIG_IGN);  // until there are metrics to log
  signal(SIGHUP, SIG_IGN);   // until there are options to reload
  if (argc == 2 && std::string_view(argv[1]) == kParserArgument) return RunUnwindParser(ChildProcess::kSocket);
  if (argc == 2 && std::string_view(argv[1]) == kSymbolMakerArgument) return RunSymbolMaker(ChildProcess::kSocket);
  auto parse = [&](CollectorOptions* options) {
    return ParseCollectorOptions(argc, argv, Options::ProcessEnvironment(), options);
  };
  CollectorOptions options;
  auto outcome = parse(&options);
  if (!outcome.ok()) {
    LogError("kernel-collector: {}", Message(outcome.status()));
    return 2;
  }
  if (*outcome == Options::Outcome::kExit) {
    LogWarnings(options);
    return 0;
  }
  if (options.health_check) {
    return RunHealthCheck("kernel-collector", "metrics-listen", options.metrics_listen.address);
  }
  InitLog(options.log);
  LogWarnings(options);
  WarnOfLowDescriptorLimit(RaiseDescriptorLimit(), kEnoughDescriptors);

  // Never destroyed: a job that a worker could not end in time (worker.h) may still count after everything else is
  // gone.
  static Metrics& metrics = *new Metrics;
  Collector collector(options, parse, metrics);
  if (absl::Status status = collector.Run(); !status.ok()) {
    LogError("kernel-collector: {}", Message(status));
    return 1;
  }
  return 0;
}
