#include "otlp/http2_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace tributary::otlp {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Pair;

const Headers kFields = {{":method", "POST"}, {":scheme", "http"}, {":path", "/"}, {":authority", "receiver"}};

std::string Sent(Http2Stream* stream) {
  std::string sent;
  bool failed = false;
  for (std::string_view bytes; !(bytes = stream->BytesToSend(&failed)).empty();) sent += bytes;
  EXPECT_FALSE(failed);
  return sent;
}

// Returns the names of the header fields in the client's first HEADERS frame, and whether they are never indexed.
std::map<std::string, bool> NeverIndexed(std::string sent) {
  std::map<std::string, bool> out;
  nghttp2_hd_inflater* inflater = nullptr;
  nghttp2_hd_inflate_new(&inflater);
  for (size_t at = NGHTTP2_CLIENT_MAGIC_LEN; at + 9 <= sent.size();) {
    const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<uint8_t>(sent[at + i])); };
    const size_t bytes = byte(0) << 16 | byte(1) << 8 | byte(2), type = byte(3);
    at += 9;
    auto* in = reinterpret_cast<uint8_t*>(sent.data() + at);
    for (size_t rest = type == NGHTTP2_HEADERS ? bytes : 0; rest > 0;) {
      nghttp2_nv field;
      int flags = 0;
      const ssize_t read = nghttp2_hd_inflate_hd2(inflater, &field, &flags, in, rest, 1);
      if (read < 0) break;
      in += read;
      rest -= static_cast<size_t>(read);
      if ((flags & NGHTTP2_HD_INFLATE_EMIT) == 0) continue;
      const std::string name(reinterpret_cast<const char*>(field.name), field.namelen);
      out[name] = (field.flags & NGHTTP2_NV_FLAG_NO_INDEX) != 0;
    }
    at += bytes;
  }
  nghttp2_hd_inflate_del(inflater);
  return out;
}

TEST(Http2Stream, ProxiesMayNotStoreSecrets) {
  Http2Stream stream;
  ASSERT_TRUE(stream.Begin(kFields, {{"x-api-key", "SECRET"}}, "body"));
  const std::map<std::string, bool> fields = NeverIndexed(Sent(&stream));
  EXPECT_THAT(fields, Contains(Pair("x-api-key", true)));
  EXPECT_THAT(fields, Contains(Pair(":authority", false)));
}

TEST(Http2Stream, SaysThatHeadersAreTooLong) {
  Http2Stream stream;
  ASSERT_TRUE(stream.Begin(kFields, {{"x", std::string(1u << 20, 'x')}}, "body"));
  Sent(&stream);
  EXPECT_TRUE(stream.is_over());
  EXPECT_FALSE(stream.is_whole());
  EXPECT_FALSE(stream.may_have_arrived());
  EXPECT_THAT(stream.error(), HasSubstr("the headers of the request cannot be sent: "));
}

TEST(Http2Stream, KnowsHttp1ByItsFirstBytes) {
  Http2Stream stream;
  ASSERT_TRUE(stream.Begin(kFields, {}, "body"));
  Sent(&stream);
  EXPECT_TRUE(stream.may_have_arrived());
  EXPECT_TRUE(stream.Read("HT"));
  EXPECT_FALSE(stream.Read("TP/1.1 400 Bad Request\r\n"));
  EXPECT_THAT(stream.error(), HasSubstr("is this the port for HTTP?"));
  EXPECT_FALSE(stream.may_have_arrived());
}

}  // namespace
}  // namespace tributary::otlp
