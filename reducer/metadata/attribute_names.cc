#include "reducer/metadata/attribute_names.h"

#include <algorithm>
#include <mutex>

#include "base/edit_distance.h"
#include "profile/metadata.h"
#include "reducer/metadata/labels.h"

namespace tributary {
namespace {

// Names that a resource can have even if no source has reported one yet (docs/metadata.md).
constexpr std::string_view kSemanticNames[] = {
    "cloud.account.id",
    "cloud.availability_zone",
    "cloud.platform",
    "cloud.provider",
    "cloud.region",
    "cloud.resource_id",
    "container.id",
    "container.image.id",
    "container.image.name",
    "container.image.repo_digests",
    "container.image.tag",
    "container.image.tags",
    "container.name",
    "container.runtime.name",
    "deployment.environment.name",
    "host.arch",
    "host.id",
    "host.image.id",
    "host.name",
    "host.type",
    "k8s.cluster.name",
    "k8s.cluster.uid",
    "k8s.container.name",
    "k8s.container.restart_count",
    "k8s.cronjob.name",
    "k8s.cronjob.uid",
    "k8s.daemonset.name",
    "k8s.daemonset.uid",
    "k8s.deployment.name",
    "k8s.deployment.uid",
    "k8s.job.name",
    "k8s.job.uid",
    "k8s.namespace.name",
    "k8s.node.name",
    "k8s.node.uid",
    "k8s.pod.hostname",
    "k8s.pod.ip",
    "k8s.pod.name",
    "k8s.pod.start_time",
    "k8s.pod.uid",
    "k8s.replicaset.name",
    "k8s.replicaset.uid",
    "k8s.statefulset.name",
    "k8s.statefulset.uid",
    "node.id",
    "os.description",
    "os.name",
    "os.type",
    "os.version",
    "process.command",
    "process.executable.name",
    "process.executable.path",
    "process.pid",
    "service.instance.id",
    "service.name",
    "service.namespace",
    "service.version",
    "thread.id",
    "thread.name",
};

constexpr size_t kComparedBytesMax = 64;

}  // namespace

AttributeNames::AttributeNames() {
  for (std::string_view name : kSemanticNames) names_.emplace(NormalizeLabel(name), name);
}

void AttributeNames::Learn(const Attributes& attributes) {
  std::vector<std::pair<std::string, std::string_view>> fresh;
  {
    std::shared_lock lock(mutex_);
    for (const Attribute& attribute : attributes) {
      if (attribute.key == kImageVersion) continue;
      std::string normalized = NormalizeLabel(attribute.key);
      if (!names_.contains(normalized)) fresh.emplace_back(std::move(normalized), attribute.key);
    }
  }
  if (fresh.empty()) return;
  std::unique_lock lock(mutex_);
  for (auto& [normalized, name] : fresh) {
    if (names_.size() >= kNamesMax) return;
    names_.try_emplace(std::move(normalized), name);
  }
}

bool AttributeNames::Knows(std::string_view name) const {
  const std::string normalized = NormalizeLabel(name);
  std::shared_lock lock(mutex_);
  return names_.contains(normalized);
}

std::vector<std::string> AttributeNames::List() const {
  std::vector<std::string> list;
  {
    std::shared_lock lock(mutex_);
    list.reserve(names_.size());
    for (const auto& [normalized, written] : names_) list.push_back(written);
  }
  std::sort(list.begin(), list.end());
  return list;
}

std::string AttributeNames::Nearest(std::string_view name) const {
  const std::string wanted = NormalizeLabel(name.substr(0, kComparedBytesMax));
  std::shared_lock lock(mutex_);
  std::string_view nearest;
  size_t fewest = SIZE_MAX;
  for (const auto& [normalized, written] : names_) {
    const size_t edits = EditDistance(std::string_view(normalized).substr(0, kComparedBytesMax), wanted);
    if (edits < fewest || (edits == fewest && written < nearest)) {
      fewest = edits;
      nearest = written;
    }
  }
  return std::string(nearest);
}

}  // namespace tributary
