#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "base/options.h"
#include "base/parse.h"

namespace tributary {

// Adds the option --health-check. It has no environment variable and no key of the configuration file.
void AddHealthCheck(Options& table, bool* wanted);

// Implements --health-check: asks the running program's /healthz at `address`, the value of its option `option`. Prints
// one line and returns the exit code: 0 healthy, 1 not healthy. If that option is off, `address` is nullopt, and the
// exit code is 1. Takes at most two seconds plus the look-up of a host name.
int RunHealthCheck(std::string_view component, std::string_view option, const std::optional<HostPort>& address);

// Returns OK if GET /healthz was answered with 200. If the address is 0.0.0.0 or [::], the request goes to the loopback
// address. Unavailable if nothing listens at the address, or if there was no answer in time. FailedPrecondition if
// there was another answer. InvalidArgument if the host name cannot be resolved, or the port is 0.
absl::Status AskHealth(const HostPort& address, int64_t timeout_ms);

}  // namespace tributary
