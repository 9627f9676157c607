#pragma once

#include <memory>

#include "otlp/generation.h"
#include "otlp/profiles_builder.h"

namespace google::protobuf {
class Message;
}

namespace tributary::otlp {

// Returns a copy of `request` in the layout of an older generation, ready to be sent: the same resources, samples and
// ids. `generation` must not be kNewest. A copy costs 0.8 µs per sample, half of what gzip costs. Thread-safe.
//
// Older generations do not have these:
// - Before 1.10, keys and texts of resources, scopes and attributes as indices of strings. The copy has the strings.
// - In 1.7, a value for each time stamp of a sample. The copy has a sample for each time stamp instead. A sample
//   without values gets the number of its time stamps as its value, because every sample must have one.
// - In 1.7, a unit for each attribute. The unit of a key is left out if the attributes with this key have different
//   ones.
std::unique_ptr<google::protobuf::Message> Transcode(const ProfilesRequest& request, Generation generation);

}  // namespace tributary::otlp
