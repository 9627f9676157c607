#include "k8s-collector/resolve/kube_entities.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "base/number.h"
#include "k8s-collector/resolve/container_reference.h"
#include "profile/image_reference.h"

namespace tributary {
namespace {

constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";

// Collects attributes in any order.
class Builder {
 public:
  explicit Builder(uint64_t& left_out) : left_out_(left_out) {}

  void Add(std::string key, std::string_view value) {
    if (value.empty()) return;
    AddEvenEmpty(std::move(key), value);
  }
  void AddEvenEmpty(std::string key, std::string_view value) {
    if (key.size() > kAttributeKeyBytesMax || value.size() > kAttributeValueBytesMax) {
      ++left_out_;
    } else {
      attributes_.push_back({std::move(key), std::string(value)});
    }
  }
  void AddOwner(std::string_view kind, std::string_view name, std::string_view uid) {
    const std::string_view word = OwnerWord(kind);
    if (word.empty()) return;
    Add(fmt::format("k8s.{}.name", word), name);
    Add(fmt::format("k8s.{}.uid", word), uid);
  }
  void AddLabels(std::string_view prefix, const KubeObject& object) {
    for (const auto& [key, value] : object.labels) AddEvenEmpty(fmt::format("{}.label.{}", prefix, key), value);
  }
  void AddAnnotations(std::string_view prefix, const KubeObject& object) {
    size_t room = kAnnotationsMax;
    for (const bool used : {true, false}) {
      for (const auto& [key, value] : object.annotations) {
        const bool is_used = key.starts_with(kOtelAnnotationPrefix) || key.starts_with(kOwnAnnotationPrefix);
        if (is_used != used || key == kLastApplied) continue;
        if (room == 0 || (!used && value.size() > kAnnotationBytesMax)) {
          ++left_out_;
          continue;
        }
        --room;
        AddEvenEmpty(fmt::format("{}.annotation.{}", prefix, key), value);
      }
    }
  }

  Attributes Take() && {
    std::stable_sort(attributes_.begin(), attributes_.end(),
                     [](const auto& a, const auto& b) { return a.key < b.key; });
    const auto same = [](const Attribute& a, const Attribute& b) { return a.key == b.key; };
    attributes_.erase(std::unique(attributes_.begin(), attributes_.end(), same), attributes_.end());
    attributes_.shrink_to_fit();
    return std::move(attributes_);
  }

 private:
  uint64_t& left_out_;
  Attributes attributes_;
};

void AddContainer(const KubeObject& pod, const KubeObject::ContainerStatus& status, bool last,
                  std::vector<ContainerEntity>& out, uint64_t& left_out) {
  const std::string& text = last ? status.last_id : status.id;
  if (text.empty()) return;
  const ContainerReference reference = ParseContainerId(text);
  if (reference.id.empty()) {
    ++left_out;
    return;
  }
  const auto specified = std::find_if(pod.containers.begin(), pod.containers.end(),
                                      [&](const auto& container) { return container.name == status.name; });
  const bool is_specified = specified != pod.containers.end() && !specified->image.empty();
  const ImageReference image = ParseImageReference(is_specified ? specified->image : status.image);
  Builder builder(left_out);
  builder.Add("k8s.pod.uid", pod.uid);
  builder.Add("k8s.container.name", status.name);
  builder.Add("k8s.container.restart_count", std::to_string(std::max<int64_t>(0, status.restarts - (last ? 1 : 0))));
  builder.Add("container.runtime.name", reference.runtime);
  if (!image.name.empty()) {
    builder.Add("container.image.name", image.name);
    builder.Add("container.image.tag", ImageTag(image));
    builder.Add(std::string(kImageVersion), ImageVersion(image));
  }
  if (!last) {  // an earlier run may have had another image
    const size_t scheme = status.image_id.find("://");
    builder.Add("container.image.id",
                scheme == std::string::npos ? status.image_id : status.image_id.substr(scheme + 3));
    builder.Add("container.image.repo_digests", RepoDigest(status.image_id));
  }
  out.push_back({.entity = {.kind = EntityKind::kContainer,
                            .id = std::string(reference.id),
                            .attributes = std::move(builder).Take()},
                 .has_ended = last});
}

}  // namespace

UnixNs CreatedAt(const KubeObject& object) {
  // "2026-11-23T00:40:00Z": API servers use only this form.
  const std::string& text = object.created;
  if (text.size() != 20 || text[10] != 'T' || text[19] != 'Z') return {};
  const auto number = [&](size_t at, size_t digits) {
    std::string_view field = std::string_view(text).substr(at, digits);
    return TakeNumber<int>(field).value_or(-1);
  };
  using namespace std::chrono;
  const year_month_day date(year(number(0, 4)), month(static_cast<unsigned>(number(5, 2))),
                            day(static_cast<unsigned>(number(8, 2))));
  const int hour = number(11, 2), minute = number(14, 2), second = number(17, 2);
  if (!date.ok() || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60) return {};
  const auto at = sys_days(date) + hours(hour) + minutes(minute) + seconds(second);
  return UnixNs{nanoseconds(at.time_since_epoch()).count()};
}

std::string_view OwnerWord(std::string_view kind) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kWords = {{{"Deployment", "deployment"},
                                                                                    {"ReplicaSet", "replicaset"},
                                                                                    {"StatefulSet", "statefulset"},
                                                                                    {"DaemonSet", "daemonset"},
                                                                                    {"Job", "job"},
                                                                                    {"CronJob", "cronjob"}}};
  for (const auto& [name, word] : kWords) {
    if (name == kind) return word;
  }
  return "";
}

void SetOwner(Attributes& attributes, std::string_view kind, std::string_view name, std::string_view uid) {
  const std::string_view word = OwnerWord(kind);
  if (word.empty() || name.size() > kAttributeValueBytesMax || uid.size() > kAttributeValueBytesMax) return;
  SetAttribute(attributes, fmt::format("k8s.{}.name", word), name);
  if (!uid.empty()) SetAttribute(attributes, fmt::format("k8s.{}.uid", word), uid);
}

Entity MakePod(const KubeObject& pod, const OwnerChain& owners, uint64_t& left_out) {
  Builder builder(left_out);
  builder.Add("k8s.pod.name", pod.name);
  builder.Add("k8s.pod.uid", pod.uid);
  builder.Add("k8s.namespace.name", pod.name_space);
  builder.Add("k8s.node.name", pod.node_name);
  builder.Add("k8s.pod.ip", pod.ip);
  builder.Add("k8s.pod.hostname", pod.host_name);
  builder.Add("k8s.pod.start_time", pod.created);
  builder.AddLabels("k8s.pod", pod);
  builder.AddAnnotations("k8s.pod", pod);
  builder.AddOwner(owners.kind, owners.name, owners.uid);
  builder.AddOwner(owners.top_kind, owners.top_name, owners.top_uid);
  return {.kind = EntityKind::kPod, .id = pod.uid, .attributes = std::move(builder).Take()};
}

std::vector<ContainerEntity> MakeContainers(const KubeObject& pod, uint64_t& left_out) {
  std::vector<ContainerEntity> out;
  for (const KubeObject::ContainerStatus& status : pod.statuses) {
    AddContainer(pod, status, /*last=*/false, out, left_out);
    AddContainer(pod, status, /*last=*/true, out, left_out);
  }
  return out;
}

Entity MakeWorkload(std::string_view word, const KubeObject& workload, uint64_t& left_out) {
  Builder builder(left_out);
  const std::string prefix = fmt::format("k8s.{}", word);
  builder.AddLabels(prefix, workload);
  builder.AddAnnotations(prefix, workload);
  return {.kind = EntityKind::kWorkload, .id = workload.uid, .attributes = std::move(builder).Take()};
}

Entity MakeNamespace(const KubeObject& name_space, uint64_t& left_out) {
  Builder builder(left_out);
  builder.Add("k8s.namespace.name", name_space.name);
  builder.AddLabels("k8s.namespace", name_space);
  builder.AddAnnotations("k8s.namespace", name_space);
  return {.kind = EntityKind::kNamespace, .id = name_space.name, .attributes = std::move(builder).Take()};
}

Entity MakeNode(const KubeObject& node, uint64_t& left_out) {
  Builder builder(left_out);
  builder.Add("k8s.node.name", node.name);
  builder.Add("k8s.node.uid", node.uid);
  builder.AddLabels("k8s.node", node);
  builder.AddAnnotations("k8s.node", node);
  return {.kind = EntityKind::kK8sNode, .id = node.name, .attributes = std::move(builder).Take()};
}

Entity MakeCluster(std::string_view name, std::string_view uid) {
  uint64_t left_out = 0;
  Builder builder(left_out);
  builder.Add("k8s.cluster.name", name);
  builder.Add("k8s.cluster.uid", uid);
  return {.kind = EntityKind::kCluster, .id = "", .attributes = std::move(builder).Take()};
}

}  // namespace tributary
