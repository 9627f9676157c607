#include "base/http_request_head.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

namespace tributary {
namespace {

TEST(HttpRequestHead, ReadsRequestsOfClients) {
  const struct {
    std::string_view text, method, path;
    bool keep_alive, has_body;
  } cases[] = {
      {"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", "GET", "/metrics", true, false},
      {"HEAD /metrics?name=x HTTP/1.1\r\nhOST:a\r\nConnection: Close\r\n\r\n", "HEAD", "/metrics", false, false},
      {"GET /healthz HTTP/1.0\r\n\r\n", "GET", "/healthz", false, false},
      {"GET /healthz HTTP/1.0\r\nConnection: foo, Keep-Alive\r\n\r\n", "GET", "/healthz", true, false},
      {"\r\n\nGET / HTTP/1.1\nHost: a\n\n", "GET", "/", true, false},
      {"GET http://a:1/readyz?x HTTP/1.1\r\nHost: a\r\n\r\n", "GET", "/readyz", true, false},
      {"GET http://a HTTP/1.1\r\nHost: a\r\n\r\n", "GET", "/", true, false},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\nContent-Length: 10\r\n\r\n", "POST", "/", true, true},
      {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", "GET", "/", true, false},
      {"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", "PUT", "/", true, true},
      {"GET / HTTP/1.1\r\nHost: a\r\nX:\tcaf\xc3\xa9 \r\n\r\n", "GET", "/", true, false},
  };
  for (const auto& c : cases) {
    const HttpHeadResult result = ParseHttpRequestHead(c.text);
    EXPECT_EQ(result.error, 0) << c.text << result.problem;
    EXPECT_EQ(result.size, c.text.size()) << c.text;
    EXPECT_EQ(result.head.method, c.method);
    EXPECT_EQ(result.head.path, c.path);
    EXPECT_EQ(result.head.keep_alive, c.keep_alive) << c.text;
    EXPECT_EQ(result.head.has_body, c.has_body) << c.text;
    for (size_t size = 0; size < c.text.size(); ++size) {
      const HttpHeadResult part = ParseHttpRequestHead(c.text.substr(0, size));
      EXPECT_EQ(part.size, 0u) << c.text.substr(0, size);
      EXPECT_EQ(part.error, 0) << c.text.substr(0, size);
    }
  }
}

TEST(HttpRequestHead, LeavesTheNextRequest) {
  const std::string one = "GET /a HTTP/1.1\r\nHost: a\r\n\r\n";
  EXPECT_EQ(ParseHttpRequestHead(one + "GET /b").size, one.size());
}

TEST(HttpRequestHead, RefusesAmbiguousAndInvalidRequests) {
  for (std::string_view text :
       {"hello\n",
        "GET /\r\n",
        "GET / HTTP/11\r\n",
        "GET / HTTP/x.1\r\n",
        "G(T / HTTP/1.1\r\n",
        "GET  HTTP/1.1\r\n",
        " GET / HTTP/1.1\r\n",
        "GET /a b HTTP/1.1\r\n",
        "GET metrics HTTP/1.1\r\n",
        "OPTIONS * HTTP/1.1\r\n",
        "CONNECT a:1 HTTP/1.1\r\n",
        "GET /\x01 HTTP/1.1\r\n",
        "\x16\x03\x01",
        "GET /\xff",
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : a\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n b\r\n",
        "GET / HTTP/1.1\r\nno colon\r\n",
        "GET / HTTP/1.1\r\nX: a\rb\r\n",
        "GET / HTTP/1.1\r\nContent-Length: -1\r\n",
        "GET / HTTP/1.1\r\nContent-Length:\r\n",
        "GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"}) {
    EXPECT_EQ(ParseHttpRequestHead(text).error, 400) << text;
  }
  EXPECT_EQ(ParseHttpRequestHead("GET / HTTP/2.0\r\n").error, 505);
  EXPECT_EQ(ParseHttpRequestHead(std::string_view("GET /\0 HTTP/1.1\r\n", 17)).error, 400);
}

TEST(HttpRequestHead, BoundsLinesAndHeads) {
  const std::string path(kHttpRequestLineBytesMax, 'a');
  EXPECT_EQ(ParseHttpRequestHead("GET /" + path).error, 414);
  EXPECT_EQ(ParseHttpRequestHead("GET /" + path + " HTTP/1.1\r\nHost: a\r\n\r\n").error, 414);
  std::string head = "GET / HTTP/1.1\r\nHost: a\r\n";
  while (head.size() < kHttpHeadBytesMax - 20) head += "X: y\r\n";
  const std::string longest =
      head + fmt::format("X: {}\r\n\r\n", std::string(kHttpHeadBytesMax - head.size() - 7, 'z'));
  EXPECT_EQ(ParseHttpRequestHead(longest).size, kHttpHeadBytesMax);
  const std::string too_long =
      head + fmt::format("X: {}\r\n\r\n", std::string(kHttpHeadBytesMax - head.size() - 6, 'z'));
  EXPECT_EQ(ParseHttpRequestHead(too_long).error, 431);
  EXPECT_EQ(ParseHttpRequestHead(std::string(kHttpHeadBytesMax, '\n')).error, 431);
  EXPECT_EQ(ParseHttpRequestHead(head + std::string(kHttpHeadBytesMax, 'x')).error, 431);
}

}  // namespace
}  // namespace tributary
