#include "otlp/request_identity.h"

#include <gtest/gtest.h>

#include "base/hex.h"
#include "schemas/otlp/profiles_service.pb.h"

namespace tributary::otlp {
namespace {

const RequestIdentity kIdentity{.sender = "node-1", .session = {0xab, 1, 2}, .first = 7};

TEST(RequestIdentity, TheProfileIdIsADigest) {
  EXPECT_EQ(kIdentity.SessionText(), "ab010200000000000000000000000000");
  // printf 'node-1\0\xab\1\2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\7' | sha256sum
  const std::string id = ProfileId(kIdentity, 7);
  EXPECT_EQ(ToHex(std::span(reinterpret_cast<const uint8_t*>(id.data()), id.size())),
            "06219e37515cecbed93abea304ef5e80");
  EXPECT_NE(ProfileId(kIdentity, 8), id);
  EXPECT_NE(ProfileId({.sender = "node-2", .session = kIdentity.session, .first = 7}, 7), id);
  EXPECT_NE(ProfileId({.sender = "node-1", .session = {}, .first = 7}, 7), id);
}

// Counts of CPU samples with and without time stamps, and rows of another type.
TEST(RequestIdentity, NumbersTheSamplesOfARequest) {
  ProfilesRequest request;
  for (const char* text : {"", "samples", "count", "off_cpu", "nanoseconds"}) {
    request.mutable_dictionary()->add_string_table(text);
  }
  auto* scope = request.add_resource_profiles()->add_scope_profiles();
  const auto add = [scope](int type, int unit) {
    auto* profile = scope->add_profiles();
    profile->mutable_sample_type()->set_type_strindex(type);
    profile->mutable_sample_type()->set_unit_strindex(unit);
    return profile;
  };
  auto* single = add(1, 2)->add_samples();
  for (int i = 0; i < 3; ++i) single->add_timestamps_unix_nano(5);
  add(1, 2)->add_samples()->add_values(40);
  auto* off_cpu = add(3, 4)->add_samples();
  off_cpu->add_timestamps_unix_nano(5);
  off_cpu->add_timestamps_unix_nano(6);
  off_cpu->add_values(1000);
  off_cpu->add_values(2000);
  add(3, 4)->add_samples()->add_values(1'000'000);
  EXPECT_EQ(SetProfileIds(kIdentity, &request), 7u + 3 + 40 + 2 + 1);
  ASSERT_EQ(scope->profiles_size(), 4);
  EXPECT_EQ(scope->profiles(0).profile_id(), ProfileId(kIdentity, 7));
  EXPECT_EQ(scope->profiles(1).profile_id(), ProfileId(kIdentity, 10));
  EXPECT_EQ(scope->profiles(2).profile_id(), ProfileId(kIdentity, 50));
  EXPECT_EQ(scope->profiles(3).profile_id(), ProfileId(kIdentity, 52));
}

}  // namespace
}  // namespace tributary::otlp
