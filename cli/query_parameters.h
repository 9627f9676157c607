#pragma once

#include "cli/http_client.h"
#include "cli/options.h"

namespace tributary::cli {

// Returns the HTTP parameters for a query, as docs/api.md describes them.
HttpClient::Parameters QueryParameters(const QueryOptions& query);
// The same without the type of samples.
HttpClient::Parameters SelectionParameters(const QueryOptions& query);
// Adds the parameters of a request for frames. `by_address`: each frame is an address, instead of a function.
void AddFrameParameters(const FrameOptions& frames, bool by_address, HttpClient::Parameters* parameters);

}  // namespace tributary::cli
