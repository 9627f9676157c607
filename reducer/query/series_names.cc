#include "reducer/query/series_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/status.h"
#include "reducer/metadata/labels.h"

namespace tributary {
namespace {

constexpr std::string_view kNamespace = "k8s.namespace.name", kContainer = "k8s.container.name",
                           kDockerContainer = "container.name", kContainerId = "container.id", kPodUid = "k8s.pod.uid",
                           kPod = "k8s.pod.name", kService = "service.name", kServiceNamespace = "service.namespace";

// Returns "k8s.KIND.name" for each of kWorkloadKinds.
const std::vector<std::string>& WorkloadNames() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (std::string_view kind : kWorkloadKinds) names.push_back(fmt::format("k8s.{}.name", kind));
    return names;
  }();
  return kNames;
}

}  // namespace

void SeriesNames::Entries::Add(const SeriesWeight& weight) const {
  for (Entry* entry : {pod, name_space, workload, service}) {
    if (entry == nullptr) continue;
    entry->value += weight.value;
    entry->count += weight.count;
  }
}

Attributes SeriesNames::Named(const Attributes& attributes) {
  Attributes named;
  for (const Attribute& attribute : attributes) {
    const std::string_view key = attribute.key;
    for (std::string_view read :
         {kNamespace, kContainer, kDockerContainer, kContainerId, kPodUid, kPod, kService, kServiceNamespace}) {
      if (key == read) named.push_back(attribute);
    }
    if (std::ranges::find(WorkloadNames(), key) != WorkloadNames().end()) named.push_back(attribute);
  }
  return named;
}

SeriesNames::Entries SeriesNames::EntriesOf(const Attributes& attributes, bool is_newer) {
  const auto get = [&](std::string_view key) { return std::string(FindAttribute(attributes, key)); };
  const std::string name_space = get(kNamespace);
  std::string container = get(kContainer);
  if (container.empty()) container = get(kDockerContainer);
  if (std::string id = get(kContainerId); !id.empty() && !container.empty()) {
    Describe(&containers_, {.id = std::move(id), .name = std::move(container)}, is_newer);
  }
  Entries entries;
  if (std::string uid = get(kPodUid); !uid.empty()) {
    entries.pod = Describe(&pods_, {.id = std::move(uid), .name = get(kPod), .name_space = name_space}, is_newer);
  }
  if (!name_space.empty()) entries.name_space = Describe(&namespaces_, {.name = name_space}, is_newer);
  for (size_t i = 0; i < kWorkloadKinds.size() && entries.workload == nullptr; ++i) {
    std::string name = get(WorkloadNames()[i]);
    if (name.empty()) continue;
    Entry workload{.name = std::move(name), .name_space = name_space, .kind = std::string(kWorkloadKinds[i])};
    entries.workload = Describe(&workloads_, std::move(workload), is_newer);
  }
  entries.service = Describe(&services_, {.name = get(kService), .name_space = get(kServiceNamespace)}, is_newer);
  return entries;
}

void SeriesNames::AddHost(std::string id, std::string name, const SeriesWeight& weight) {
  Describe(&hosts_, {.id = std::move(id), .name = std::move(name), .value = weight.value, .count = weight.count}, true);
}

void SeriesNames::AddContainer(std::string id, const SeriesWeight& weight) {
  Describe(&containers_, {.id = std::move(id), .value = weight.value, .count = weight.count}, true);
}

absl::Status SeriesNames::Merge(SeriesNames& other, const QueryRequest& request) {
  size_t merged = 0;
  const auto of_other = other.lists(), mine = lists();
  for (size_t i = 0; i < mine.size(); ++i) {
    // Moves nodes, because copies would take as much memory again.
    for (Map& from = *of_other[i].first; !from.empty();) {
      RETURN_IF_ERROR(CheckCancelledAt(request, ++merged));
      auto moved = mine[i].first->insert(from.extract(from.begin()));
      if (!moved.inserted) Describe(mine[i].first, moved.node.key(), std::move(moved.node.mapped()), true);
    }
  }
  return Check();
}

size_t SeriesNames::Count(size_t containers) const {
  return std::max(containers, containers_.size()) + pods_.size() + namespaces_.size() + workloads_.size() +
         services_.size();
}

absl::Status SeriesNames::Check(size_t containers) const {
  if (Count(containers) <= kNamedMax) return absl::OkStatus();
  return Error(
      absl::StatusCode::kResourceExhausted,
      fmt::format("more than {} containers, pods, namespaces, workloads and services ran in this time range: ask for a "
                  "shorter time range or a narrower selector, such as node_id=\"…\"",
                  kNamedMax));
}

SeriesNames::Entry* SeriesNames::Describe(Map* map, Entry described, bool is_newer) {
  Key key =
      described.id.empty() ? Key(described.kind, described.name_space, described.name) : Key(described.id, "", "");
  return Describe(map, key, std::move(described), is_newer);
}

SeriesNames::Entry* SeriesNames::Describe(Map* map, const Key& key, Entry described, bool is_newer) {
  // An entry has its texts in its key, too.
  const auto [found, is_new] = map->try_emplace(key);
  Entry& entry = found->second;
  if (is_new) {
    bytes_ += kEntryBytes;
    for (const std::string* text : {&described.id, &described.name, &described.name_space, &described.kind}) {
      bytes_ += 2 * text->size();
    }
  }
  if (!described.name.empty() && (is_newer || entry.name.empty())) {
    entry.name = std::move(described.name);
    entry.name_space = std::move(described.name_space);
  }
  entry.id = std::move(described.id);
  entry.kind = std::move(described.kind);
  entry.value += described.value;
  entry.count += described.count;
  return &entry;
}

}  // namespace tributary
