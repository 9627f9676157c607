#include "kernel-collector/metadata/node_metadata.h"

#include "kernel-collector/metadata/host_facts.h"
#include "kernel-collector/metadata/host_files.h"

namespace tributary {
namespace {

// After this time, the containers from before this collector's start have been sampled again. Containers that the
// previous collector reported, and this collector did not, are gone.
constexpr uint64_t kContainersSettledMs = 60'000;

CloudMetadata::Options CloudOptions(const NodeMetadata::Options& options) {
  const MetadataOptions& metadata = options.metadata;
  CloudMetadata::Options out{.cloud = metadata.detect_cloud ? DetectCloud(options.sys_root) : metadata.cloud,
                             .timeout_ns = metadata.cloud_timeout_ns};
  auto endpoint = ParseHttpEndpoint(metadata.cloud_endpoint);
  out.endpoint = endpoint.ok() ? *endpoint : InstanceService(out.cloud);
  return out;
}

}  // namespace

NodeMetadata::NodeMetadata(const Options& options, Executor& executor, AlarmSource& alarms, const Clock& clock,
                           intake::MetadataFeed& feed, Metrics& metrics)
    : options_(options), feed_(feed) {
  const HostFiles files(options_.metadata.host_dir, options_.proc_root);
  host_ = ReadOs(files);
  SetAttribute(host_, "host.name", options_.session.host_name);
  SetAttribute(host_, "host.arch", options_.session.architecture);
  containers_alarm_ = alarms.NewAlarm([this] {
    containers_settled_ = true;
    CompleteWhenSettled();
  });
  cloud_ = std::make_unique<CloudMetadata>(CloudOptions(options_), executor, alarms, metrics,
                                           [this](const Attributes& cloud) {
                                             cloud_settled_ = true;
                                             ReportHost(cloud);
                                             CompleteWhenSettled();
                                           });
  if (options_.metadata.docker_socket.empty()) return;
  docker_ = std::make_unique<DockerMetadata>(
      std::make_shared<DockerClient>(DockerSocket(options_.metadata.docker_socket, options_.metadata.host_dir),
                                     options_.metadata.docker_namespace_label),
      executor, alarms, clock, feed, metrics);
}

void NodeMetadata::Start() {
  ReportHost({});
  containers_settled_ = docker_ == nullptr;
  if (!containers_settled_) containers_alarm_->StartOnce(kContainersSettledMs);
  cloud_->Start();
}

void NodeMetadata::OnContainerSeen(std::string_view id) {
  if (docker_ != nullptr) docker_->OnContainerSeen(id);
}

void NodeMetadata::ReportHost(const Attributes& cloud) {
  Entity host{.kind = EntityKind::kHost, .id = options_.session.node_id, .attributes = host_};
  // host.id is not set before it is settled. The reason: an attribute that is added later also applies to earlier
  // times, but a changed attribute applies only from the change on.
  if (cloud_settled_ || options_.node_id_given) SetAttribute(host.attributes, "host.id", options_.session.node_id);
  for (const auto& [key, value] : cloud) {
    if (key != "host.id" || !options_.node_id_given) SetAttribute(host.attributes, key, value);
  }
  for (const auto& [key, value] : options_.metadata.resource) SetAttribute(host.attributes, key, value);
  feed_.Set(std::move(host));
}

void NodeMetadata::CompleteWhenSettled() {
  if (cloud_settled_ && containers_settled_) feed_.SetComplete();
}

}  // namespace tributary
