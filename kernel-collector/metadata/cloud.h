#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "kernel-collector/metadata/http_client.h"
#include "profile/attributes.h"

// Reads the attributes of a machine from the instance metadata service of its cloud.

namespace tributary {

enum class Cloud { kNone, kAws, kGcp, kAzure };
std::string_view CloudName(Cloud cloud);  // the value of cloud.provider; "none" for kNone

// Finds out the cloud of this machine from the firmware's data in sysfs. If it returns kNone, the collector sends no
// request to an instance service.
Cloud DetectCloud(const std::string& sys_root);

// Returns the endpoint of the cloud's instance service. It is a link-local address: it needs no name resolution, and no
// packet leaves the host's network.
HttpEndpoint InstanceService(Cloud cloud);

// Requests the attributes of this machine: cloud.*, host.id (the id of the instance), host.type, host.image.id, and
// k8s.cluster.name if the service has it. Omits values that are not 1 to 255 bytes of printable ASCII. InvalidArgument
// if the answer does not come from the instance service. Other errors as for HttpExchange and AskOk (cloud_services.h).
// Blocks while `ask` blocks.
absl::StatusOr<Attributes> AskCloud(Cloud cloud, const HttpAsk& ask);

// Limit for the body of an answer. Real answers have a few KB.
constexpr size_t kCloudBodyBytesMax = 64u << 10;

}  // namespace tributary
