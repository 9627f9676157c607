#include <fmt/format.h>
#include <simdjson.h>

#include "base/status.h"
#include "kernel-collector/metadata/cloud.h"
#include "kernel-collector/metadata/cloud_services.h"

// https://learn.microsoft.com/azure/virtual-machines/instance-metadata-service

namespace tributary {

// Requests the last API version without user data in the answer.
absl::StatusOr<Attributes> AskAzure(const HttpAsk& ask) {
  ASSIGN_OR_RETURN(const HttpResponse response,
                   AskOk(ask, {.path = "/metadata/instance/compute?api-version=2020-09-01&format=json",
                               .headers = {{"Metadata", "true"}}}));
  simdjson::dom::parser parser(kCloudBodyBytesMax);
  simdjson::dom::object compute;
  if (parser.parse(response.body).get(compute) != simdjson::SUCCESS) {
    return Error(absl::StatusCode::kInvalidArgument, "the answer is not an instance document");
  }
  const auto text = [](const simdjson::dom::object& from, std::string_view key) {
    std::string_view value;
    return from[key].get(value) == simdjson::SUCCESS ? value : std::string_view();
  };
  Attributes out;
  SetAttribute(out, "cloud.provider", "azure");
  SetAttribute(out, "cloud.platform", "azure.vm");
  SetIdentifier(out, "cloud.account.id", text(compute, "subscriptionId"));
  SetIdentifier(out, "cloud.region", text(compute, "location"));
  SetIdentifier(out, "cloud.resource_id", text(compute, "resourceId"));
  SetIdentifier(out, "host.id", text(compute, "vmId"));
  SetIdentifier(out, "host.type", text(compute, "vmSize"));
  if (FindAttribute(out, "host.id").empty()) {
    return Error(absl::StatusCode::kInvalidArgument, "the instance document has no vmId");
  }
  // Zones are "1" to "3" in each region. The name has the form that Kubernetes uses.
  const std::string_view zone = text(compute, "zone");
  if (!zone.empty()) {
    SetIdentifier(out, "cloud.availability_zone", fmt::format("{}-{}", text(compute, "location"), zone));
  }
  simdjson::dom::object image;
  if (compute.at_pointer("/storageProfile/imageReference").get(image) != simdjson::SUCCESS) return out;
  std::string id(text(image, "id"));
  if (id.empty() && !text(image, "publisher").empty()) {
    id = fmt::format("{}:{}:{}:{}", text(image, "publisher"), text(image, "offer"), text(image, "sku"),
                     text(image, "version"));
  }
  SetIdentifier(out, "host.image.id", id);
  return out;
}

}  // namespace tributary
