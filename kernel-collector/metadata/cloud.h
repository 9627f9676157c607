#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "kernel-collector/metadata/http_client.h"
#include "profile/attributes.h"

// The attributes of a machine from its cloud's instance service.

namespace tributary {

enum class Cloud { kNone, kAws, kGcp, kAzure };
std::string_view CloudName(Cloud cloud);  // the value of cloud.provider; "none" for kNone

// Returns the cloud of this machine, from its firmware. For kNone the collector asks no instance service.
Cloud DetectCloud(const std::string& sys_root);

// Returns the endpoint of the cloud's instance service. It is a link-local address: it needs no name resolution, and no
// packet leaves the host's network.
HttpEndpoint InstanceService(Cloud cloud);

// Returns cloud.*, host.id (the instance's), host.type, host.image.id, and k8s.cluster.name if the service knows it.
// Values that cannot be identifiers (control bytes, more than 255 bytes) are left out. InvalidArgument if the answer
// does not come from the instance service. Other errors as for HttpExchange. Blocks as `ask` does.
absl::StatusOr<Attributes> AskCloud(Cloud cloud, const HttpAsk& ask);

// The limit of an answer from any of the services. Real documents are a few KB.
constexpr size_t kCloudBodyBytesMax = 64u << 10;

}  // namespace tributary
