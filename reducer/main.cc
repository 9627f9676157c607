#include <csignal>
#include <string_view>

#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "base/status.h"
#include "reducer/options.h"
#include "reducer/pipeline.h"
#include "reducer/symbolizer/extractor_process.h"

// 0: stopped as asked. 1: could not start. 2: an option is wrong.
int main(int argc, char** argv) {
  using namespace tributary;
  signal(SIGPIPE, SIG_IGN);
  if (argc > 1 && std::string_view(argv[1]) == kExtractorArgument) return RunSymbolExtractor(argc - 2, argv + 2);
  absl::StatusOr<ReducerOptions> options = ParseReducerOptions(argc, argv, Options::ProcessEnvironment());
  if (!options.ok()) {
    LogError("reducer: {}", Message(options.status()));
    return 2;
  }
  if (options->exit) return 0;
  InitLog(options->log);

  // Watched before anything starts: a signal that comes early stops what has started.
  Loop loop;
  SignalWatcher on_terminate(loop, SIGTERM, [&] { loop.Stop(); });
  SignalWatcher on_interrupt(loop, SIGINT, [&] { loop.Stop(); });
  Metrics metrics;
  absl::StatusOr<std::unique_ptr<Pipeline>> pipeline = Pipeline::Start(*options, Clock::Real(), metrics);
  if (!pipeline.ok()) {
    LogError("reducer: {}", Message(pipeline.status()));
    return 1;
  }
  loop.Run();
  LogInfo("reducer stops");
  pipeline->reset();
  return 0;
}
