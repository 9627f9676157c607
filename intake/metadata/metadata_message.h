#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "profile/metadata.h"

// Metadata as a message (schemas/intake/intake.capnp), like the messages of intake/wire/messages.h.

namespace tributary::intake {

// Bytes of an entity's keys, values and id, as counted by its limits and by those of a message.
size_t BytesOf(const Entity& entity);
// Cuts an entity to the limits of profile/metadata.h: shortens a too long id or value, removes attributes with an empty
// or too long key, then removes attributes with the longest values. Returns false if something was cut.
bool CutToLimits(Entity& entity);

// The update must be within those limits.
std::string EncodeMetadata(const MetadataUpdate& update);
// Entities of unknown kinds are skipped and counted in `unknown_values`.
absl::StatusOr<MetadataUpdate> DecodeMetadata(std::string_view payload, uint32_t* unknown_values);

}  // namespace tributary::intake
