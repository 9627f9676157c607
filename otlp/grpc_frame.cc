#include "otlp/grpc_frame.h"

#include <cstdint>

namespace tributary::otlp {

void WriteGrpcPrefix(bool is_compressed, std::string* frame) {
  const size_t bytes = frame->size() - kGrpcPrefixBytes;
  (*frame)[0] = is_compressed ? 1 : 0;
  for (int i = 0; i < 4; ++i) (*frame)[static_cast<size_t>(4 - i)] = static_cast<char>(bytes >> (8 * i));
}

std::optional<GrpcFrame> ParseGrpcFrame(std::string_view body) {
  if (body.size() < kGrpcPrefixBytes || static_cast<uint8_t>(body[0]) > 1) return std::nullopt;
  uint32_t bytes = 0;
  for (size_t i = 1; i < kGrpcPrefixBytes; ++i) bytes = bytes << 8 | static_cast<uint8_t>(body[i]);
  if (body.size() - kGrpcPrefixBytes != bytes) return std::nullopt;
  return GrpcFrame{.is_compressed = body[0] == 1, .message = body.substr(kGrpcPrefixBytes)};
}

}  // namespace tributary::otlp
