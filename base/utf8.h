#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tributary {

// Bytes of the well-formed UTF-8 sequence that `text` starts with (RFC 3629: no surrogates, no overlong forms), 0 when
// it starts with none or is empty.
size_t Utf8SequenceLength(std::string_view text);

bool IsUtf8(std::string_view text);

// What the first `limit` bytes of UTF-8 hold in whole characters.
std::string_view CutUtf8(std::string_view text, size_t limit);

// `text` with every ill-formed byte replaced by U+FFFD. protobuf strings and JSON must be UTF-8; file names need not
// be.
std::string ToUtf8(std::string_view text);

}  // namespace tributary
