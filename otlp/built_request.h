#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "otlp/request_identity.h"
#include "otlp/transport.h"

namespace tributary::otlp {

// A request of profiles whose samples are already in protobuf's wire format. Most transports need no more. A request
// has ten thousands of samples: to make an object of each and to write it out costs more than all else that an export
// does with a sample. Used by one thread.
class BuiltRequest : public EncodedRequest {
 public:
  // `resource_profiles`: fields of the request, in the wire format, in which each profile has an id of 16 bytes.
  // `profile_ids`: the places of these ids, and how many samples each profile has. `rest`: the request without its
  // ResourceProfiles. `content`: as ContentOf.
  BuiltRequest(ProfilesRequestPtr rest, std::string resource_profiles,
               std::vector<std::pair<size_t, uint64_t>> profile_ids, uint64_t content);

  uint64_t content() const { return content_; }
  // As otlp::SetProfileIds. Must be called before the other methods, except that a message may also be without ids.
  uint64_t SetProfileIds(const RequestIdentity& identity);

  void AppendTo(std::string* out) const override;
  const google::protobuf::Message& AsMessage() override;
  const ProfilesRequest& AsRequest();
  // Returns the request as a message. Do not use this object afterwards.
  ProfilesRequestPtr TakeMessage();

 private:
  void Decode();

  ProfilesRequestPtr request_;     // without the ResourceProfiles, until Decode
  std::string resource_profiles_;  // until Decode
  std::vector<std::pair<size_t, uint64_t>> profile_ids_;
  uint64_t content_;
  bool has_ids_ = false, is_decoded_ = false;
};

}  // namespace tributary::otlp
