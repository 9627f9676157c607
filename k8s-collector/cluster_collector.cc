#include "k8s-collector/cluster_collector.h"

#include <csignal>
#include <utility>

#include "base/clock.h"
#include "base/heap.h"
#include "base/log.h"
#include "base/status.h"

namespace tributary {
namespace {

// Holds all that PodResolver follows at most; a pod with its containers takes 2 to 4 KB here. What has gone is also
// what is missing from the snapshot that begins each connection: it need not be kept for long.
constexpr intake::MetadataFeed::Options kFeed = {
    .entities_max = 2'000'000, .bytes_max = 1u << 30, .gone_keep_ns = 30 * kNsPerSecond};
constexpr uint64_t kPrintMs = 100;

}  // namespace

ClusterCollector::ClusterCollector(const ClusterOptions& options, Metrics& metrics)
    : options_(options), metrics_(metrics), feed_(kFeed, Clock::Real(), metrics) {}

ClusterCollector::~ClusterCollector() = default;

absl::Status ClusterCollector::Run() {
  sigterm_ = std::make_unique<SignalWatcher>(loop_, SIGTERM, [this] { loop_.Stop(); });
  sigint_ = std::make_unique<SignalWatcher>(loop_, SIGINT, [this] { loop_.Stop(); });
  sigusr1_ = std::make_unique<SignalWatcher>(loop_, SIGUSR1, [this] { LogMetrics(); });
  RETURN_IF_ERROR(OpenOutput());
  if (options_.replay_dir.empty()) {
    RETURN_IF_ERROR(Watch());
  } else {
    RETURN_IF_ERROR(Replay());
    if (printer_ != nullptr) return absl::OkStatus();
  }
  loop_.Run();
  if (printer_ != nullptr) printer_->Print();
  return absl::OkStatus();
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
                   "no API server: run this in a pod with a service account, or give --kubeconfig FILE or --api-server "
                   "URL (docs/k8s-collector.md)");
    }
  }
  if (access.ok() && !options_.api_server.empty()) {
    ASSIGN_OR_RETURN(access->server, CheckServerUrl(options_.api_server));
  }
  return access;
}

absl::Status ClusterCollector::Watch() {
  ASSIGN_OR_RETURN(ApiAccess access, FindAccess());
  LogInfo("watching api_server={}", access.server);
  if (access.insecure) LogWarning("the API server's certificate is not checked, as the kubeconfig says");
  fallback_name_ = access.server;
  http_ = std::make_unique<HttpTransport>(loop_, std::move(access), metrics_);
  ApiTransport* transport = http_.get();
  if (!options_.record_dir.empty()) {
    auto recording = RecordingTransport::Open(options_.record_dir, *http_, Clock::Real());
    if (!recording.ok()) return WithContext(recording.status(), "--record");
    recording_ = *std::move(recording);
    transport = recording_.get();
  }
  resolver_ = std::make_unique<PodResolver>(PodResolver::Options{.cluster_name = options_.cluster_name}, feed_,
                                            Clock::Real(), metrics_);
  watch_ = std::make_unique<ClusterWatch>(*transport, loop_, Clock::Real(), ResourceWatch::Options{}, *resolver_,
                                          metrics_, [this] { OnComplete(); });
  if (printer_ != nullptr) {
    print_timer_ = std::make_unique<Timer>(loop_, [this] { printer_->Print(); });
    print_timer_->StartEvery(kPrintMs);
  } else if (!options_.cluster_name.empty()) {
    StartUplink();  // else when it is known who we are
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
  LogInfo("complete pods={} entities={} bytes={}", resolver_->pods(), feed_.size(), feed_.bytes());
  if (uplink_ != nullptr && !uplink_->started()) StartUplink();
}

void ClusterCollector::StartUplink() {
  std::string name = options_.cluster_name;
  if (name.empty()) name = resolver_->cluster_uid();
  if (name.empty()) {
    name = fallback_name_;
    LogWarning("the cluster has no name: neither --cluster-name, nor a namespace kube-system that may be read");
  }
  if (absl::Status status = uplink_->Start("cluster/" + name); !status.ok()) {
    LogError("no reducer can be told cause=\"{}\"", Message(status));
    loop_.Stop();
  }
}

void ClusterCollector::LogMetrics() const {
  const std::string text = metrics_.PrometheusText();
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    if (text[begin] != '#') LogInfo("metric {}", std::string_view(text).substr(begin, end - begin));
  }
}

}  // namespace tributary
