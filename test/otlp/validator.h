#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "otlp/profile_logs.h"
#include "otlp/profiles_builder.h"

namespace tributary::otlp {

// One violation of the protocol: OTLP profiles (1.10 and 1.11), or OTLP logs.
struct Finding {
  std::string rule;    // "sample.timestamp_after_end": one name per rule; validator_test.cc breaks each rule
  std::string where;   // "resource 0 scope 0 profile 2 sample 17"
  std::string detail;  // a description of the finding
};

// Checks every MUST and SHOULD that a receiver can see in one request, and a few limits of common receivers. Returns at
// most kFindingsMax findings. May be called on any thread.
constexpr size_t kFindingsMax = 1000;
std::vector<Finding> ValidateProfiles(const ProfilesRequest& request);

// Checks serialized bytes. Bytes that do not parse are a finding too.
std::vector<Finding> ValidateProfilesBytes(std::string_view bytes);

// The same for logs. Also checks the numbers of the records (docs/export.md).
std::vector<Finding> ValidateLogs(const LogsRequest& request);
std::vector<Finding> ValidateLogsBytes(std::string_view bytes);

// Describes the first few findings for a test's message, one line per finding.
std::string DescribeFindings(const std::vector<Finding>& findings);

}  // namespace tributary::otlp
