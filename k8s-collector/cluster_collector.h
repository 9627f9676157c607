#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "base/service.h"
#include "k8s-collector/options.h"
#include "k8s-collector/resolve/pod_resolver.h"
#include "k8s-collector/uplink/cluster_uplink.h"
#include "k8s-collector/uplink/entity_printer.h"
#include "k8s-collector/watch/api_access.h"
#include "k8s-collector/watch/api_replay.h"
#include "k8s-collector/watch/cluster_watch.h"
#include "k8s-collector/watch/exec_plugin.h"
#include "k8s-collector/watch/exec_transport.h"
#include "k8s-collector/watch/http_transport.h"
#include "k8s-collector/watch/recording_transport.h"

namespace tributary {

// A whole k8s-collector: watches the API server and sends entities to the reducers. Does everything on one loop, on the
// thread that calls Run. SIGUSR1 logs every metric.
class ClusterCollector {
 public:
  // Construct this object before other threads start (see Service). `parse` must read all options again, for a reload.
  ClusterCollector(const ClusterOptions& options,
                   std::function<absl::StatusOr<Options::Outcome>(ClusterOptions*)> parse, Metrics& metrics);
  ~ClusterCollector();

  // Runs until SIGTERM or SIGINT. SIGHUP reads the options again. If the options say to replay a recording and to print
  // the entities, Run returns after the replay. Returns an error if the collector cannot start, or if a replay fails.
  // The message says what is missing or wrong. An unreachable API server or reducer is not an error.
  absl::Status Run();

 private:
  absl::StatusOr<ApiAccess> FindAccess() const;
  absl::Status Watch();
  absl::StatusOr<ApiTransport*> OpenTransport(ApiAccess access);
  absl::Status Replay();
  absl::Status OpenOutput();
  absl::StatusOr<Reloader::Reloaded> Reload();
  void OnComplete();
  void StartUplink();
  std::string NotReady() const;

  const ClusterOptions options_;
  const std::function<absl::StatusOr<Options::Outcome>(ClusterOptions*)> parse_;
  Metrics& metrics_;
  // The order matters: each member uses only members above it.
  Loop loop_;
  Service service_;
  std::unique_ptr<MetricsServer> metrics_server_;  // nullptr: disabled, print_entities, or default port in use
  intake::MetadataFeed feed_;
  std::unique_ptr<EntityPrinter> printer_;  // either printer_ or uplink_
  std::unique_ptr<ClusterUplink> uplink_;
  std::string fallback_name_;  // name of the cluster if --cluster-name is not set and its uid is unknown
  std::unique_ptr<ApiReplay> replay_;
  std::unique_ptr<PodResolver> resolver_;
  std::unique_ptr<HttpTransport> http_;
  std::unique_ptr<ExecPlugin> plugin_;  // this and exec_ are null if the kubeconfig has no exec plug-in
  std::unique_ptr<ExecTransport> exec_;
  std::unique_ptr<RecordingTransport> recording_;
  std::unique_ptr<ClusterWatch> watch_;
  std::unique_ptr<Timer> print_timer_;
  std::unique_ptr<SignalWatcher> sigterm_, sigint_, sigusr1_;
};

}  // namespace tributary
