#include "profile/resource_merger.h"

#include <algorithm>
#include <string>

#include "base/utf8.h"

namespace tributary {
namespace {

// Returns true for attributes that say where a process runs: for them, metadata wins over the process itself.
bool IsLocation(std::string_view key) {
  for (std::string_view prefix : {"k8s.", "container.", "host.", "cloud.", "os."}) {
    if (key.starts_with(prefix)) return true;
  }
  return false;
}

// Returns true for the name that an SDK reports if no name was configured: "unknown_service", "unknown_service:java"
// (OpenTelemetry's resource conventions).
bool IsSdkDefault(std::string_view key, std::string_view value) {
  constexpr std::string_view kUnknown = "unknown_service";
  return key == "service.name" && value.starts_with(kUnknown) &&
         (value.size() == kUnknown.size() || value[kUnknown.size()] == ':');
}

}  // namespace

void ResourceMerger::Add(Source source, std::string_view key, std::string_view value) {
  if (!key.empty() && !value.empty()) items_.push_back({key, value, size_t{source} << 32 | items_.size()});
}

void ResourceMerger::AddOf(EntityKind kind, std::string_view key, std::string_view value) {
  // A node's attributes that are not about its machine or cloud come from its operator.
  const Source other = kind == EntityKind::kHost ? kNodeOperator : kOther;
  Add(IsLocation(key) ? kWhere : other, key, value);
}

void ResourceMerger::AddIds(const CgroupPath& cgroup, std::string_view container_id) {
  Add(kWhere, "container.id", container_id);
  if (!IsConfigHash(cgroup.pod_uid)) Add(kWhere, "k8s.pod.uid", cgroup.pod_uid);
}

void ResourceMerger::AddHost(std::string_view host_name, std::string_view node_id) {
  Add(kWhere, "host.name", host_name);
  Add(kWhere, "host.id", node_id);  // if the node has not reported a better id: a cloud's instance
}

void ResourceMerger::AddOwn(const Attributes& own) {
  for (const auto& [key, value] : own) {
    if (key.starts_with("process.") || key.starts_with("thread.") || IsSdkDefault(key, value)) continue;
    Add(kProcess, key, value);
  }
}

void ResourceMerger::AddService(const ServiceIdentity& service) {
  Add(kComputed, "service.name", service.name);
  Add(kComputed, "service.namespace", service.name_space);
  Add(kComputed, "service.version", service.version);
  Add(kComputed, "service.instance.id", service.instance_id);
}

Attributes ResourceMerger::Merged() {
  std::sort(items_.begin(), items_.end(),
            [](const Item& a, const Item& b) { return a.key != b.key ? a.key < b.key : a.rank < b.rank; });
  items_.erase(std::unique(items_.begin(), items_.end(), [](const Item& a, const Item& b) { return a.key == b.key; }),
               items_.end());
  Attributes merged;
  merged.reserve(items_.size());
  for (const Item& item : items_) merged.push_back({std::string(item.key), ToUtf8(item.value)});
  return merged;
}

}  // namespace tributary
