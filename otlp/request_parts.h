#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "otlp/profiles_builder.h"

namespace tributary::otlp {

// The ResourceProfiles of a request whose resources have the same text as one attribute.
struct RequestPart {
  std::string text;            // "": these resources do not have the attribute
  std::vector<int> resources;  // indices of ResourceProfiles, ascending
};

// Divides a request by the attribute `key`, such as "service.name". The parts are in the order in which their texts
// first occur. Thread-safe.
std::vector<RequestPart> PartsOf(const ProfilesRequest& request, std::string_view key);

// Returns a request with only these ResourceProfiles, and with a dictionary of only the entries that they use. An index
// that is out of range becomes "not set". Thread-safe.
ProfilesRequestPtr CopyPart(const ProfilesRequest& request, std::span<const int> resources);

}  // namespace tributary::otlp
