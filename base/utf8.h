#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tributary {

// Returns the number of bytes of the well-formed UTF-8 sequence at the start of `text` (RFC 3629: no surrogates, no
// overlong forms). Returns 0 if `text` is empty or does not start with such a sequence.
size_t Utf8SequenceLength(std::string_view text);

bool IsUtf8(std::string_view text);

// Cuts a UTF-8 text to at most `limit` bytes. Does not cut inside a character.
std::string_view CutUtf8(std::string_view text, size_t limit);

// Returns `text` with every ill-formed byte replaced by U+FFFD. protobuf strings and JSON must be UTF-8; file names may
// contain other bytes.
std::string ToUtf8(std::string_view text);

}  // namespace tributary
