#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/options.h"
#include "base/parse.h"
#include "intake/credentials/credentials.h"

// The options that all programs that send to reducers have.

namespace tributary::intake {

// Parses "HOST" (with `port`), "HOST:PORT", "[V6]:PORT", or up to 8 different ones with commas between them. Otherwise
// InvalidArgument.
absl::StatusOr<std::vector<HostPort>> ParseReducers(std::string_view value, uint16_t port);

// The options that say how the program checks the reducer's identity and proves its own (docs/security.md). After the
// table's Parse, the caller must call TakeCredentials, which completes `out`. `out` must outlive `table`.
// InvalidArgument if options do not go together.
void AddCredentials(Options& table, IntakeCredentialOptions& out);
absl::Status TakeCredentials(IntakeCredentialOptions& out);

}  // namespace tributary::intake
