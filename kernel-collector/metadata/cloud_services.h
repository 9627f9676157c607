#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "kernel-collector/metadata/http_client.h"
#include "profile/attributes.h"

// The individual instance services; cloud.h selects one. Errors as for AskCloud.

namespace tributary {

// Each function is in its own file: cloud_aws.cc, cloud_gcp.cc, cloud_azure.cc.
absl::StatusOr<Attributes> AskAws(const HttpAsk& ask);
absl::StatusOr<Attributes> AskGcp(const HttpAsk& ask);
absl::StatusOr<Attributes> AskAzure(const HttpAsk& ask);

// Returns the answer if its status is 200. NotFound: status 404. Unavailable: another status.
absl::StatusOr<HttpResponse> AskOk(const HttpAsk& ask, const HttpRequest& request);

// Sets the attribute if the value can be an identifier: 1 to 255 bytes, printable ASCII.
void SetIdentifier(Attributes& attributes, std::string_view key, std::string_view value);

}  // namespace tributary
