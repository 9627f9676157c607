#pragma once

#include "cli/http_client.h"
#include "cli/options.h"

namespace tributary::cli {

// What a command asks of the reducer, as docs/api.md has it.
HttpClient::Parameters QueryParameters(const QueryOptions& query);

}  // namespace tributary::cli
