#pragma once

#include "absl/status/status.h"
#include "cli/http_client.h"
#include "cli/options.h"

namespace tributary::cli {

// Returns the HTTP parameters for a query, as docs/api.md describes them.
HttpClient::Parameters QueryParameters(const QueryOptions& query);
// The same without the type of samples.
HttpClient::Parameters SelectionParameters(const QueryOptions& query);
// Adds the parameters of a request for frames. `by_address`: each frame is an address, instead of a function.
void AddFrameParameters(const FrameOptions& frames, bool by_address, HttpClient::Parameters* parameters);
// Reducers of earlier releases ignore some of these parameters, so their answers have other stacks than the user wants.
// `has_languages`: the kinds of the answer have languages, which answers of such reducers do not have. Unimplemented:
// the reducer is of such a release.
absl::Status CheckFrameOptions(const FrameOptions& frames, bool has_languages);

}  // namespace tributary::cli
