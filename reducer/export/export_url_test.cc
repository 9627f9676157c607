#include "reducer/export/export_url.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

TEST(ExportUrl, AcceptsUrlsForGrpc) {
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
    EXPECT_EQ(url->kind, ExportUrl::Kind::kOtlpGrpc);
    EXPECT_EQ(url->target, c.target);
    EXPECT_EQ(url->cursor_name, c.cursor);
    EXPECT_EQ(url->tls, c.tls);
  }
}

TEST(ExportUrl, AcceptsUrlsForHttp) {
  struct {
    const char *url, *target, *path, *cursor;
    bool tls;
  } cases[] = {
      {"otlp+http://c", "c:4318", "/v1development/profiles", "otlp+http://c:4318/v1development/profiles", false},
      {"otlp+http://[::1]/", "[::1]:4318", "/v1development/profiles", "otlp+http://[::1]:4318/v1development/profiles",
       false},
      {"otlp+http://c:1/a/b%20c?encoding=json", "c:1", "/a/b%20c", "otlp+http://c:1/a/b%20c", false},
      {"otlp+https://c:443/p", "c:443", "/p", "otlp+https://c:443/p", true},
  };
  for (const auto& c : cases) {
    absl::StatusOr<ExportUrl> url = ParseExportUrl(c.url);
    ASSERT_TRUE(url.ok()) << c.url << ": " << url.status();
    EXPECT_EQ(url->kind, ExportUrl::Kind::kOtlpHttp);
    EXPECT_EQ(url->target, c.target);
    EXPECT_EQ(url->path, c.path);
    EXPECT_EQ(url->cursor_name, c.cursor);
    EXPECT_EQ(url->tls, c.tls);
  }
}

TEST(ExportUrl, TakesParameters) {
  const absl::StatusOr<ExportUrl> url = ParseExportUrl(
      "otlp+https://c?signal=profiles&name=a-b_c.1&encoding=json&compression=none&timeout=5s&headers_file=/"
      "a%26b&tls_ca=/ca"
      "&tls_cert=/c&tls_key=/k");
  ASSERT_TRUE(url.ok()) << url.status();
  EXPECT_THAT(url->parameters,
              UnorderedElementsAre(Pair("signal", "profiles"), Pair("name", "a-b_c.1"), Pair("encoding", "json"),
                                   Pair("compression", "none"), Pair("timeout", "5s"), Pair("headers_file", "/a&b"),
                                   Pair("tls_ca", "/ca"), Pair("tls_cert", "/c"), Pair("tls_key", "/k")));
}

// Nothing else is part of it, so that the export continues after a change of the other parameters.
TEST(ExportUrl, TheCursorIsNamedAfterReceiverSignalAndName) {
  EXPECT_EQ(ParseExportUrl("otlp://c?signal=profiles&compression=none")->cursor_name, "otlp://c:4317");
  EXPECT_EQ(ParseExportUrl("otlp+http://c/p?headers_file=/a&name=b")->cursor_name, "otlp+http://c:4318/p?name=b");
  EXPECT_EQ(ParseExportUrl("otlp://c:1?signal=logs&samples=single&interval=5s")->cursor_name, "otlp://c:1?signal=logs");
  EXPECT_EQ(ParseExportUrl("otlp://c:1?name=b&signal=logs")->cursor_name, "otlp://c:1?signal=logs&name=b");
}

TEST(ExportUrl, TakesAGenerationOfProfiles) {
  for (const char* generation : {"1.7", "1.8", "1.9", "1.10", "1.11"}) {
    for (const char* receiver : {"otlp://c", "otlps://c", "otlp+http://c", "otlp+https://c"}) {
      const absl::StatusOr<ExportUrl> url = ParseExportUrl(fmt::format("{}?generation={}", receiver, generation));
      ASSERT_TRUE(url.ok()) << url.status();
      EXPECT_EQ(url->parameters.at("generation"), generation);
      EXPECT_THAT(url->cursor_name, Not(HasSubstr("generation")));
    }
  }
  for (const auto& [url, why] : {std::pair{"otlp://c?generation=1.6", "must be 1.7, 1.8, 1.9, 1.10 or 1.11"},
                                 {"otlp://c?generation=", "must be 1.7"},
                                 {"otlp://c?signal=logs&generation=1.9", "only for signal=profiles"},
                                 {"otlp://c?generation=1.10&signal=metrics", "only for signal=profiles"},
                                 {"console?generation=1.9", "use otlp:// or otlp+http://"},
                                 {"file:///d?format=otlp_json&generation=1.9", "use otlp:// or otlp+http://"}}) {
    EXPECT_THAT(std::string(ParseExportUrl(url).status().message()), HasSubstr(why)) << url;
  }
}

TEST(ExportUrl, RefusesWrongParameters) {
  for (const char* query : {"",
                            "a",
                            "a=b",
                            "encoding=xml",
                            "encoding=json&encoding=json",
                            "compression=zstd",
                            "timeout=0s",
                            "timeout=11m",
                            "timeout=5",
                            "samples=",
                            "samples=all",
                            "interval=999ms",
                            "interval=6m",
                            "signal=metrics&interval=61m",
                            "signal=metrics&samples=single",
                            "signal=",
                            "tls_ca=",
                            "name=",
                            "name=a/b",
                            "name=a%26b",
                            "name=a.events",
                            "layout=collector",
                            "tls_cert=/c",
                            "tls_key=/k",
                            "signal=profiles&",
                            "&signal=profiles"}) {
    EXPECT_FALSE(ParseExportUrl(std::string("otlp+https://c?") + query).ok()) << query;
  }
  EXPECT_FALSE(ParseExportUrl("otlp://c?encoding=json").ok());
  EXPECT_FALSE(ParseExportUrl("otlp+http://c?tls_ca=/ca").ok());
}

TEST(ExportUrl, RefusesCredentialsAndDoesNotShowThem) {
  for (const char* url :
       {"otlp+https://ann:secret@c:1", "otlp://secret@c", "otlp+http://ann:se/secret@c", "otlp+http://ann:secret?@c",
        "otlp+http://ann/secret@c", "otlp+http://h:4318?x=a@secret", "otlp+http://h?secret://@", "?secret@",
        "console?layout=a@secret", "ann:secret@c", "otlp+http://c?token=secret", "secret@c://x"}) {
    const absl::StatusOr<ExportUrl> parsed = ParseExportUrl(url);
    ASSERT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << url;
    EXPECT_THAT(std::string(parsed.status().message()), Not(HasSubstr("secret"))) << url;
  }
  EXPECT_THAT(std::string(ParseExportUrl("otlp+https://ann:secret@c:1").status().message()),
              HasSubstr("headers_file=FILE"));
  EXPECT_EQ(ShownExportUrl("otlp+https://ann:secret@c:1/p?a=b"), "otlp+https://***@c:1/p?...");
  EXPECT_EQ(ShownExportUrl("otlp+http://h:4318?x=a@secret"), "otlp+http://***");
  EXPECT_EQ(ShownExportUrl("otlp+http://ann:se?cret@h:4318?x=a"), "otlp+http://***");
  EXPECT_EQ(ShownExportUrl("otlp://c:1"), "otlp://c:1");
}

TEST(ExportUrl, AcceptsTheConsoleInBothLayouts) {
  EXPECT_EQ(ParseExportUrl("console")->text.layout, otlp::TextLayout::kLazyBackend);
  EXPECT_EQ(ParseExportUrl("console?layout=lazybackend")->text.layout, otlp::TextLayout::kLazyBackend);
  EXPECT_EQ(ParseExportUrl("console?layout=collector")->text.layout, otlp::TextLayout::kCollector);
  EXPECT_EQ(ParseExportUrl("console?layout=collector")->cursor_name, "console");
  EXPECT_EQ(ParseExportUrl("console?layout=collector&name=second")->cursor_name, "console?name=second");
}

TEST(ExportUrl, TakesTheSwitchesOfTheConsole) {
  const absl::StatusOr<ExportUrl> url =
      ParseExportUrl("console?layout=collector&export_stack_frames=false&export_stack_frame_types=go%2Ckernel&name=b");
  ASSERT_TRUE(url.ok()) << url.status();
  EXPECT_EQ(url->text.layout, otlp::TextLayout::kCollector);
  EXPECT_FALSE(url->text.export_stack_frames);
  EXPECT_THAT(url->text.export_stack_frame_types, ElementsAre("go", "kernel"));
  EXPECT_EQ(url->cursor_name, "console?name=b");
  EXPECT_THAT(std::string(ParseExportUrl("console?export_stack_frames=1").status().message()),
              HasSubstr("must be true or false"));
  EXPECT_FALSE(ParseExportUrl("console?export_stack_frames=true&export_stack_frames=true").ok());
  EXPECT_FALSE(ParseExportUrl("otlp://c?export_stack_frames=true").ok());
}

TEST(ExportUrl, AcceptsADirectory) {
  const absl::StatusOr<ExportUrl> url = ParseExportUrl("file:///var//x/?by=container&format=otlp_json&keep=3&name=b");
  ASSERT_TRUE(url.ok()) << url.status();
  EXPECT_EQ(url->kind, ExportUrl::Kind::kFile);
  EXPECT_EQ(url->file.directory, "/var/x");
  EXPECT_EQ(url->file.attribute, "container.id");
  EXPECT_EQ(url->file.format, FileOptions::Format::kOtlpJson);
  EXPECT_EQ(url->file.keep, 3);
  EXPECT_EQ(url->cursor_name, "file:///var/x?name=b");
  EXPECT_EQ(ParseExportUrl("file:///var/x?by=service")->cursor_name, "file:///var/x");
  for (const char* bad : {"file://", "file://x", "file:///x?by=pod", "file:///x?layout=collector", "file:/x",
                          "file:///x?keep=1&keep=1", "file:///x?signal=profiles"}) {
    EXPECT_EQ(ParseExportUrl(bad).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
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
                          "otlp://[zz]:1",
                          "otlp+http://[zz]:4318",
                          "otlp+http://[::1%]:4318",
                          "otlp+http://[::1%a:b]:4318",
                          "otlp+http://[127.0.0.1]:4318",
                          "otlp://x y",
                          "otlp://x?signal=traces",
                          "otlp://x?",
                          "otlp://x/path",
                          "otlp+http://",
                          "otlp+http://:4318",
                          "otlp+http://x:0",
                          "otlp+http://x:0/path",
                          "otlp+http://x/a b",
                          "otlp+http://x/a\r\nb: c",
                          "otlp+http://x/a#b",
                          "otlp+ftp://x",
                          "OTLP://x",
                          "console?layout=json",
                          "console?x=y",
                          "console?",
                          "console?signal=profiles",
                          "console://",
                          "otlp://unix:/tmp/x"}) {
    absl::StatusOr<ExportUrl> parsed = ParseExportUrl(url);
    ASSERT_FALSE(parsed.ok()) << url;
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << url;
    EXPECT_NE(parsed.status().message().find("otlp://HOST[:PORT]"), absl::string_view::npos);
  }
}

TEST(ExportUrl, RefusesAZeroByteInAnAddress) { EXPECT_FALSE(ParseExportUrl(std::string("otlp://[::1\0]", 13)).ok()); }

TEST(ExportUrl, TheSignalDecidesThePath) {
  const ExportUrl url = ParseExportUrl("otlp+http://c?signal=logs&samples=single&interval=1m").value();
  EXPECT_EQ(url.signal.name, "logs");
  EXPECT_EQ(url.path, "/v1/logs");
  EXPECT_EQ(url.cursor_name, "otlp+http://c:4318/v1/logs?signal=logs");
  EXPECT_EQ(ParseExportUrl("otlp+http://c/p?signal=logs")->path, "/p");
  EXPECT_EQ(ParseExportUrl("otlp://c?signal=logs")->signal.grpc_method, otlp::kLogsSignal.grpc_method);
  const ExportUrl metrics = ParseExportUrl("otlp+http://c?interval=90s&signal=metrics&name=a").value();
  EXPECT_EQ(metrics.path, "/v1/metrics");
  EXPECT_EQ(metrics.cursor_name, "otlp+http://c:4318/v1/metrics?signal=metrics&name=a");
}

TEST(ExportUrl, EscapesTheUrlInErrors) {
  EXPECT_EQ(ParseExportUrl("x\x1b[2J").status().message().find('\x1b'), absl::string_view::npos);
}

}  // namespace
}  // namespace tributary
