#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "base/options.h"
#include "base/parse.h"

namespace tributary {

// Adds --health-check, a flag alone.
void AddHealthCheck(Options& table, bool* wanted);

// What --health-check does: asks the running program's /healthz at `address`, which its option `option` says, prints
// one line, and returns the exit code: 0 healthy, 1 not. nullopt: the option is off. Takes two seconds at most, beside
// the look-up of a host name.
int RunHealthCheck(std::string_view component, std::string_view option, const std::optional<HostPort>& address);

// OK: GET /healthz was answered 200. The addresses that stand for all of a machine's are asked at its loopback.
// Unavailable: nothing listens there, or there was no answer in time; FailedPrecondition: another answer.
absl::Status AskHealth(const HostPort& address, int64_t timeout_ms);

}  // namespace tributary
