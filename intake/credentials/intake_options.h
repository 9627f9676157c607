#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/options.h"
#include "base/parse.h"
#include "intake/credentials/credentials.h"

// Options of all programs that send data to reducers.

namespace tributary::intake {

// Parses 1 to 8 different addresses of reducers, separated by commas. An address is "HOST", "HOST:PORT" or
// "[IPV6]:PORT". If an address has no port, its port is `port`. InvalidArgument if `value` is anything else.
absl::StatusOr<std::vector<HostPort>> ParseReducers(std::string_view value, uint16_t port);

// Adds the options for TLS and for the token (docs/security.md) to `table`. `out` must outlive `table`. After
// table.Parse, the caller must call TakeCredentials, which completes `out`. TakeCredentials returns InvalidArgument if
// only one of --tls-cert and --tls-key is set.
void AddCredentials(Options& table, IntakeCredentialOptions& out);
absl::Status TakeCredentials(IntakeCredentialOptions& out);

}  // namespace tributary::intake
