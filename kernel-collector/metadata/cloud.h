#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "kernel-collector/metadata/http_client.h"
#include "profile/attributes.h"

// What a cloud's instance service says of the machine that asks it.

namespace tributary {

enum class Cloud { kNone, kAws, kGcp, kAzure };
std::string_view CloudName(Cloud cloud);  // as cloud.provider has it; "none"

// Whose machine this is, as its firmware says: a machine of nobody's asks nobody.
Cloud DetectCloud(const std::string& sys_root);

// Where each has its instance service: a link-local address, which no name has to be resolved for and no packet leaves
// the host's network to.
HttpEndpoint InstanceService(Cloud cloud);

// cloud.*, host.id (the instance's), host.type, host.image.id, and k8s.cluster.name where the service knows it. Values
// that are no identifiers (control bytes, more than 255 bytes) are left out. InvalidArgument: what answers is not the
// instance service. Else as HttpExchange. Blocks as `ask` does.
absl::StatusOr<Attributes> AskCloud(Cloud cloud, const HttpAsk& ask);

// An answer of any of them; documents are a few KB.
constexpr size_t kCloudBodyBytesMax = 64u << 10;

}  // namespace tributary
