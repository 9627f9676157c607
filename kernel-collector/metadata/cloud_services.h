#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "kernel-collector/metadata/http_client.h"
#include "profile/attributes.h"

// The instance services, one by one; cloud.h chooses. Errors as AskCloud.

namespace tributary {

// Each in a file of its own: cloud_aws.cc, cloud_gcp.cc, cloud_azure.cc.
absl::StatusOr<Attributes> AskAws(const HttpAsk& ask);
absl::StatusOr<Attributes> AskGcp(const HttpAsk& ask);
absl::StatusOr<Attributes> AskAzure(const HttpAsk& ask);

// The answer's body when its status is 200. NotFound: 404. Unavailable: another.
absl::StatusOr<HttpResponse> AskOk(const HttpAsk& ask, const HttpRequest& request);

// Sets it, if it can be an identifier: 1 to 255 bytes, printable ASCII.
void SetIdentifier(Attributes& attributes, std::string_view key, std::string_view value);

}  // namespace tributary
