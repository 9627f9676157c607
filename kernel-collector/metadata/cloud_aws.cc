#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>

#include "base/status.h"
#include "kernel-collector/metadata/cloud.h"
#include "kernel-collector/metadata/cloud_services.h"

// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/configuring-instance-metadata-service.html

namespace tributary {
namespace {

constexpr std::string_view kTokenPath = "/latest/api/token";
constexpr std::string_view kDocumentPath = "/latest/dynamic/instance-identity/document";

// A token becomes part of a header, so it must not hold a byte that could end the header.
bool IsToken(std::string_view text) {
  return !text.empty() && text.size() <= 1024 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

std::string_view Partition(std::string_view region) {
  if (region.starts_with("cn-")) return "aws-cn";
  if (region.starts_with("us-gov-")) return "aws-us-gov";
  return "aws";
}

}  // namespace

// Uses only version 2 of the service, which requires a token first. The service's answer has a hop limit, 1 by default.
// The answer never reaches a container with its own network.
absl::StatusOr<Attributes> AskAws(const HttpAsk& ask) {
  auto token = AskOk(
      ask,
      {.method = "PUT", .path = std::string(kTokenPath), .headers = {{"X-aws-ec2-metadata-token-ttl-seconds", "60"}}});
  if (token.status().code() == absl::StatusCode::kDeadlineExceeded) {
    return WithContext(token.status(),
                       "if the collector runs in a container, the instance's metadata hop limit may be too low");
  }
  RETURN_IF_ERROR(token.status());
  if (!IsToken(token->body)) return Error(absl::StatusCode::kInvalidArgument, "the answer is not a token");
  ASSIGN_OR_RETURN(const HttpResponse response, AskOk(ask, {.path = std::string(kDocumentPath),
                                                            .headers = {{"X-aws-ec2-metadata-token", token->body}}}));
  simdjson::dom::parser parser(kCloudBodyBytesMax);
  simdjson::dom::object document;
  if (parser.parse(response.body).get(document) != simdjson::SUCCESS) {
    return Error(absl::StatusCode::kInvalidArgument, "the answer is not an instance identity document");
  }
  const auto text = [&](std::string_view key) {
    std::string_view value;
    return document[key].get(value) == simdjson::SUCCESS ? value : std::string_view();
  };
  Attributes out;
  SetAttribute(out, "cloud.provider", "aws");
  SetAttribute(out, "cloud.platform", "aws_ec2");
  SetIdentifier(out, "cloud.account.id", text("accountId"));
  SetIdentifier(out, "cloud.region", text("region"));
  SetIdentifier(out, "cloud.availability_zone", text("availabilityZone"));
  SetIdentifier(out, "host.id", text("instanceId"));
  SetIdentifier(out, "host.type", text("instanceType"));
  SetIdentifier(out, "host.image.id", text("imageId"));
  if (FindAttribute(out, "host.id").empty()) {
    return Error(absl::StatusCode::kInvalidArgument, "the instance identity document has no instanceId");
  }
  const std::string_view region = FindAttribute(out, "cloud.region"), account = FindAttribute(out, "cloud.account.id");
  if (!region.empty() && !account.empty()) {
    SetIdentifier(
        out, "cloud.resource_id",
        fmt::format("arn:{}:ec2:{}:{}:instance/{}", Partition(region), region, account, FindAttribute(out, "host.id")));
  }
  return out;
}

}  // namespace tributary
