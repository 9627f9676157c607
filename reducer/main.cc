#include <csignal>
#include <string_view>

#include "base/clock.h"
#include "base/health_check.h"
#include "base/heap.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "base/service.h"
#include "base/status.h"
#include "reducer/data_check.h"
#include "reducer/options.h"
#include "reducer/pipeline.h"
#include "reducer/symbolizer/extractor_process.h"

// Exit status. 0: stopped as asked, or healthy. 1: could not start, or not healthy. 2: an option is wrong.
int main(int argc, char** argv) {
  using namespace tributary;
  signal(SIGPIPE, SIG_IGN);
  signal(SIGHUP, SIG_IGN);  // until the process can reload its options
  LimitHeap(Pipeline::kHeapLimits);
  if (argc > 1 && std::string_view(argv[1]) == kExtractorArgument) return RunSymbolExtractor(argc - 2, argv + 2);
  if (argc > 1 && argv[1] == kDataCheckArgument) return RunDataCheck(argc - 2, argv + 2);
  absl::StatusOr<ReducerOptions> options = ParseReducerOptions(argc, argv, Options::ProcessEnvironment());
  if (!options.ok()) {
    LogError("reducer: {}", Message(options.status()));
    return 2;
  }
  if (options->exit) return 0;
  if (options->health_check) {
    return RunHealthCheck("reducer", "http-listen", options->http_listen,
                          options->http_tls_cert.empty() ? HealthScheme::kHttp : HealthScheme::kHttps);
  }
  InitLog(options->log);

  // Watches the signals before anything starts, so that an early signal stops the parts that have started.
  Loop loop;
  Service service(loop);
  SignalWatcher on_terminate(loop, SIGTERM, [&] { loop.Stop(); });
  SignalWatcher on_interrupt(loop, SIGINT, [&] { loop.Stop(); });
  Metrics metrics;
  absl::StatusOr<std::unique_ptr<Pipeline>> pipeline = Pipeline::Start(*options, Clock::Real(), metrics);
  if (!pipeline.ok()) {
    LogError("reducer: {}", Message(pipeline.status()));
    return absl::IsInvalidArgument(pipeline.status()) ? 2 : 1;
  }
  auto reload = [&]() -> absl::StatusOr<Reloader::Reloaded> {
    ASSIGN_OR_RETURN(ReducerOptions fresh, ParseReducerOptions(argc, argv, Options::ProcessEnvironment()));
    RETURN_IF_ERROR((*pipeline)->ReplaceCredentials(fresh));
    return Reloader::Reloaded{.values = std::move(fresh.values), .log_level = fresh.log.options.level};
  };
  service.ReloadOnHangup(
      {.metric = "tributary_reducer_reloads_total", .in_force = options->values, .reload = std::move(reload)}, metrics);
  Timer trim(loop, [&] { (*pipeline)->TrimHeap(); });
  trim.StartEvery(Pipeline::kTrimMs);
  for (auto& [name, watched] : (*pipeline)->loops()) service.Watch(name, *watched);
  service.SetStatus(
      fmt::format("intake on port {}, web page on port {}", (*pipeline)->intake_port(), (*pipeline)->http_port()));
  service.Ready();
  loop.Run();
  trim.Stop();
  LogInfo("reducer stops");
  service.Stopping();
  pipeline->reset();
  return 0;
}
