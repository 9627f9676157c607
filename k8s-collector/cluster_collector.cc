#include "k8s-collector/cluster_collector.h"

#include <fmt/format.h>

#include <csignal>
#include <utility>

#include "base/capabilities.h"
#include "base/clock.h"
#include "base/heap.h"
#include "base/log.h"
#include "base/log_metrics.h"
#include "base/process_metrics.h"
#include "base/status.h"
#include "k8s-collector/watch/kubeconfig.h"
#include "k8s-collector/watch/proxy_url.h"

namespace tributary {
namespace {

// Has space for everything that PodResolver follows. A pod with its containers takes 2 to 4 KB here. Deleted entities
// need not be kept for long: a deleted entity is also missing from the snapshot that begins each connection.
constexpr intake::MetadataFeed::Options kFeed = {
    .entities_max = 2'000'000, .bytes_max = 1u << 30, .gone_keep_ns = 30 * kNsPerSecond};
constexpr uint64_t kPrintMs = 100;

}  // namespace

ClusterCollector::ClusterCollector(const ClusterOptions& options,
                                   std::function<absl::StatusOr<Options::Outcome>(ClusterOptions*)> parse,
                                   Metrics& metrics)
    : options_(options),
      parse_(std::move(parse)),
      metrics_(metrics),
      service_(loop_),
      feed_(kFeed, Clock::Real(), metrics) {}

ClusterCollector::~ClusterCollector() = default;

absl::Status ClusterCollector::Run() {
  sigterm_ = std::make_unique<SignalWatcher>(loop_, SIGTERM, [this] { loop_.Stop(); });
  sigint_ = std::make_unique<SignalWatcher>(loop_, SIGINT, [this] { loop_.Stop(); });
  sigusr1_ = std::make_unique<SignalWatcher>(loop_, SIGUSR1, [this] { LogMetrics(metrics_); });
  AddProcessMetrics(metrics_, "k8s-collector");
  if (!options_.print_entities) {
    ASSIGN_OR_RETURN(metrics_server_,
                     MetricsServer::Open(loop_, options_.metrics_listen, metrics_, [this] { return NotReady(); }));
    if (metrics_server_ != nullptr) LogInfo("metrics url={}", metrics_server_->url());
  }
  // Drop capabilities before the first thread starts. The collector uses the network, and reads files that its user may
  // read.
  RETURN_IF_ERROR(WithContext(DropAllCapabilities(), "drop capabilities"));
  RETURN_IF_ERROR(OpenOutput());  // reads credentials with the rights that reloads will have
  service_.SetStatus("waiting for the API server's first answers");
  if (options_.replay_dir.empty()) {
    RETURN_IF_ERROR(Watch());
  } else {
    RETURN_IF_ERROR(Replay());
    if (printer_ != nullptr) return absl::OkStatus();
  }
  service_.ReloadOnHangup(
      {.metric = "tributary_k8s_reloads_total", .in_force = options_.values, .reload = [this] { return Reload(); }},
      metrics_);
  // An unreachable API server is asked again and again. A program that waits for this one need not wait for that
  // server.
  service_.Ready();
  loop_.Run();
  service_.Stopping();
  if (printer_ != nullptr) printer_->Print();
  return absl::OkStatus();
}

absl::StatusOr<Reloader::Reloaded> ClusterCollector::Reload() {
  ClusterOptions fresh;
  RETURN_IF_ERROR(parse_(&fresh).status());
  if (uplink_ != nullptr) RETURN_IF_ERROR(uplink_->credentials().Change(fresh.credentials));
  return Reloader::Reloaded{.values = std::move(fresh.values), .log_level = fresh.log.options.level};
}

absl::Status ClusterCollector::OpenOutput() {
  if (options_.print_entities) {
    printer_ = std::make_unique<EntityPrinter>(feed_, stdout);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(uplink_,
                   ClusterUplink::Open(loop_, options_.reducers, options_.credentials, feed_, Clock::Real(), metrics_));
  return absl::OkStatus();
}

absl::StatusOr<ApiAccess> ClusterCollector::FindAccess() const {
  absl::StatusOr<ApiAccess> access = ApiAccess{};
  if (!options_.kubeconfig.empty()) {
    access = ReadKubeconfig(options_.kubeconfig, options_.context);
  } else if (options_.api_server.empty()) {
    access = InClusterAccess(Options::ProcessEnvironment(), "");
    if (absl::IsNotFound(access.status())) {
      return Error(absl::StatusCode::kNotFound,
                   "no API server is known: run k8s-collector in a pod with a service account, or give --kubeconfig "
                   "FILE or --api-server URL (docs/k8s-collector.md)");
    }
  }
  if (access.ok() && !options_.api_server.empty()) {
    ASSIGN_OR_RETURN(access->server, CheckServerUrl(options_.api_server));
  }
  return access;
}

absl::StatusOr<ApiTransport*> ClusterCollector::OpenTransport(ApiAccess access) {
  LogInfo("watching api_server={}{}{}", access.server,
          access.proxy_url.empty() ? "" : " proxy=", access.proxy_url.empty() ? "" : PublicProxyUrl(access.proxy_url));
  if (access.insecure)
    LogWarning("the API server's certificate is not checked, because the kubeconfig sets insecure-skip-tls-verify");
  fallback_name_ = access.server;
  http_ = std::make_unique<HttpTransport>(loop_, access, metrics_);
  ApiTransport* transport = http_.get();
  if (access.exec) {
    plugin_ =
        std::make_unique<ExecPlugin>(loop_, std::move(access), Options::ProcessEnvironment(), Clock::Real(), metrics_);
    exec_ = std::make_unique<ExecTransport>(*http_, *plugin_);
    transport = exec_.get();
  }
  if (!options_.record_dir.empty()) {
    auto recording = RecordingTransport::Open(options_.record_dir, *transport, Clock::Real());
    if (!recording.ok()) return WithContext(recording.status(), "--record");
    recording_ = *std::move(recording);
    transport = recording_.get();
  }
  return transport;
}

absl::Status ClusterCollector::Watch() {
  ASSIGN_OR_RETURN(ApiAccess access, FindAccess());
  ASSIGN_OR_RETURN(ApiTransport* const transport, OpenTransport(std::move(access)));
  resolver_ = std::make_unique<PodResolver>(PodResolver::Options{.cluster_name = options_.cluster_name}, feed_,
                                            Clock::Real(), metrics_);
  watch_ = std::make_unique<ClusterWatch>(
      ClusterWatch::Dependencies{
          .transport = *transport, .alarms = loop_, .events = *resolver_, .clock = Clock::Real(), .metrics = metrics_},
      ResourceWatch::Options{}, [this] { OnComplete(); });
  if (printer_ != nullptr) {
    print_timer_ = std::make_unique<Timer>(loop_, [this] { printer_->Print(); });
    print_timer_->StartEvery(kPrintMs);
  } else if (!options_.cluster_name.empty()) {
    StartUplink();  // otherwise when the cluster's identity is known
  }
  watch_->Start();
  return absl::OkStatus();
}

absl::Status ClusterCollector::Replay() {
  ASSIGN_OR_RETURN(replay_, ApiReplay::Open(options_.replay_dir));
  fallback_name_ = "replay";
  resolver_ = std::make_unique<PodResolver>(PodResolver::Options{.cluster_name = options_.cluster_name}, feed_,
                                            replay_->clock(), metrics_);
  return replay_->Run(
      *resolver_, metrics_, [this] { OnComplete(); },
      [this] {
        if (printer_ != nullptr) printer_->Print();
      });
}

void ClusterCollector::OnComplete() {
  resolver_->OnComplete();
  TrimHeap();
  service_.SetStatus(fmt::format("{} pods", resolver_->pods()));
  LogInfo("the cluster's objects were read pods={} entities={} bytes={}", resolver_->pods(), feed_.size(),
          feed_.bytes());
  if (uplink_ != nullptr && !uplink_->started()) StartUplink();
}

void ClusterCollector::StartUplink() {
  std::string name = options_.cluster_name;
  if (name.empty()) name = resolver_->cluster_uid();
  if (name.empty()) {
    name = fallback_name_;
    LogWarning(
        "the cluster's name is unknown: give --cluster-name, or permit k8s-collector to read the namespace "
        "kube-system");
  }
  if (absl::Status status = uplink_->Start("cluster/" + name); !status.ok()) {
    LogError("cannot send to reducers cause=\"{}\"", Message(status));
    loop_.Stop();
  }
}

std::string ClusterCollector::NotReady() const {
  if (plugin_ != nullptr && plugin_->has_failed() && !feed_.complete()) {
    return "k8s-collector gets no credentials for the API server from the kubeconfig's exec plug-in. Its log says why.";
  }
  if (!feed_.complete()) return "k8s-collector has not read all objects of the cluster yet.";
  if (uplink_->has_sent_all()) return "";
  const std::string refusal = uplink_->refusal();
  return fmt::format("k8s-collector has not sent all objects of the cluster to a reducer yet{}.",
                     refusal.empty() ? "" : fmt::format(": {}", refusal));
}

}  // namespace tributary
