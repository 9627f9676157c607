#include "intake/wire/frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"

namespace tributary::intake {
namespace {

using testing::HasSubstr;

Frame DecodeOne(std::string_view bytes) {
  FrameDecoder decoder;
  decoder.Append(bytes);
  Frame frame;
  absl::StatusOr<bool> got = decoder.Next(&frame);
  EXPECT_TRUE(got.ok()) << got.status();
  EXPECT_TRUE(got.ok() && *got);
  EXPECT_EQ(decoder.buffered_bytes(), 0u);
  return frame;
}

TEST(Frame, HeaderHasTheDocumentedLayout) {
  const std::string frame = EncodeFrame(MessageType::kAck, 1, 0x0102030405060708, "payload!");
  ASSERT_EQ(frame.size(), kHeaderBytes + 8);
  EXPECT_EQ(frame.substr(0, 4), "TRBY");
  EXPECT_EQ(frame.substr(4, 4), std::string("\x01\x05\x00\x01", 4));
  EXPECT_EQ(frame.substr(8, 8), "\x08\x07\x06\x05\x04\x03\x02\x01");
  EXPECT_EQ(frame.substr(16, 8), std::string("\x08\0\0\0\x08\0\0\0", 8));
  EXPECT_EQ(frame.substr(32), "payload!");
}

TEST(Frame, RoundTripsPayloadsOfEverySize) {
  for (size_t size : {size_t{0}, size_t{1}, size_t{63}, size_t{64}, size_t{5000}, size_t{kPayloadBytesMax}}) {
    std::string compressible(size, 'a'), mixed(size, '\0');
    uint64_t state = 88172645463325252;
    for (char& c : mixed) {
      state ^= state << 13, state ^= state >> 7, state ^= state << 17;
      c = static_cast<char>(state);
    }
    for (const std::string& payload : {compressible, mixed}) {
      const std::string bytes = EncodeFrame(MessageType::kBatch, 0, 7, payload);
      EXPECT_LE(bytes.size(), kHeaderBytes + payload.size());
      const Frame frame = DecodeOne(bytes);
      EXPECT_EQ(frame.type, MessageType::kBatch);
      EXPECT_EQ(frame.sequence, 7u);
      EXPECT_EQ(frame.payload, payload);
    }
  }
  EXPECT_LT(EncodeFrame(MessageType::kBatch, 0, 7, std::string(5000, 'a')).size(), 100u);
}

TEST(FrameDecoder, TakesAStreamInPiecesOfAnySize) {
  std::string stream;
  for (uint64_t i = 1; i <= 20; ++i) {
    stream += EncodeFrame(MessageType::kBatch, 0, i, std::string(i * 97, static_cast<char>('a' + i)));
  }
  for (size_t piece : {1, 2, 31, 32, 33, 1000, 100'000}) {
    FrameDecoder decoder;
    Frame frame;
    uint64_t next = 1;
    for (size_t at = 0; at < stream.size(); at += piece) {
      decoder.Append(std::string_view(stream).substr(at, piece));
      while (true) {
        auto got = decoder.Next(&frame);
        ASSERT_TRUE(got.ok()) << got.status();
        if (!*got) break;
        EXPECT_EQ(frame.sequence, next);
        EXPECT_EQ(frame.payload, std::string(next * 97, static_cast<char>('a' + next)));
        ++next;
      }
    }
    EXPECT_EQ(next, 21u);
    EXPECT_EQ(decoder.buffered_bytes(), 0u);
  }
}

TEST(FrameDecoder, TakeRestReturnsUnreturnedBytes) {
  const std::string first = EncodeFrame(MessageType::kHello, 0, 0, "hello");
  const std::string second = EncodeFrame(MessageType::kBatch, 0, 1, "batch");
  FrameDecoder decoder;
  decoder.Append(first + second.substr(0, 10));
  Frame frame;
  ASSERT_TRUE(*decoder.Next(&frame));
  ASSERT_FALSE(*decoder.Next(&frame));
  FrameDecoder other;
  other.Append(decoder.TakeRest());
  other.Append(second.substr(10));
  ASSERT_TRUE(*other.Next(&frame));
  EXPECT_EQ(frame.payload, "batch");
  EXPECT_EQ(decoder.buffered_bytes(), 0u);
}

TEST(FrameDecoder, ReturnsUnknownTypesAsTheyAre) {
  EXPECT_EQ(static_cast<int>(DecodeOne(EncodeFrame(static_cast<MessageType>(200), 9, 3, "x")).type), 200);
}

TEST(FrameDecoder, RefusesBadInput) {
  const std::string good = EncodeFrame(MessageType::kBatch, 0, 1, std::string(500, 'a'));
  auto changed = [&](size_t at, std::string_view bytes) {
    std::string frame = good;
    frame.replace(at, bytes.size(), bytes);
    return frame;
  };
  const std::string plain = EncodeFrame(MessageType::kBatch, 0, 1, "0123456789abcdef");
  struct Case {
    const char* name;
    std::string bytes;
    FrameFault fault;
    const char* message;
  };
  std::string last_byte = good;
  last_byte.back() = static_cast<char>(last_byte.back() ^ 1);
  const Case cases[] = {
      {"http", "GET / HTTP/1.1\r\n", FrameFault::kBadMagic, "an HTTP request"},
      {"http post", "POST /v1/traces", FrameFault::kBadMagic, "an HTTP request"},
      {"http answer", "HTTP/1.1 400 Bad", FrameFault::kBadMagic, "an HTTP answer"},
      {"tls", std::string("\x16\x03\x01\x02\x00\x01", 6), FrameFault::kBadMagic, "a TLS handshake"},
      {"ssh", "SSH-2.0-OpenSSH", FrameFault::kBadMagic, "an SSH greeting"},
      {"garbage", "\x7f\xff\x01\x80garbage", FrameFault::kBadMagic, "bytes 7f ff 01 80"},
      {"version", changed(4, "\x02"), FrameFault::kBadVersion, "frame version 2"},
      {"flags", changed(6, "\x81"), FrameFault::kBadFlags, "unknown frame flags 0x81"},
      {"raw length", changed(16, std::string_view("\x01\x00\x40\x00", 4)), FrameFault::kOversized, "4194305"},
      {"stored length", changed(20, "\xff\xff\xff\xff"), FrameFault::kOversized, "4294967295"},
      {"stored not below raw", changed(20, std::string_view("\xf4\x01\x00\x00", 4)), FrameFault::kBadPayload,
       "lengths"},
      {"checksum", changed(24, "\x01\x02\x03"), FrameFault::kBadChecksum, "wrong checksum"},
      {"payload bit", last_byte, FrameFault::kBadChecksum, "wrong checksum"},
      {"sequence bit", changed(8, "\x02"), FrameFault::kBadChecksum, "wrong checksum"},
      {"type bit", changed(5, "\x05"), FrameFault::kBadChecksum, "wrong checksum"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    FrameDecoder decoder;
    decoder.Append(c.bytes);
    Frame frame;
    auto got = decoder.Next(&frame);
    ASSERT_FALSE(got.ok());
    EXPECT_EQ(got.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(decoder.fault(), c.fault) << got.status();
    EXPECT_THAT(Message(got.status()), HasSubstr(c.message));
    EXPECT_FALSE(decoder.Next(&frame).ok()) << "an error stays";
  }
}

TEST(FrameDecoder, HasALowerLimitBeforeHello) {
  FrameDecoder decoder(1000);
  decoder.Append(EncodeFrame(MessageType::kHello, 0, 0, std::string(1001, 'a')));
  Frame frame;
  EXPECT_FALSE(decoder.Next(&frame).ok());
  EXPECT_EQ(decoder.fault(), FrameFault::kOversized);
}

TEST(FrameDecoder, TruncatedFrameIsNotAFrame) {
  const std::string good = EncodeFrame(MessageType::kBatch, 0, 1, std::string(500, 'a'));
  for (size_t size = 0; size < good.size(); ++size) {
    FrameDecoder decoder;
    decoder.Append(std::string_view(good).substr(0, size));
    Frame frame;
    auto got = decoder.Next(&frame);
    ASSERT_TRUE(got.ok());
    EXPECT_FALSE(*got);
  }
}

}  // namespace
}  // namespace tributary::intake
