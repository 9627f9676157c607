#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/options.h"
#include "base/parse.h"
#include "intake/credentials/credentials.h"

// The options that all who send to reducers have.

namespace tributary::intake {

// "HOST" (with `port`), "HOST:PORT", "[V6]:PORT"; up to 8 different ones with commas between them. InvalidArgument
// else.
absl::StatusOr<std::vector<HostPort>> ParseReducers(std::string_view value, uint16_t port);

// Who the reducer is, and who we are to it (docs/security.md). Take, after the table's Parse, completes `out`, which
// outlives it; InvalidArgument: options that do not go together.
void AddCredentials(Options& table, IntakeCredentialOptions& out);
absl::Status TakeCredentials(IntakeCredentialOptions& out);

}  // namespace tributary::intake
