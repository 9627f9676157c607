#pragma once

#include <google/protobuf/arena.h>

#include "otlp/profiles_builder.h"
#include "schemas/otlp/profiles_service.pb.h"

namespace tributary::otlp {

// Returns an empty request in a protobuf arena of its own. A request has ten thousands of small messages: in an arena,
// they are allocated and freed together. DeleteRequest deletes the arena.
ProfilesRequestPtr NewArenaRequest();

// Returns a message in the arena of a request. It can become a part of the request without a copy.
template <typename Message>
Message* NewInArena(const ProfilesRequest& request) {
  return google::protobuf::Arena::CreateMessage<Message>(request.GetArena());
}

}  // namespace tributary::otlp
