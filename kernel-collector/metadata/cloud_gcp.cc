#include <fmt/format.h>

#include <utility>

#include "base/status.h"
#include "kernel-collector/metadata/cloud_services.h"

// https://cloud.google.com/compute/docs/metadata/querying-metadata

namespace tributary {
namespace {

// Requests one value. The service could send the whole tree at once, but the tree contains keys and start-up scripts.
absl::StatusOr<std::string> Value(const HttpAsk& ask, std::string_view name) {
  ASSIGN_OR_RETURN(HttpResponse response, AskOk(ask, {.path = fmt::format("/computeMetadata/v1/{}", name),
                                                      .headers = {{"Metadata-Flavor", "Google"}}}));
  if (response.Header("metadata-flavor") != "Google") {
    return Error(absl::StatusCode::kInvalidArgument, "the answer is not from Google's metadata server");
  }
  return std::move(response.body);
}

// "projects/123/zones/europe-west1-b" → "europe-west1-b"
std::string_view LastPart(std::string_view path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

absl::StatusOr<Attributes> AskGcp(const HttpAsk& ask) {
  Attributes out;
  SetAttribute(out, "cloud.provider", "gcp");
  SetAttribute(out, "cloud.platform", "gcp_compute_engine");
  ASSIGN_OR_RETURN(const std::string project, Value(ask, "project/project-id"));
  ASSIGN_OR_RETURN(const std::string id, Value(ask, "instance/id"));
  ASSIGN_OR_RETURN(const std::string zone_path, Value(ask, "instance/zone"));
  ASSIGN_OR_RETURN(const std::string type, Value(ask, "instance/machine-type"));
  const std::string_view zone = LastPart(zone_path);
  SetIdentifier(out, "cloud.account.id", project);
  SetIdentifier(out, "cloud.availability_zone", zone);
  SetIdentifier(out, "cloud.region", zone.substr(0, zone.rfind('-')));
  SetIdentifier(out, "host.id", id);
  SetIdentifier(out, "host.type", LastPart(type));
  if (FindAttribute(out, "host.id").empty()) {
    return Error(absl::StatusCode::kInvalidArgument, "the metadata server's answer has no instance id");
  }
  SetIdentifier(out, "cloud.resource_id",
                fmt::format("//compute.googleapis.com/projects/{}/zones/{}/instances/{}", project, zone, id));
  // Not all machines have these values: the answer is 404 for a machine without them.
  for (const auto& [attribute, name] :
       {std::pair{"host.image.id", "instance/image"}, {"k8s.cluster.name", "instance/attributes/cluster-name"}}) {
    auto value = Value(ask, name);
    if (value.ok()) {
      SetIdentifier(out, attribute, *value);
    } else if (value.status().code() != absl::StatusCode::kNotFound) {
      return value.status();
    }
  }
  if (!FindAttribute(out, "k8s.cluster.name").empty()) SetAttribute(out, "cloud.platform", "gcp_kubernetes_engine");
  return out;
}

}  // namespace tributary
