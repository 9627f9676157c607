#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "otlp/profiles_request.h"

namespace opentelemetry::proto::profiles::v1development {
class Profile;
class Sample;
}  // namespace opentelemetry::proto::profiles::v1development

namespace tributary::otlp {

// Identifies what a request contains, also if the request is sent again. A sender numbers the samples that it sends in
// a session, from 0. It numbers process events in a session of their own. So a number in a session belongs to the same
// sample for ever.
struct RequestIdentity {
  std::string sender;                 // the host name of the reducer or of the node that sends
  std::array<uint8_t, 16> session{};  // random
  uint64_t first = 0;                 // number of the first sample or event of the request

  std::string SessionText() const;  // hexadecimal
  friend bool operator==(const RequestIdentity&, const RequestIdentity&) = default;
};

// Returns the number of samples that an entry of a profile stands for. `is_count`: the values of the profile's type are
// counts of CPU samples.
uint64_t SampleCount(const ::opentelemetry::proto::profiles::v1development::Sample& sample, bool is_count);
// Only ProfilesBuilder's profiles of CPU samples have a type of the period. A sender may call any other type
// "samples/count", too.
bool IsCount(const ::opentelemetry::proto::profiles::v1development::Profile& profile);

// Returns the id of the profile whose first sample has this number: the first 16 bytes of the SHA-256 of the sender's
// name, a zero byte, the session, and the number as 8 bytes, the highest byte first.
std::string ProfileId(const RequestIdentity& identity, uint64_t number);

// Returns the first 8 bytes of the SHA-256 of `bytes`, the highest byte first.
uint64_t ContentDigest(std::string_view bytes);

// Returns a digest of the times, values and counts of all entries, in the order of the request. If two requests have
// the same digest, a number means the same sample in both. Names and attributes do not count.
uint64_t ContentOf(const ProfilesRequest& request);

// Sets the field profile_id of all profiles in the request. Their samples have numbers in the order of the request.
// Returns the number that follows the last sample.
uint64_t SetProfileIds(const RequestIdentity& identity, ProfilesRequest* request);

}  // namespace tributary::otlp
