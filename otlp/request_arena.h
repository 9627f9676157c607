#pragma once

#include <google/protobuf/arena.h>

#include "otlp/profiles_request.h"
#include "schemas/otlp/profiles_service.pb.h"

namespace tributary::otlp {

// Returns an empty request in a protobuf arena of its own. A request has thousands of small messages: in an arena,
// they are allocated and freed together. DeleteRequest deletes the arena.
ProfilesRequestPtr NewArenaRequest();

}  // namespace tributary::otlp
