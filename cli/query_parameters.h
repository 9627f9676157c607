#pragma once

#include "cli/http_client.h"
#include "cli/options.h"

namespace tributary::cli {

// Returns the request parameters of a command, as in docs/api.md.
HttpClient::Parameters QueryParameters(const QueryOptions& query);

}  // namespace tributary::cli
