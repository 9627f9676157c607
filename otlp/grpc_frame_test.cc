#include "otlp/grpc_frame.h"

#include <gtest/gtest.h>

namespace tributary::otlp {
namespace {

TEST(GrpcFrame, ParsesWhatItWrites) {
  for (const bool is_compressed : {false, true}) {
    for (const size_t bytes : {size_t{0}, size_t{1}, size_t{0x01'02'03}}) {
      std::string frame(kGrpcPrefixBytes + bytes, 'x');
      WriteGrpcPrefix(is_compressed, &frame);
      const std::optional<GrpcFrame> parsed = ParseGrpcFrame(frame);
      ASSERT_TRUE(parsed.has_value()) << bytes;
      EXPECT_EQ(parsed->is_compressed, is_compressed);
      EXPECT_EQ(parsed->message, std::string(bytes, 'x'));
    }
  }
}

TEST(GrpcFrame, WritesTheLengthInBigEndian) {
  std::string frame(kGrpcPrefixBytes + 0x01'02'03, 'x');
  WriteGrpcPrefix(true, &frame);
  EXPECT_EQ(frame.substr(0, kGrpcPrefixBytes), std::string("\x01\x00\x01\x02\x03", 5));
}

TEST(GrpcFrame, RefusesOtherBodies) {
  const std::string bodies[] = {
      "",
      std::string("\0\0\0\0", 4),
      std::string("\0\0\0\0\x02x", 6),          // cut
      std::string("\0\0\0\0\x01xy", 7),         // a byte too many
      std::string("\0\0\0\0\0\0\0\0\0\0", 10),  // two messages
      std::string("\2\0\0\0\0", 5),             // no such flag
      std::string("\xff\0\0\0\0", 5),           // no such flag
      std::string("\0\xff\xff\xff\xff", 5),     // 4 GiB
  };
  for (const std::string& body : bodies) EXPECT_FALSE(ParseGrpcFrame(body).has_value()) << testing::PrintToString(body);
}

}  // namespace
}  // namespace tributary::otlp
