#include "reducer/metadata/service_version.h"

#include <fmt/format.h>

#include <algorithm>

#include "absl/hash/hash.h"
#include "base/utf8.h"
#include "profile/cgroup_path.h"
#include "reducer/metadata/labels.h"

namespace tributary {
namespace {

constexpr size_t kDigitsShown = 12;  // as Docker shows ids
// Services with longer names are ignored: people do not look at them. Longer versions are cut.
constexpr size_t kTextBytesMax = 256;

bool Differ(const std::string& a, const std::string& b) { return !a.empty() && !b.empty() && a != b; }

// Returns the first digits of "registry/image@sha256:…,…" or "sha256:…".
std::string DigitsOf(std::string_view digest) {
  if (const size_t colon = digest.find("sha256:"); colon != std::string_view::npos) digest.remove_prefix(colon + 7);
  return ToUtf8(digest.substr(0, std::min(kDigitsShown, digest.find_first_of(",\"] "))));
}

std::string ImageOf(const Attributes& resource) {
  const std::string_view name = FindAttribute(resource, "container.image.name");
  std::string_view tag = FindAttribute(resource, "container.image.tag");
  if (tag.empty()) tag = FindAttribute(resource, "container.image.tags");
  return name.empty() || tag.empty() ? std::string(name) : fmt::format("{}:{}", name, tag);
}

bool IsOfPod(const Attributes& resource) {
  return !FindAttribute(resource, "k8s.pod.uid").empty() || !FindAttribute(resource, "k8s.pod.name").empty();
}

}  // namespace

bool ServiceVersion::DiffersFrom(const ServiceVersion& other) const {
  return Differ(version, other.version) || Differ(image, other.image) || Differ(digest, other.digest) ||
         Differ(build_id, other.build_id);
}

void ServiceVersion::Fill(const ServiceVersion& other) {
  const auto fill = [](std::string& to, const std::string& from) {
    if (to.empty()) to = from;
  };
  fill(version, other.version);
  fill(image, other.image);
  fill(digest, other.digest);
  fill(build_id, other.build_id);
}

void ServiceSightings::Add(ServiceSighting sighting) {
  const ServiceVersion& version = sighting.version;
  const size_t hash = absl::HashOf(sighting.program, version.version, version.image, version.digest, version.build_id,
                                   sighting.began.value / kNsPerSecond);
  const auto [known, added] = known_.try_emplace(hash, list_.size());
  if (!added) {
    UnixNs& began = list_[known->second].began;
    began = std::min(began, sighting.began);
  } else if (list_.size() < kMax) {
    list_.push_back(std::move(sighting));
  } else {
    known_.erase(known);
    ++turned_away_;
  }
}

std::optional<ServiceSighting> SightingOf(const store::ProcessRow& process, const Attributes& resource,
                                          std::string_view build_id, UnixNs booted, UnixNs now) {
  if (process.start_time_ns <= 0 || booted.value <= 0 || IsOfPod(resource)) return std::nullopt;
  ServiceSighting sighting{.began = UnixNs{booted.value + process.start_time_ns}};
  if (sighting.began.value > now.value - kVersionSettlesNs) return std::nullopt;
  sighting.program = {.name_space = std::string(FindAttribute(resource, "service.namespace")),
                      .name = std::string(FindAttribute(resource, "service.name")),
                      .environment = std::string(FindAttribute(resource, "deployment.environment.name")),
                      .executable = ToUtf8(BaseName(process.executable_path))};
  const auto& [name_space, name, environment, executable] = sighting.program;
  if (name.empty() || executable.empty()) return std::nullopt;
  for (const std::string* text : {&name_space, &name, &environment, &executable}) {
    if (text->size() > kTextBytesMax) return std::nullopt;
  }
  ServiceVersion& version = sighting.version;
  version.version = ToUtf8(FindAttribute(resource, "service.version").substr(0, kTextBytesMax));
  version.image = ToUtf8(ImageOf(resource).substr(0, kTextBytesMax));
  version.digest = DigitsOf(FindAttribute(resource, "container.image.repo_digests"));
  if (version.digest.empty()) version.digest = DigitsOf(FindAttribute(resource, "container.image.id"));
  const bool has_version = !version.empty();
  if (!has_version && (build_id.empty() || process.as_of.value < sighting.began.value + kServesAfterNs))
    return std::nullopt;
  const CgroupPath place = ParseCgroupPath(process.cgroup_path);
  if (!place.pod_uid.empty()) return std::nullopt;  // a static pod has a hash, which is not a k8s.pod.uid
  if (has_version) return sighting;
  if (place.systemd_unit.empty() && place.container_id.empty() && process.container_id.empty()) return std::nullopt;
  version.build_id = build_id;
  return sighting;
}

}  // namespace tributary
