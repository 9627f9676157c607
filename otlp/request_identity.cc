#include "otlp/request_identity.h"

#include "base/hex.h"
#include "base/sha256.h"
#include "schemas/otlp/profiles_service.pb.h"

namespace tributary::otlp {

namespace proto = ::opentelemetry::proto::profiles::v1development;

std::string RequestIdentity::SessionText() const { return ToHex(session); }

uint64_t SampleCount(const proto::Sample& sample, bool is_count) {
  if (sample.timestamps_unix_nano_size() > 0) return static_cast<uint64_t>(sample.timestamps_unix_nano_size());
  return is_count && sample.values_size() > 0 ? static_cast<uint64_t>(sample.values(0)) : 1;
}

bool IsCount(const proto::Profile& profile) { return profile.period_type().type_strindex() != 0; }

std::string ProfileId(const RequestIdentity& identity, uint64_t number) {
  std::string text = identity.sender;
  text.push_back('\0');
  text.append(identity.session.begin(), identity.session.end());
  for (int shift = 56; shift >= 0; shift -= 8) text.push_back(static_cast<char>(number >> shift));
  const Sha256Digest digest = Sha256(text);
  return std::string(digest.begin(), digest.begin() + 16);
}

uint64_t ContentDigest(std::string_view bytes) {
  const Sha256Digest digest = Sha256(bytes);
  uint64_t content = 0;
  for (size_t i = 0; i < sizeof(content); ++i) content = content << 8 | digest[i];
  return content;
}

uint64_t ContentOf(const ProfilesRequest& request) {
  std::string entries;  // 24 bytes each; a request has at most some 100,000
  const auto append = [&entries](uint64_t number) {
    for (int shift = 0; shift < 64; shift += 8) entries.push_back(static_cast<char>(number >> shift));
  };
  for (const auto& resource : request.resource_profiles()) {
    for (const auto& scope : resource.scope_profiles()) {
      for (const auto& profile : scope.profiles()) {
        const bool is_count = IsCount(profile);
        for (const proto::Sample& sample : profile.samples()) {
          append(SampleCount(sample, is_count));
          append(sample.timestamps_unix_nano_size() > 0 ? sample.timestamps_unix_nano(0) : profile.time_unix_nano());
          append(static_cast<uint64_t>(sample.values_size() > 0 ? sample.values(0) : profile.period()));
        }
      }
    }
  }
  return ContentDigest(entries);
}

uint64_t SetProfileIds(const RequestIdentity& identity, ProfilesRequest* request) {
  uint64_t next = identity.first;
  for (auto& resource : *request->mutable_resource_profiles()) {
    for (auto& scope : *resource.mutable_scope_profiles()) {
      for (auto& profile : *scope.mutable_profiles()) {
        profile.set_profile_id(ProfileId(identity, next));
        const bool is_count = IsCount(profile);
        for (const proto::Sample& sample : profile.samples()) next += SampleCount(sample, is_count);
      }
    }
  }
  return next;
}

}  // namespace tributary::otlp
