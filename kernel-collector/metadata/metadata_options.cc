#include "kernel-collector/metadata/metadata_options.h"

#include <fmt/format.h>

#include <iterator>

#include "base/parse.h"
#include "base/status.h"
#include "base/types.h"
#include "base/utf8.h"
#include "kernel-collector/metadata/http_client.h"
#include "profile/metadata.h"

namespace tributary {
namespace {

absl::Status Invalid(std::string_view message) { return Error(absl::StatusCode::kInvalidArgument, message); }

// The labels of opentelemetry-network's collectors: below `labels:` in the file, EBPF_NET_AGENT_* in the environment.
struct Label {
  const char* name;
  const char* attribute;
  bool in_environment;  // also under the old name
};
constexpr Label kLabels[] = {
    {"namespace", "service.namespace", true},
    {"cluster", "k8s.cluster.name", true},
    {"environment", "deployment.environment.name", false},
    {"service", "service.name", true},
    {"host", "host.name", true},
    {"zone", "cloud.availability_zone", true},
};

absl::Status CheckLabel(std::string_view value) {
  if (value.size() <= kAttributeValueBytesMax && IsUtf8(value)) return absl::OkStatus();
  return Invalid(fmt::format("must be UTF-8 text of at most {} bytes", kAttributeValueBytesMax));
}

// Checks the whole text: a part that DecodeAttributes would skip is an error here.
absl::Status CheckAttributes(std::string_view text) {
  for (std::string_view rest = text;;) {
    const std::string_view pair = rest.substr(0, rest.find(','));
    const Attributes attributes = DecodeAttributes(pair);
    if (attributes.empty() || attributes[0].key.size() > kAttributeKeyBytesMax || !IsUtf8(attributes[0].key) ||
        !CheckLabel(attributes[0].value).ok()) {
      return Invalid(
          "must be KEY=VALUE, or several pairs KEY=VALUE, separated by commas; keys and values must be UTF-8 text, and "
          "not too long");
    }
    if (pair.size() == rest.size()) return absl::OkStatus();
    rest.remove_prefix(pair.size() + 1);
  }
}

absl::Status CheckTimeout(std::string_view value) {
  const auto ns = ParseDurationNs(value);
  if (ns.ok() && *ns >= kNsPerMs && *ns <= kNsPerMinute) return absl::OkStatus();
  return Invalid("must be a duration of 1ms to 1m");
}

}  // namespace

void MetadataOptionTable::AddTo(Options& table) {
  static_assert(std::size(kLabels) == kLabelCount);
  table.Add(
      {.name = "host-dir",
       .help = "if the collector runs in a container: directory below which /etc, /sys/fs/cgroup, /var/run, /proc and "
               "/sys of the host are mounted; files in /etc that are missing there are read below /proc/1/root or /",
       .value_name = "DIR"},
      &out_.host_dir, "/hostfs");
  for (size_t i = 0; i < std::size(kLabels); ++i) {
    const Label& label = kLabels[i];
    Options::Spec spec{.name = fmt::format("labels-{}", label.name),
                       .help = fmt::format("value of the attribute {} for samples of this node", label.attribute),
                       .value_name = "NAME",
                       .check = CheckLabel};
    if (label.in_environment) {
      std::string upper(label.name);
      for (char& c : upper) c = static_cast<char>(c - 'a' + 'A');
      spec.env_aliases = {"EBPF_NET_AGENT_" + upper};
    }
    table.Add(std::move(spec), &labels_[i], "");
  }
  table.Add(
      {.name = "resource-attribute",
       .help = "attribute of the samples of this node; docs/metadata.md says which value is used if another source "
               "has the attribute KEY, too; write special bytes as %XX, as in OTEL_RESOURCE_ATTRIBUTES; may be "
               "repeated",
       .value_name = "KEY=VALUE",
       .check = CheckAttributes},
      &attributes_);
  table.Add({.name = "cloud-metadata",
             .help = "cloud from which the collector requests metadata of this machine: aws, gcp or azure; auto: the "
                     "cloud that the machine's firmware names, if any; off: no requests",
             .value_name = "WHOSE",
             .values = {"auto", "off", "aws", "gcp", "azure"}},
            &cloud_, "auto");
  table.Add({.name = "cloud-metadata-timeout",
             .help = "time limit for all requests of one attempt to get the cloud's metadata, 1ms to 1m",
             .value_name = "DURATION",
             .check = CheckTimeout},
            &timeout_, "1s");
  table.Add({.name = "cloud-metadata-timeout-ms",
             .help = "old form of --cloud-metadata-timeout, in microseconds despite the option's name; for "
                     "configurations of opentelemetry-network's collectors; 0: --cloud-metadata-timeout is used",
             .value_name = "US"},
            &old_timeout_us_, 0, 0, 60'000'000);
  table.Add({.name = "cloud-metadata-endpoint",
             .help = "URL of the cloud's instance metadata service, for tests; if empty, the service's usual address, "
                     "169.254.169.254",
             .value_name = "URL",
             .check = [](std::string_view v) { return v.empty() ? absl::OkStatus() : ParseHttpEndpoint(v).status(); }},
            &out_.cloud_endpoint, "");
  table.Add(
      {.name = "docker-socket",
       .help = "path of Docker's socket, from which the collector gets images and labels of containers; if the path "
               "exists below --host-dir, the socket there is used; if empty, the collector does not use Docker",
       .value_name = "PATH"},
      &out_.docker_socket, "/var/run/docker.sock");
  table.Add({.name = "docker-ns-label",
             .help = "container label whose value becomes the container's service.namespace",
             .value_name = "LABEL",
             .env_aliases = {"DOCKER_NS_LABEL"}},
            &out_.docker_namespace_label, "");
}

absl::Status MetadataOptionTable::Take() {
  for (size_t i = 0; i < std::size(kLabels); ++i) {
    if (!labels_[i].empty()) SetAttribute(out_.resource, kLabels[i].attribute, labels_[i]);
  }
  for (const std::string& text : attributes_) {
    for (const auto& [key, value] : DecodeAttributes(text)) SetAttribute(out_.resource, key, value);
  }
  out_.detect_cloud = cloud_ == "auto";
  for (const Cloud cloud : {Cloud::kAws, Cloud::kGcp, Cloud::kAzure}) {
    if (cloud_ == CloudName(cloud)) out_.cloud = cloud;
  }
  ASSIGN_OR_RETURN(out_.cloud_timeout_ns, ParseDurationNs(timeout_));
  if (old_timeout_us_ != 0) out_.cloud_timeout_ns = old_timeout_us_ * kNsPerUs;
  return absl::OkStatus();
}

}  // namespace tributary
