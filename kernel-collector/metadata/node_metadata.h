#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/alarm.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "intake/metadata/metadata_feed.h"
#include "kernel-collector/metadata/cloud_metadata.h"
#include "kernel-collector/metadata/docker_metadata.h"
#include "kernel-collector/metadata/metadata_options.h"
#include "kernel-collector/processes/worker.h"
#include "profile/batch.h"

namespace tributary {

// What a node knows of itself and of its containers, told to its reducers (docs/metadata.md). The host is told at once,
// and again when its cloud has answered; containers as Docker answers. Of two that say one thing the operator counts,
// then the cloud, then the system. Loop thread; whatever blocks happens on `executor`.
class NodeMetadata {
 public:
  struct Options {
    SessionInfo session;  // of the node: its id, its host's name and architecture
    MetadataOptions said;
    std::string proc_root = "/proc", sys_root = "/sys";
    bool node_id_given = false;  // the operator's: then it is host.id, too
  };
  // What is lent outlives it.
  NodeMetadata(const Options& options, Executor& executor, AlarmSource& alarms, const Clock& clock,
               intake::MetadataFeed& feed, Metrics& metrics);

  void Start();
  // For each process that is found to be in one.
  void OnContainerSeen(std::string_view id);

 private:
  void TellHost(const Attributes& cloud);
  void CompleteWhenSettled();

  const Options options_;
  intake::MetadataFeed& feed_;
  Attributes host_;  // as the system has it
  bool cloud_settled_ = false, containers_settled_ = false;
  std::unique_ptr<Alarm> containers_alarm_;
  std::unique_ptr<CloudMetadata> cloud_;
  std::unique_ptr<DockerMetadata> docker_;  // null: not asked
};

}  // namespace tributary
