#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "kernel-collector/metadata/http_client.h"
#include "profile/attributes.h"

// Requests to the instance service of each cloud. AskCloud in cloud.h selects one of them, and describes the errors.

namespace tributary {

// Each function is in its own file: cloud_aws.cc, cloud_gcp.cc, cloud_azure.cc.
absl::StatusOr<Attributes> AskAws(const HttpAsk& ask);
absl::StatusOr<Attributes> AskGcp(const HttpAsk& ask);
absl::StatusOr<Attributes> AskAzure(const HttpAsk& ask);

// Sends `request` and returns the answer if its HTTP status is 200. NotFound: the status is 404. Unavailable: it is
// another status.
absl::StatusOr<HttpResponse> AskOk(const HttpAsk& ask, const HttpRequest& request);

// Sets the attribute if the value can be an identifier: 1 to 255 bytes, printable ASCII.
void SetIdentifier(Attributes& attributes, std::string_view key, std::string_view value);

}  // namespace tributary
