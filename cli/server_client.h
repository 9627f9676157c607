#pragma once

#include "absl/status/statusor.h"
#include "cli/http_client.h"
#include "cli/options.h"

namespace tributary::cli {

// Returns a client for the reducer that `options` name. It signs in with the token of `token_file`, or of the
// environment variable TRIBUTARY_TOKEN. InvalidArgument: both are given, the token or a file of TLS is not valid, TLS
// options are given but the URL is not https://, or a token is given and the URL has a user name of its own. Also
// returns the errors of ReadToken (base/token_table.h). No message contains the token.
absl::StatusOr<HttpClient> MakeClient(const ServerOptions& options);

}  // namespace tributary::cli
