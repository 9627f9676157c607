#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "otlp/profiles_builder.h"

namespace tributary::otlp {

// One breach of the OTLP profiles protocol (1.10 and 1.11).
struct Finding {
  std::string rule;    // "sample.timestamp_after_end": one name a rule; validator_test.cc breaks each
  std::string where;   // "resource 0 scope 0 profile 2 sample 17"
  std::string detail;  // what was found there
};

// Checks every MUST and SHOULD that a receiver can see in one request, and a few limits of common receivers. At most
// kFindingsMax are told. Any thread.
constexpr size_t kFindingsMax = 1000;
std::vector<Finding> ValidateProfiles(const ProfilesRequest& request);

// The same from serialized bytes: what does not parse is a finding too.
std::vector<Finding> ValidateProfilesBytes(std::string_view bytes);

// For a test's message: one line a finding, the first few.
std::string DescribeFindings(const std::vector<Finding>& findings);

}  // namespace tributary::otlp
