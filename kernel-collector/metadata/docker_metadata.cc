#include "kernel-collector/metadata/docker_metadata.h"

#include <set>
#include <utility>

#include "base/status.h"

namespace tributary {
namespace {

constexpr uint64_t kBetweenMs = 20;  // pause between requests
constexpr Backoff::Bounds kPauseMs = {.min = 1000, .max = 60'000};
constexpr uint64_t kListMs = 60'000;
// A container that was requested less than this time before a list may be missing in the list.
constexpr int64_t kSettledNs = 10 * kNsPerSecond;
// The limit of waiting containers of other runtimes. Docker may be starting, but most machines without Docker never get
// it.
constexpr size_t kWaitingWithoutDockerMax = 256;

Counter& Requests(Metrics& metrics, const char* result) {
  return metrics.AddCounter("tributary_collector_docker_containers_total",
                            "How often the collector needed the metadata of a container from Docker, by result",
                            {{"result", result}});
}

}  // namespace

DockerMetadata::DockerMetadata(std::shared_ptr<DockerClient> client, Executor& executor, AlarmSource& alarms,
                               const Clock& clock, intake::MetadataFeed& feed, Metrics& metrics)
    : client_(std::move(client)),
      executor_(executor),
      clock_(clock),
      feed_(feed),
      pause_ms_(kPauseMs),
      known_(metrics.AddGauge("tributary_collector_docker_containers_known",
                              "Running containers whose metadata came from Docker")),
      found_(Requests(metrics, "found")),
      not_found_(Requests(metrics, "not_found")),
      failed_(Requests(metrics, "failed")),
      refused_(Requests(metrics, "refused")),
      labels_left_out_(metrics.AddCounter("tributary_collector_docker_labels_left_out_total",
                                          "Labels of containers that were left out, because a container had more than "
                                          "64 labels or a label was too long")),
      next_(alarms.NewAlarm([this] {
        pausing_ = false;
        AskNext();
      })),
      list_(alarms.NewAlarm([this] { ListAgain(); })) {}

void DockerMetadata::OnContainerSeen(std::string_view id) {
  if (!IsDockerContainerId(id) || containers_.contains(std::string(id))) return;
  if (absent_ && waiting_.size() >= kWaitingWithoutDockerMax) return;
  if (containers_.size() == kContainersMax) return refused_.Add();
  containers_.emplace(id, Container());
  waiting_.emplace_back(id);
  AskNext();
}

void DockerMetadata::AskNext() {
  if (asking_ || pausing_ || waiting_.empty()) return;
  const std::string id = waiting_.front();
  auto answer = std::make_shared<absl::StatusOr<DockerContainer>>(absl::UnknownError(""));
  asking_ = executor_.Submit([answer, id, client = client_] { *answer = client->Inspect(id); },
                             scope_.Wrap([this, answer, id] { Take(id, *std::move(answer)); }));
  if (!asking_) return PauseAfter(Error(absl::StatusCode::kResourceExhausted, "too many other requests are waiting"));
  waiting_.pop_front();
}

void DockerMetadata::Take(const std::string& id, absl::StatusOr<DockerContainer> answer) {
  asking_ = false;
  Container& container = containers_[id];
  container.asked_at = clock_.Monotonic();
  ++container.attempts;
  if (!std::exchange(listing_, true)) list_->StartEvery(kListMs);
  const absl::StatusCode code = answer.status().code();
  const bool silent = !answer.ok() && code != absl::StatusCode::kNotFound &&
                      code != absl::StatusCode::kInvalidArgument && code != absl::StatusCode::kResourceExhausted;
  absent_ = code == absl::StatusCode::kFailedPrecondition;
  // Docker may hang on one container. The other containers must not wait for it forever.
  if (silent && (container.attempts < kAttemptsMax || absent_)) {
    waiting_.push_back(id);
    return PauseAfter(answer.status());
  }
  if (!silent) pause_ms_.Reset();
  container.state = answer.ok() ? State::kKnown : State::kNotKnown;
  if (answer.ok()) {
    found_.Add();
    known_.Add(1);
    labels_left_out_.Add(answer->labels_left_out);
    feed_.Set({.kind = EntityKind::kContainer, .id = id, .attributes = std::move(answer->attributes)});
  } else if (code == absl::StatusCode::kNotFound) {
    not_found_.Add();
  } else {
    failed_.Add();
    Log(answer.status());
  }
  if (silent) return PauseAfter(answer.status());
  pausing_ = true;
  next_->StartOnce(kBetweenMs);
}

// Pauses all requests: if Docker does not answer one request, it will not answer the others.
void DockerMetadata::PauseAfter(const absl::Status& failure) {
  pausing_ = true;
  next_->StartOnce(static_cast<uint64_t>(pause_ms_.Next()));
  // Without Docker there is nothing to log.
  if (failure.code() != absl::StatusCode::kFailedPrecondition) Log(failure);
}

void DockerMetadata::Log(const absl::Status& failure) {
  if (uint64_t held; log_limit_.Allow(clock_.Monotonic(), &held)) {
    LogWarning("cannot get metadata of containers from Docker cause=\"{}\" waiting={} suppressed={}", Message(failure),
               waiting_.size(), held);
  }
}

void DockerMetadata::ListAgain() {
  if (asking_ || pausing_ || containers_.size() == waiting_.size()) return;
  auto running = std::make_shared<absl::StatusOr<std::vector<std::string>>>(absl::UnknownError(""));
  asking_ =
      executor_.Submit([running, client = client_] { *running = client->ListRunning(); },
                       scope_.Wrap([this, running, asked_at = clock_.Monotonic()] { TakeList(asked_at, *running); }));
}

void DockerMetadata::TakeList(MonotonicNs asked_at, const absl::StatusOr<std::vector<std::string>>& running) {
  asking_ = false;
  if (running.ok()) {
    const std::set<std::string_view> ids(running->begin(), running->end());
    for (auto it = containers_.begin(); it != containers_.end();) {
      const auto& [id, container] = *it;
      const bool settled = container.state != State::kWaiting && asked_at.value - container.asked_at.value > kSettledNs;
      if (!settled || ids.contains(id)) {
        ++it;
        continue;
      }
      if (container.state == State::kKnown) {
        known_.Add(-1);
        feed_.Remove(EntityKind::kContainer, id, clock_.Unix());
      }
      containers_.erase(it++);
    }
  } else if (running.status().code() != absl::StatusCode::kFailedPrecondition) {
    Log(running.status());
  }
  AskNext();
}

}  // namespace tributary
