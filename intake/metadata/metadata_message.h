#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "profile/metadata.h"

// Metadata as a message (schemas/intake/intake.capnp), like those of intake/wire/messages.h.

namespace tributary::intake {

// Keys and values of an entity, and its id: what its limits and those of a message are counted in.
size_t BytesOf(const Entity& entity);
// Cuts it to the limits of profile/metadata.h: an id or a value that is too long at its end, then whole attributes,
// those with the longest values first. False: something was cut.
bool CutToLimits(Entity& entity);

// The update keeps to those limits.
std::string EncodeMetadata(const MetadataUpdate& update);
// Entities of kinds that are not known are left out and counted in `unknown_values`.
absl::StatusOr<MetadataUpdate> DecodeMetadata(std::string_view payload, uint32_t* unknown_values);

}  // namespace tributary::intake
