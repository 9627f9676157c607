#include <csignal>
#include <string_view>

#include "base/child_process.h"
#include "base/heap.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/options.h"
#include "base/status.h"
#include "kernel-collector/collector.h"
#include "kernel-collector/options.h"
#include "kernel-collector/unwind/parser_process.h"
#include "kernel-collector/uplink/symbol_maker_process.h"

// 0: stopped as asked. 1: sampling could not begin. 2: an option is wrong.
int main(int argc, char** argv) {
  using namespace tributary;
  LimitHeap();
  signal(SIGPIPE, SIG_IGN);
  signal(SIGUSR1, SIG_IGN);  // until there is something to tell
  if (argc == 2 && std::string_view(argv[1]) == kParserArgument) return RunUnwindParser(ChildProcess::kSocket);
  if (argc == 2 && std::string_view(argv[1]) == kSymbolMakerArgument) return RunSymbolMaker(ChildProcess::kSocket);
  CollectorOptions options;
  auto outcome = ParseCollectorOptions(argc, argv, Options::ProcessEnvironment(), &options);
  if (!outcome.ok()) {
    LogError("kernel-collector: {}", Message(outcome.status()));
    return 2;
  }
  if (*outcome == Options::Outcome::kExit) return 0;

  // Never destroyed: what a worker begun and could not end in time (worker.h) may count after everything else has gone.
  static Metrics& metrics = *new Metrics;
  Collector collector(options, metrics);
  if (absl::Status status = collector.Run(); !status.ok()) {
    LogError("kernel-collector: {}", Message(status));
    return 1;
  }
  return 0;
}
