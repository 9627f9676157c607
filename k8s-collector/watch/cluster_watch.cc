#include "k8s-collector/watch/cluster_watch.h"

#include <utility>

#include "base/log.h"
#include "base/status.h"

namespace tributary {
namespace {

constexpr int kUnauthorized = 401;

}  // namespace

ClusterWatch::ClusterWatch(const Dependencies& dependencies, ResourceWatch::Options options,
                           std::function<void()> complete)
    : transport_(dependencies.transport),
      clock_(dependencies.clock),
      metrics_(dependencies.metrics),
      complete_(std::move(complete)),
      tick_(dependencies.alarms.NewAlarm([this] { Tick(); })) {
  for (size_t i = 0; i < kinds_.size(); ++i) {
    kinds_[i].watch = std::make_unique<ResourceWatch>(AllResources()[i], options, dependencies.events, metrics_);
  }
}

ClusterWatch::~ClusterWatch() = default;

void ClusterWatch::Start() {
  for (Kind& kind : kinds_) Begin(kind);
  tick_->StartEvery(kTickMs);
}

void ClusterWatch::Tick() {
  const MonotonicNs now = clock_.Monotonic();
  for (Kind& kind : kinds_) {
    if (kind.request == nullptr) {
      if (now >= kind.watch->due()) Begin(kind);
    } else if (now.value - kind.received_at.value >= kind.silence_ns) {
      kind.request.reset();
      End(kind, Error(absl::StatusCode::kDeadlineExceeded, "the API server sent no data for too long"));
    }
  }
}

void ClusterWatch::Begin(Kind& kind) {
  const ResourceWatch::Request request = kind.watch->Begin(clock_.Monotonic());
  kind.received_at = clock_.Monotonic();
  kind.silence_ns = request.silence_ns;
  kind.status = 0;
  kind.request = transport_.Get(request.target, request.accept,
                                {.on_answer =
                                     [this, &kind](int status, int64_t retry_after_s) {
                                       kind.received_at = clock_.Monotonic();
                                       kind.status = status;
                                       if (status != kUnauthorized) OnAccepted(kind);
                                       kind.watch->OnAnswer(status, retry_after_s, kind.received_at);
                                       // The status can end a problem. A new problem is known at the end of the answer.
                                       if (kind.watch->trouble().empty()) LogTrouble(kind);
                                     },
                                 .on_bytes =
                                     [this, &kind](std::string_view bytes) {
                                       kind.received_at = clock_.Monotonic();
                                       return kind.watch->OnBytes(bytes, kind.received_at);
                                     },
                                 .on_end =
                                     [this, &kind](const absl::Status& transport) {
                                       const auto ended = std::exchange(kind.request, nullptr);
                                       End(kind, transport);
                                     }});
}

void ClusterWatch::End(Kind& kind, const absl::Status& transport) {
  const bool is_unauthorized = kind.status == kUnauthorized;
  const bool cannot_ask = !transport.ok() && kind.status == 0 && !absl::IsDeadlineExceeded(transport);
  kind.shares_trouble = is_unauthorized || cannot_ask;
  if (is_unauthorized) {
    LogSharedTrouble("the API server does not accept the credentials (HTTP status 401)");
  } else if (cannot_ask && !absl::IsUnauthenticated(transport)) {  // ExecPlugin has logged missing credentials
    LogSharedTrouble(Message(transport));
  }
  kind.watch->OnEnd(transport, clock_.Monotonic());
  LogTrouble(kind);
  LookWhetherComplete();
  if (clock_.Monotonic() >= kind.watch->due()) Begin(kind);
}

void ClusterWatch::LogTrouble(Kind& kind) {
  const std::string& trouble = kind.watch->trouble();
  if (trouble == kind.logged_trouble) return;
  if (kind.shares_trouble && !trouble.empty()) return;
  if (trouble.empty()) {
    LogInfo("objects are watched again kind={}", kind.watch->info().plural);
  } else {
    LogWarning("cannot watch objects kind={} cause=\"{}\"", kind.watch->info().plural, trouble);
  }
  kind.logged_trouble = trouble;
}

void ClusterWatch::LogSharedTrouble(const std::string& why) {
  if (why == logged_trouble_) return;
  uint64_t suppressed = 0;
  if (!changed_trouble_.Allow(clock_.Monotonic(), &suppressed) && !logged_trouble_.empty()) return;
  LogWarning("cannot get objects from the API server cause=\"{}\"", why);
  logged_trouble_ = why;
}

void ClusterWatch::OnAccepted(Kind& kind) {
  kind.shares_trouble = false;
  if (logged_trouble_.empty()) return;
  for (const Kind& other : kinds_) {
    if (other.shares_trouble) return;
  }
  LogInfo("the API server accepts requests again");
  logged_trouble_.clear();
}

void ClusterWatch::LookWhetherComplete() {
  if (complete_ == nullptr) return;
  for (const Kind& kind : kinds_) {
    if (!kind.watch->listed() && !kind.watch->refused()) return;
  }
  std::exchange(complete_, nullptr)();
}

}  // namespace tributary
