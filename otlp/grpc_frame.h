#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

// The form of messages in gRPC over HTTP/2 ("Length-Prefixed-Message" in doc/PROTOCOL-HTTP2.md in the repository of
// gRPC): a byte that says if the message is compressed, the length in 4 bytes, big endian, and the message.

namespace tributary::otlp {

inline constexpr size_t kGrpcPrefixBytes = 5;

struct GrpcFrame {
  bool is_compressed = false;
  std::string_view message;
};

// Writes the prefix into the first kGrpcPrefixBytes bytes of `*frame`. The caller has written the message, of less than
// 4 GiB, into the bytes after them.
void WriteGrpcPrefix(bool is_compressed, std::string* frame);

// Parses a body that is exactly one frame. Returns nullopt for any other body. The result is a part of `body`.
std::optional<GrpcFrame> ParseGrpcFrame(std::string_view body);

}  // namespace tributary::otlp
