#include "reducer/export/export_url.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

TEST(ExportUrl, AcceptsOtlpUrls) {
  struct {
    const char *url, *target, *cursor;
    bool tls;
  } cases[] = {
      {"otlp://localhost:4317", "localhost:4317", "otlp://localhost:4317", false},
      {"otlp://collector.example", "collector.example:4317", "otlp://collector.example:4317", false},
      {"otlp://10.0.0.1:14317/", "10.0.0.1:14317", "otlp://10.0.0.1:14317", false},
      {"otlp://[::1]", "[::1]:4317", "otlp://[::1]:4317", false},
      {"otlp://[fe80::1%eth0]:99?signal=profiles", "[fe80::1%eth0]:99", "otlp://[fe80::1%eth0]:99", false},
      {"otlps://c:443", "c:443", "otlps://c:443", true},
  };
  for (const auto& c : cases) {
    absl::StatusOr<ExportUrl> url = ParseExportUrl(c.url);
    ASSERT_TRUE(url.ok()) << c.url << ": " << url.status();
    EXPECT_EQ(url->kind, ExportUrl::Kind::kOtlp);
    EXPECT_EQ(url->target, c.target);
    EXPECT_EQ(url->cursor_name, c.cursor);
    EXPECT_EQ(url->tls, c.tls);
  }
}

TEST(ExportUrl, AcceptsTheConsoleInBothLayouts) {
  EXPECT_EQ(ParseExportUrl("console")->layout, otlp::TextLayout::kLazyBackend);
  EXPECT_EQ(ParseExportUrl("console?layout=lazybackend")->layout, otlp::TextLayout::kLazyBackend);
  EXPECT_EQ(ParseExportUrl("console?layout=collector")->layout, otlp::TextLayout::kCollector);
  EXPECT_EQ(ParseExportUrl("console?layout=collector")->cursor_name, "console");
}

TEST(ExportUrl, ErrorsListTheAllowedUrls) {
  for (const char* url : {"",
                          "stdout",
                          "http://x:4318",
                          "otlp://",
                          "otlp://:4317",
                          "otlp://x:0",
                          "otlp://x:65536",
                          "otlp://x:y",
                          "otlp://a/b:1",
                          "otlp://user@x:1",
                          "otlp://[::1",
                          "otlp://::1",
                          "otlp://x y",
                          "otlp://x?signal=traces",
                          "otlp://x?",
                          "otlp://x?compression=none",
                          "console?layout=json",
                          "console?x=y",
                          "console://",
                          "otlp://unix:/tmp/x"}) {
    absl::StatusOr<ExportUrl> parsed = ParseExportUrl(url);
    ASSERT_FALSE(parsed.ok()) << url;
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << url;
    EXPECT_NE(parsed.status().message().find("otlp://HOST[:PORT]"), absl::string_view::npos);
  }
}

TEST(ExportUrl, ReportsThatLogsAreNotExported) {
  EXPECT_EQ(ParseExportUrl("otlp://x?signal=logs").status().code(), absl::StatusCode::kUnimplemented);
}

TEST(ExportUrl, EscapesTheUrlInErrors) {
  EXPECT_EQ(ParseExportUrl("x\x1b[2J").status().message().find('\x1b'), absl::string_view::npos);
}

}  // namespace
}  // namespace tributary
