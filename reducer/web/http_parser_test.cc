#include "reducer/web/http_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reducer/web/http_compression.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;

int StatusOf(const std::string& bytes) {
  HttpParser parser(32u << 10, 1u << 20);
  parser.ReadHead(bytes);
  return parser.error_status();
}

TEST(HttpParser, ReadsTheHeadInAnyPieces) {
  const std::string head =
      "\r\nGET /a%20b?x=1%2b2&y=a+b&x=3&z HTTP/1.1\r\nHost: h:1\r\nAccept: a\r\naccept: b\r\n\r\nrest";
  HttpParser parser(32u << 10, 0);
  size_t size = 0;
  for (size_t end = 1; size == 0 && end <= head.size(); ++end) {
    size = parser.ReadHead(std::string_view(head).substr(0, end));
    ASSERT_EQ(parser.error_status(), 0) << parser.error();
  }
  EXPECT_EQ(size, head.size() - 4);
  const WebRequest& request = parser.request();
  EXPECT_EQ(request.method, "GET");
  EXPECT_EQ(request.path, "/a b");
  EXPECT_EQ(request.host, "h:1");
  EXPECT_EQ(request.params.at("x"), "1+2");
  EXPECT_EQ(request.params.at("y"), "a b");
  EXPECT_EQ(request.params.at("z"), "");
  EXPECT_EQ(request.Header("accept"), "a, b");
  EXPECT_TRUE(parser.keep_alive());
  EXPECT_FALSE(parser.has_body());
}

TEST(HttpParser, RefusesWhatAProxyCouldReadDifferently) {
  const std::string get = "GET / HTTP/1.1\r\nHost: h\r\n";
  EXPECT_EQ(StatusOf(get + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf(get + "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf(get + "Content-Length: 1\r\nContent-Length: 1\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf(get + "Transfer-Encoding: gzip, chunked\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf(get + "Transfer-Encoding: gzip\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf("GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf(get + "Content-Length: -1\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf(get + "Content-Length: 99999999999999999999\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf(get + "X: a\r\n b\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf(get + "X : a\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\nHost: h\n\n"), 400);
  EXPECT_EQ(StatusOf(get + std::string("X: a\0b\r\n\r\n", 10)), 400);
}

TEST(HttpParser, NamesTheReasonByItsStatus) {
  EXPECT_EQ(StatusOf("\x16\x03\x01"), 400);
  EXPECT_EQ(StatusOf("GET /%zz HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf("GET /?a=%4 HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf("GET http://h/ HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf("PRI * HTTP/2.0\r\n\r\n"), 505);
  EXPECT_EQ(StatusOf("GET / HTTP/2.0\r\n\r\n"), 505);
  EXPECT_EQ(StatusOf("PUT / HTTP/1.1\r\nContent-Length: 1048577\r\n\r\n"), 413);
  EXPECT_EQ(StatusOf("GET /" + std::string(9'000, 'x')), 414);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nX: " + std::string(33'000, 'x')), 431);
  EXPECT_EQ(StatusOf("PUT / HTTP/1.1\r\nContent-Length: 1\r\nExpect: tea\r\n\r\n"), 417);
}

TEST(HttpParser, DecodesChunkedBodiesInAnyPieces) {
  HttpParser parser(32u << 10, 1u << 20);
  const std::string head = "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  ASSERT_EQ(parser.ReadHead(head), head.size());
  const std::string body = "3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\nnext";
  std::string decoded, buffer;
  for (char c : body) {
    buffer += c;
    buffer.erase(0, parser.ReadBody(buffer, &decoded));
    ASSERT_EQ(parser.error_status(), 0) << parser.error();
  }
  EXPECT_TRUE(parser.body_is_complete());
  EXPECT_EQ(decoded, "abc0123456789");
  EXPECT_EQ(buffer, "next");
}

TEST(HttpCompression, ReadsAcceptEncoding) {
  EXPECT_TRUE(AcceptsGzip("gzip"));
  EXPECT_TRUE(AcceptsGzip("br;q=1.0, GZIP;q=0.8, *;q=0.1"));
  EXPECT_TRUE(AcceptsGzip("*"));
  EXPECT_FALSE(AcceptsGzip(""));
  EXPECT_FALSE(AcceptsGzip("br, deflate"));
  EXPECT_FALSE(AcceptsGzip("gzip;q=0.000, *"));
}

}  // namespace
}  // namespace tributary
