#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/options.h"
#include "base/parse.h"

namespace tributary {

enum class HealthScheme { kHttp, kHttps };

// Adds the option --health-check to `table`. The option has no environment variable and no key in the configuration
// file.
void AddHealthCheck(Options& table, bool* wanted);

// Implements --health-check: sends GET /healthz to the running program at `address`, the value of the program's option
// `option`. Prints one line, and returns the exit code: 0 if the program is healthy, 1 if not. If the program is
// healthy and not ready, the line has the answer of GET /readyz. If `address` is nullopt, because this option is off,
// the exit code is 1. Takes at most two seconds plus the time for resolving a host name.
int RunHealthCheck(std::string_view component, std::string_view option, const std::optional<HostPort>& address,
                   HealthScheme scheme = HealthScheme::kHttp);

// Returns OK if GET /healthz was answered with 200. If the address is 0.0.0.0 or [::], the request goes to the loopback
// address. Returns Unavailable if nothing listens at the address or if no answer arrives in time. Returns
// FailedPrecondition for an answer other than 200, or if the peer closes the connection without an answer. Returns
// InvalidArgument if the host name cannot be resolved or the port is 0. With kHttps, accepts any certificate: it names
// the host that users connect to, which is rarely the loopback address, and the request has no secrets.
absl::Status AskHealth(const HostPort& address, int64_t timeout_ms, HealthScheme scheme = HealthScheme::kHttp);

// Returns the sentence with which GET /readyz says that the program is not ready (status 503). Returns "" if the
// program is ready, or if there is no such answer in time. Otherwise like AskHealth.
std::string AskWhyNotReady(const HostPort& address, int64_t timeout_ms, HealthScheme scheme = HealthScheme::kHttp);

}  // namespace tributary
