#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "profile/metadata.h"

// Encodes and decodes the message Metadata (schemas/intake/intake.capnp). See intake/wire/messages.h for the other
// messages.

namespace tributary::intake {

// Returns the number of bytes in an entity's keys, values and id.
size_t BytesOf(const Entity& entity);
// Cuts an entity to the limits of profile/metadata.h. Shortens an id or a value that is too long, and removes
// attributes with an empty or too long key. If there are still too many attributes or bytes, removes the attributes
// with the longest values. Returns false if anything was cut.
bool CutToLimits(Entity& entity);

// The entities must be within the limits of profile/metadata.h.
std::string EncodeMetadata(const MetadataUpdate& update);
// Skips entities of unknown kinds and counts them in `unknown_values`.
absl::StatusOr<MetadataUpdate> DecodeMetadata(std::string_view payload, uint32_t* unknown_values);

}  // namespace tributary::intake
