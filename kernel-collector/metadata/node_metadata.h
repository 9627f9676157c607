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

// Reports the metadata of the node and of its containers to the reducers (docs/metadata.md). The host is reported at
// start, and again when the request to its cloud has succeeded or failed. A container is reported when Docker has
// returned its data. If two sources have the same attribute, the operator's value takes precedence over the cloud's
// value, and the cloud's value over the system's. Loop thread only; blocking calls run on `executor`.
class NodeMetadata {
 public:
  struct Options {
    SessionInfo session;  // of the node: its id, its host's name and architecture
    MetadataOptions metadata;
    std::string proc_root = "/proc", sys_root = "/sys";
    bool node_id_given = false;  // the operator set the node id: then it is also host.id
  };
  // All borrowed objects must outlive this object.
  NodeMetadata(const Options& options, Executor& executor, AlarmSource& alarms, const Clock& clock,
               intake::MetadataFeed& feed, Metrics& metrics);

  void Start();
  // Call it for each process that is found to be in a container.
  void OnContainerSeen(std::string_view id);

 private:
  void ReportHost(const Attributes& cloud);
  void CompleteWhenSettled();

  const Options options_;
  intake::MetadataFeed& feed_;
  Attributes host_;  // from the system
  bool cloud_settled_ = false, containers_settled_ = false;
  std::unique_ptr<Alarm> containers_alarm_;
  std::unique_ptr<CloudMetadata> cloud_;
  std::unique_ptr<DockerMetadata> docker_;  // null: Docker is not asked
};

}  // namespace tributary
