#include "otlp/built_request.h"

#include "base/status.h"
#include "schemas/otlp/profiles_service.pb.h"

namespace tributary::otlp {

BuiltRequest::BuiltRequest(ProfilesRequestPtr rest, std::string resource_profiles,
                           std::vector<std::pair<size_t, uint64_t>> profile_ids, uint64_t content)
    : request_(std::move(rest)),
      resource_profiles_(std::move(resource_profiles)),
      profile_ids_(std::move(profile_ids)),
      content_(content) {}

uint64_t BuiltRequest::SetProfileIds(const RequestIdentity& identity) {
  TRIBUTARY_CHECK(!is_decoded_);
  has_ids_ = true;
  uint64_t next = identity.first;
  for (const auto& [place, samples] : profile_ids_) {
    const std::string id = ProfileId(identity, next);
    resource_profiles_.replace(place, id.size(), id);
    next += samples;
  }
  return next;
}

void BuiltRequest::AppendTo(std::string* out) const {
  const size_t rest_bytes = request_->ByteSizeLong();
  out->reserve(out->size() + resource_profiles_.size() + rest_bytes);
  if (!is_decoded_) out->append(resource_profiles_);
  request_->AppendToString(out);
}

// The bytes are our own, so they are well-formed.
void BuiltRequest::Decode() {
  if (is_decoded_) return;
  TRIBUTARY_CHECK(request_->MergeFromString(resource_profiles_));
  is_decoded_ = true;
  resource_profiles_ = {};
  if (has_ids_) return;
  for (auto& resource : *request_->mutable_resource_profiles()) {
    for (auto& scope : *resource.mutable_scope_profiles()) {
      for (auto& profile : *scope.mutable_profiles()) profile.clear_profile_id();
    }
  }
}

const google::protobuf::Message& BuiltRequest::AsMessage() { return AsRequest(); }

const ProfilesRequest& BuiltRequest::AsRequest() {
  Decode();
  return *request_;
}

ProfilesRequestPtr BuiltRequest::TakeMessage() {
  Decode();
  return std::move(request_);
}

}  // namespace tributary::otlp
