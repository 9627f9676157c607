#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/alarm.h"
#include "base/backoff.h"
#include "base/callback_scope.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "intake/metadata/metadata_feed.h"
#include "kernel-collector/metadata/docker_client.h"
#include "kernel-collector/processes/worker.h"

namespace tributary {

// Reports Docker's data about sampled containers. Requests the data of a container once, when a process of the
// container is first sampled. If Docker does not answer, the request is repeated. So the cost depends on the number of
// sampled containers, not on the number of running containers. Once a minute, requests the list of running containers
// to find out which containers have ended. Requests one container at a time, at most 50 per second. While Docker does
// not answer, there is a pause of up to a minute between requests. Stores at most kContainersMax containers. Containers
// above the limit are counted and not requested. Loop thread only; requests run on `executor`.
class DockerMetadata {
 public:
  static constexpr size_t kContainersMax = 4096;
  static constexpr int kAttemptsMax = 5;

  // `client` is used only on `executor`. The borrowed objects must outlive this object.
  DockerMetadata(std::shared_ptr<DockerClient> client, Executor& executor, AlarmSource& alarms, const Clock& clock,
                 intake::MetadataFeed& feed, Metrics& metrics);

  // Requests the container's data if `id` is new. Ignores ids that Docker does not use.
  void OnContainerSeen(std::string_view id);

 private:
  enum class State { kWaiting, kKnown, kNotKnown };
  struct Container {
    State state = State::kWaiting;
    int attempts = 0;
    MonotonicNs asked_at;
  };

  void AskNext();
  void Take(const std::string& id, absl::StatusOr<DockerContainer> answer);
  void PauseAfter(const absl::Status& failure);
  void ListAgain();
  void TakeList(MonotonicNs asked_at, const absl::StatusOr<std::vector<std::string>>& running);
  void Log(const absl::Status& failure);

  const std::shared_ptr<DockerClient> client_;
  Executor& executor_;
  const Clock& clock_;
  intake::MetadataFeed& feed_;
  absl::flat_hash_map<std::string, Container> containers_;
  std::deque<std::string> waiting_;
  bool asking_ = false;   // a request is running
  bool pausing_ = false;  // until next_ rings
  bool listing_ = false;  // list_ is set
  bool absent_ = false;   // there was no Docker at the last request
  Backoff pause_ms_;
  LogLimit log_limit_{kNsPerMinute};
  Gauge& known_;
  Counter &found_, &not_found_, &failed_, &refused_, &labels_left_out_;
  std::unique_ptr<Alarm> next_, list_;
  CallbackScope scope_;
};

}  // namespace tributary
