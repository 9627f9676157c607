#include <csignal>

#include "base/descriptor_limit.h"
#include "base/health_check.h"
#include "base/heap.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/options.h"
#include "base/status.h"
#include "k8s-collector/cluster_collector.h"
#include "k8s-collector/options.h"

namespace {

// Connections to the API server and the reducers: a few dozen.
constexpr size_t kEnoughDescriptors = 256;

}  // namespace

// Exit status. 0: stopped as asked, or healthy. 1: watching could not begin, a replay is wrong, or not healthy. 2: an
// option is wrong.
int main(int argc, char** argv) {
  using namespace tributary;
  LimitHeap();
  signal(SIGPIPE, SIG_IGN);
  signal(SIGHUP, SIG_IGN);  // until a reload is possible
  auto parse = [&](ClusterOptions* options) {
    return ParseClusterOptions(argc, argv, Options::ProcessEnvironment(), options);
  };
  ClusterOptions options;
  auto outcome = parse(&options);
  if (!outcome.ok()) {
    LogError("k8s-collector: {}", Message(outcome.status()));
    return 2;
  }
  if (*outcome == Options::Outcome::kExit) return 0;
  if (options.health_check) {
    return RunHealthCheck("k8s-collector", "metrics-listen", options.metrics_listen.address);
  }
  InitLog(options.log);
  WarnOfLowDescriptorLimit(RaiseDescriptorLimit(), kEnoughDescriptors);

  Metrics metrics;
  ClusterCollector collector(options, parse, metrics);
  if (absl::Status status = collector.Run(); !status.ok()) {
    LogError("k8s-collector: {}", Message(status));
    return 1;
  }
  return 0;
}
