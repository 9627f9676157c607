#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "base/options.h"
#include "base/parse.h"

namespace tributary {

// Adds --health-check, which is a flag only.
void AddHealthCheck(Options& table, bool* wanted);

// Implements --health-check: asks the running program's /healthz at `address`, the value of its option `option`. Prints
// one line and returns the exit code: 0 healthy, 1 not healthy. `address` is nullopt if the option is off. Takes at
// most two seconds plus the look-up of a host name.
int RunHealthCheck(std::string_view component, std::string_view option, const std::optional<HostPort>& address);

// Returns OK if GET /healthz was answered with 200. If the address means all addresses of the machine, the request goes
// to the loopback address. Unavailable if nothing listens at the address, or if there was no answer in time.
// FailedPrecondition if there was another answer. InvalidArgument if the host name cannot be resolved or the port is 0.
absl::Status AskHealth(const HostPort& address, int64_t timeout_ms);

}  // namespace tributary
