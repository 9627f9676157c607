#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Headers that a user adds to requests, such as `authorization`. They often contain secrets, so no error message
// contains a value.

namespace tributary::otlp {

// Names are in lower case, as gRPC requires it, and different from each other.
using Headers = std::vector<std::pair<std::string, std::string>>;

inline constexpr size_t kHeadersMax = 32;
inline constexpr size_t kHeaderBytesMax = 8u << 10;  // of a name with its value

// Adds a header. InvalidArgument: the name has bytes other than letters, digits, '-', '_' and '.'; it is a name that
// the transport sets itself, such as Content-Type or one that begins with "grpc-"; it ends with "-bin"; it is in
// `*headers` already; the value has bytes other than printable ASCII, such as CR and LF; the header is too long, or
// there are too many.
absl::Status AddHeader(std::string_view name, std::string_view value, Headers* headers);

// Parses the form of the variables OTEL_EXPORTER_OTLP_HEADERS: NAME=VALUE,NAME=VALUE, with percent-encoding. Returns
// the errors of AddHeader.
absl::StatusOr<Headers> ParseHeaderList(std::string_view text);

// Parses a file with one header per line: `NAME: VALUE`. Empty lines, and lines that begin with '#', are ignored.
// Returns the errors of AddHeader, with the number of the line.
absl::StatusOr<Headers> ParseHeaderFile(std::string_view text);

}  // namespace tributary::otlp
