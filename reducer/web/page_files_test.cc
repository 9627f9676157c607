#include "reducer/web/page_files.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

std::string Value(const WebResponse& response, std::string_view name) {
  for (const auto& [field, value] : response.headers) {
    if (field == name) return value;
  }
  return "";
}

TEST(PageFiles, CompressesOnceAndAnswersConditionalRequests) {
  const std::string script(5'000, 'a');
  const PageFile files[] = {{"app.js", "text/javascript", script}, {"index.html", "text/html", "<p>"}};
  const PageFiles page(files);
  auto get = [&](HttpFields headers) {
    return *page.Find(WebRequest{.method = "GET", .path = "/app.js", .headers = std::move(headers)});
  };
  const WebResponse plain = get({});
  EXPECT_EQ(plain.body, script);
  EXPECT_EQ(Value(plain, "Content-Encoding"), "");
  EXPECT_EQ(Value(plain, "Vary"), "Accept-Encoding");
  const WebResponse compressed = get({{"accept-encoding", "gzip"}});
  EXPECT_LT(compressed.body.size(), 200u);
  EXPECT_EQ(Value(compressed, "Content-Encoding"), "gzip");
  EXPECT_NE(Value(compressed, "ETag"), Value(plain, "ETag"));
  const WebResponse same = get({{"if-none-match", "\"old\", W/" + Value(plain, "ETag")}});
  EXPECT_EQ(same.status, 304);
  EXPECT_EQ(same.body, "");
  EXPECT_EQ(Value(same, "ETag"), Value(plain, "ETag"));
  EXPECT_EQ(get({{"if-none-match", "\"old\""}}).status, 200);
  EXPECT_FALSE(page.Find(WebRequest{.method = "GET", .path = "/app"}));
  // Compression makes a tiny file larger, so it is sent as it is.
  const auto tiny = page.Find(WebRequest{.method = "GET", .path = "/", .headers = {{"accept-encoding", "gzip"}}});
  EXPECT_EQ(tiny->body, "<p>");
}

}  // namespace
}  // namespace tributary
