#pragma once

#include <cstddef>

// Upper bounds for the bytes that one element adds to a serialized request of profiles: tags, lengths and varints at
// their longest, in every generation. They include the lengths of messages that grow later (samples, profiles).
// ProfilesBuilder::bytes() is their sum, plus the lengths of texts. If it shall be exact, elements that do not grow
// count with their real sizes, and samples as in SampleTable.

namespace tributary::otlp {

inline constexpr size_t kRequestBytes = 256;
inline constexpr size_t kStringBytes = 6;
inline constexpr size_t kAttributeBytes = 40;
inline constexpr size_t kMappingBytes = 48;
inline constexpr size_t kFunctionBytes = 24;
inline constexpr size_t kLocationBytes = 56;
inline constexpr size_t kLineBytes = 16;
inline constexpr size_t kStackBytes = 16;
inline constexpr size_t kLinkBytes = 40;
inline constexpr size_t kIndexBytes = 5;
inline constexpr size_t kSampleBytes = 80;
inline constexpr size_t kProfileBytes = 96;
inline constexpr size_t kResourceBytes = 160;
inline constexpr size_t kPointBytes = 18;  // a time stamp and a value

// Returns the bytes of a stack with this number of frames.
constexpr size_t StackBytes(size_t frames) { return kStackBytes + kIndexBytes * frames; }

}  // namespace tributary::otlp
