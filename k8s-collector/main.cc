#include <csignal>

#include "base/heap.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/options.h"
#include "base/status.h"
#include "k8s-collector/cluster_collector.h"
#include "k8s-collector/options.h"

// 0: stopped as asked. 1: watching could not begin, or a replay is wrong. 2: an option is wrong.
int main(int argc, char** argv) {
  using namespace tributary;
  LimitHeap();
  signal(SIGPIPE, SIG_IGN);
  ClusterOptions options;
  auto outcome = ParseClusterOptions(argc, argv, Options::ProcessEnvironment(), &options);
  if (!outcome.ok()) {
    LogError("k8s-collector: {}", Message(outcome.status()));
    return 2;
  }
  if (*outcome == Options::Outcome::kExit) return 0;

  Metrics metrics;
  ClusterCollector collector(options, metrics);
  if (absl::Status status = collector.Run(); !status.ok()) {
    LogError("k8s-collector: {}", Message(status));
    return 1;
  }
  return 0;
}
