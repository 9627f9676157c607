#include "reducer/export/export_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/certificates_testing.h"
#include "base/types.h"

namespace tributary {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::StartsWith;
using Kind = ExportUrl::Kind;

TEST(ExportSettings, MakesTheUrlFromTheVariables) {
  const struct {
    ExportVariables variables;
    const char* cursor;
    Kind kind;
  } cases[] = {
      {{}, "otlp+http://localhost:4318/v1development/profiles", Kind::kOtlpHttp},
      {{{"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"}}, "otlp://localhost:4317", Kind::kOtlpGrpc},
      {{{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:1/base/"}},
       "otlp+http://c:1/base/v1development/profiles",
       Kind::kOtlpHttp},
      {{{"OTEL_EXPORTER_OTLP_ENDPOINT", "https://c"}}, "otlp+https://c:443/v1development/profiles", Kind::kOtlpHttp},
      {{{"OTEL_EXPORTER_OTLP_ENDPOINT", "HTTP://[::1]"}},
       "otlp+http://[::1]:80/v1development/profiles",
       Kind::kOtlpHttp},
      {{{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:1"}, {"OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT", "http://p:2/own"}},
       "otlp+http://p:2/own",
       Kind::kOtlpHttp},
      {{{"OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT", "http://p:2"}}, "otlp+http://p:2/", Kind::kOtlpHttp},
      {{{"OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"},
        {"OTEL_EXPORTER_OTLP_PROFILES_PROTOCOL", "grpc"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT", "https://c:1/"}},
       "otlps://c:1",
       Kind::kOtlpGrpc},
      {{{"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"}, {"OTEL_EXPORTER_OTLP_ENDPOINT", "c:1"}},
       "otlps://c:1",
       Kind::kOtlpGrpc},
      {{{"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT", "c:1"},
        {"OTEL_EXPORTER_OTLP_INSECURE", "true"}},
       "otlp://c:1",
       Kind::kOtlpGrpc},
      {{{"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"}, {"OTEL_EXPORTER_OTLP_ENDPOINT", "https://c"}},
       "otlps://c:4317",
       Kind::kOtlpGrpc},
  };
  for (const auto& c : cases) {
    const absl::StatusOr<ExportUrl> url = ResolveExportUrl("otlp", c.variables);
    ASSERT_TRUE(url.ok()) << c.cursor << ": " << url.status();
    EXPECT_EQ(url->cursor_name, c.cursor);
    EXPECT_EQ(url->kind, c.kind);
  }
}

TEST(ExportSettings, TheUrlOfTheVariablesMayHaveParameters) {
  const ExportVariables variables = {{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:1/base"},
                                     {"OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT", "http://p:2/own"},
                                     {"OTEL_EXPORTER_OTLP_METRICS_HEADERS", "x-tenant=m"}};
  const absl::StatusOr<ExportUrl> url = ResolveExportUrl("otlp?signal=metrics&interval=5s&name=a", variables);
  ASSERT_TRUE(url.ok()) << url.status();
  EXPECT_EQ(url->cursor_name, "otlp+http://c:1/base/v1/metrics?signal=metrics&name=a");
  const OtlpSettings settings = ResolveOtlpSettings(*url, variables).value();
  EXPECT_THAT(settings.transport.headers, ElementsAre(Pair("x-tenant", "m")));
  EXPECT_EQ(settings.interval_ns, 5 * kNsPerSecond);
  EXPECT_EQ(ResolveExportUrl("otlp?name=a", variables)->cursor_name, "otlp+http://p:2/own?name=a");

  const ExportVariables own = {{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "https://m"},
                               {"OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "http/json"}};
  EXPECT_EQ(ResolveExportUrl("otlp?signal=metrics&name=b", own)->cursor_name,
            "otlp+https://m:443/?signal=metrics&name=b");
  EXPECT_EQ(ResolveExportUrl("otlp?signal=metrics", own)->path, "/");
  EXPECT_EQ(ResolveExportUrl("otlp?signal=metrics", {{"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"}})->cursor_name,
            "otlp://localhost:4317?signal=metrics");
}

TEST(ExportSettings, WrongParametersAreNotBlamedOnTheVariables) {
  const ExportVariables grpc = {{"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"}, {"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:1"}};
  for (const char* text : {"otlp?", "otlp?signal=traces", "otlp?interval=5s", "otlp?encoding=json", "otlp?tls_ca=/ca",
                           "otlp?token=secret", "otlp?timeout=0s"}) {
    const absl::Status status = ResolveExportUrl(text, grpc).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("OTEL_"))) << text;
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("secret"))) << text;
  }
}

TEST(ExportSettings, ReadsTheIntervalOfMetrics) {
  const ExportUrl open = *ParseExportUrl("otlp://c?signal=metrics");
  const struct {
    const char* text;
    int64_t seconds;
  } cases[] = {{"5000", 5}, {"", 60}, {"1", 1}, {"3600001", 3600}, {"0", 60}, {"-5", 60}, {"5s", 60}};
  for (const auto& c : cases) {
    const ExportVariables variables = {{"OTEL_METRIC_EXPORT_INTERVAL", c.text}};
    EXPECT_EQ(ResolveOtlpSettings(open, variables)->interval_ns, c.seconds * kNsPerSecond) << c.text;
    EXPECT_EQ(ResolveOtlpSettings(*ParseExportUrl("otlp://c?signal=metrics&interval=2s"), variables)->interval_ns,
              2 * kNsPerSecond);
  }
  EXPECT_EQ(ResolveOtlpSettings(open, {})->interval_ns, 60 * kNsPerSecond);
}

TEST(ExportSettings, NamesTheVariableThatMakesNoUrl) {
  const struct {
    ExportVariables variables;
    const char* message;
  } cases[] = {
      {{{"OTEL_EXPORTER_OTLP_ENDPOINT", "c:4318"}}, "OTEL_EXPORTER_OTLP_ENDPOINT must be"},
      {{{"OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT", "http://c:0"}}, "OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT: "},
      {{{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://ann:secret@c"}},
       "OTEL_EXPORTER_OTLP_ENDPOINT must have no user name or password: use OTEL_EXPORTER_OTLP_HEADERS"},
      {{{"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"}, {"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:1/path"}},
       "OTEL_EXPORTER_OTLP_ENDPOINT: a URL for gRPC has no path"},
      {{{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c?token=secret"}}, "without a question mark"},
  };
  for (const auto& c : cases) {
    const absl::StatusOr<ExportUrl> url = ResolveExportUrl("otlp", c.variables);
    ASSERT_EQ(url.status().code(), absl::StatusCode::kInvalidArgument) << c.message;
    EXPECT_THAT(std::string(url.status().message()), HasSubstr(c.message));
    EXPECT_THAT(std::string(url.status().message()), Not(HasSubstr("secret")));
    EXPECT_THAT(std::string(url.status().message()), Not(HasSubstr("otlp+http://")));  // another form than the user's
  }
}

// Each of them would move the cursor past samples that the other one has not sent.
TEST(ExportSettings, RefusesTwoExportersWithOneCursor) {
  const auto resolve = [](const std::vector<std::string>& texts) { return ResolveExportUrls(texts, {}); };
  for (const std::vector<std::string>& texts : std::vector<std::vector<std::string>>{
           {"otlp+http://gw:4318?headers_file=a", "otlp+http://gw:4318?headers_file=b"},
           {"otlp+http://localhost", "otlp"},
           {"otlp://c:4317", "console", "otlp://c"},
           {"console?layout=collector", "console"},
           {"otlp://c?name=a", "otlp://c:4317?name=a"}}) {
    const absl::Status status = resolve(texts).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << texts[0];
    EXPECT_THAT(std::string(status.message()), AllOf(StartsWith("--export "), HasSubstr("name=NAME")));
  }
  EXPECT_TRUE(resolve({"otlp+http://gw?headers_file=a&name=a", "otlp+http://gw?headers_file=b&name=b",
                       "otlp+http://gw/other", "otlp://gw", "otlp://gw?signal=metrics", "otlps://gw", "otlp",
                       "otlp?signal=metrics", "console", "console?name=b"})
                  .ok());
  EXPECT_THAT(std::string(resolve({"pigeon://loft"}).status().message()), StartsWith("--export pigeon://loft: "));
}

// OpenTelemetry's specification requires it. In particular, they must not stop an export to a receiver that they do not
// concern.
TEST(ExportSettings, IgnoresInvalidKeywordsAndNumbers) {
  const ExportVariables variables = {{"OTEL_EXPORTER_OTLP_PROTOCOL", "http/xml"},
                                     {"OTEL_EXPORTER_OTLP_COMPRESSION", "zstd"},
                                     {"OTEL_EXPORTER_OTLP_TIMEOUT", "10s"},
                                     {"OTEL_EXPORTER_OTLP_INSECURE", "perhaps"}};
  const absl::StatusOr<ExportUrl> url = ResolveExportUrl("otlp", variables);
  ASSERT_TRUE(url.ok()) << url.status();
  EXPECT_EQ(url->kind, Kind::kOtlpHttp);
  const absl::StatusOr<OtlpSettings> settings = ResolveOtlpSettings(*url, variables);
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_TRUE(settings->transport.gzip);
  EXPECT_EQ(settings->timeout_ns, 10 * kNsPerSecond);
  EXPECT_EQ(settings->encoding, otlp::Encoding::kProtobuf);
}

TEST(ExportSettings, KeywordsMayBeInAnyCase) {
  ExportVariables variables = {{"OTEL_EXPORTER_OTLP_PROTOCOL", "HTTP/JSON"},
                               {"OTEL_EXPORTER_OTLP_COMPRESSION", "None"}};
  const OtlpSettings settings = ResolveOtlpSettings(*ParseExportUrl("otlp+http://c"), variables).value();
  EXPECT_EQ(settings.encoding, otlp::Encoding::kJson);
  EXPECT_FALSE(settings.transport.gzip);
  EXPECT_EQ(ResolveOtlpSettings(*ParseExportUrl("otlp://c"), variables)->encoding, otlp::Encoding::kProtobuf);
  variables = {{"OTEL_EXPORTER_OTLP_PROTOCOL", "GRPC"},
               {"OTEL_EXPORTER_OTLP_ENDPOINT", "c:1"},
               {"OTEL_EXPORTER_OTLP_INSECURE", "True"}};
  EXPECT_EQ(ResolveExportUrl("otlp", variables)->cursor_name, "otlp://c:1");
}

TEST(ExportSettings, ReadsTheTimeoutInMilliseconds) {
  const struct {
    const char* text;
    int64_t seconds;
  } cases[] = {{"2000", 2}, {"0", 600}, {"600000", 600}, {"600001", 600}, {"-1", 10}, {"1e3", 10}, {"x", 10}};
  for (const auto& c : cases) {
    const ExportVariables variables = {{"OTEL_EXPORTER_OTLP_TIMEOUT", c.text}};
    EXPECT_EQ(ResolveOtlpSettings(*ParseExportUrl("otlp://c"), variables)->timeout_ns, c.seconds * kNsPerSecond)
        << c.text;
  }
}

TEST(ExportSettings, AnEmptyFileOfHeadersMeansNoHeaders) {
  const ExportVariables variables = {{"OTEL_EXPORTER_OTLP_HEADERS", "authorization=secret"}};
  EXPECT_THAT(ResolveOtlpSettings(*ParseExportUrl("otlp://other?headers_file="), variables)->transport.headers,
              IsEmpty());
}

TEST(ExportSettings, TheUrlOutranksTheVariables) {
  const TestFiles files;
  const std::string headers = files.Write("headers", "Authorization: Bearer file\n");
  const ExportVariables variables = {{"OTEL_EXPORTER_OTLP_HEADERS", "authorization=all"},
                                     {"OTEL_EXPORTER_OTLP_PROFILES_HEADERS", "authorization=profiles"},
                                     {"OTEL_EXPORTER_OTLP_COMPRESSION", "none"},
                                     {"OTEL_EXPORTER_OTLP_TIMEOUT", "1500"},
                                     {"OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"},
                                     {"OTEL_EXPORTER_OTLP_CERTIFICATE", "/ca"},
                                     {"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "/cert"},
                                     {"OTEL_EXPORTER_OTLP_CLIENT_KEY", "/key"}};
  const auto settings = [&](const std::string& url) {
    return ResolveOtlpSettings(*ParseExportUrl(url), variables).value();
  };
  OtlpSettings open = settings("otlp+https://c");
  EXPECT_THAT(open.transport.headers, ElementsAre(Pair("authorization", "profiles")));
  EXPECT_FALSE(open.transport.gzip);
  EXPECT_EQ(open.timeout_ns, 1500 * kNsPerMs);
  EXPECT_EQ(open.encoding, otlp::Encoding::kJson);
  EXPECT_EQ(open.transport.tls_files.ca, "/ca");
  EXPECT_EQ(open.transport.tls_files.cert, "/cert");
  EXPECT_EQ(open.transport.tls_files.key, "/key");
  EXPECT_TRUE(settings("otlp+http://c").transport.tls_files.ca.empty());  // no TLS

  const OtlpSettings given = settings(
      "otlp+https://c?encoding=protobuf&compression=gzip&timeout=2s&tls_ca=/a&tls_cert=/b&tls_key=/c&headers_file=" +
      headers);
  EXPECT_THAT(given.transport.headers, ElementsAre(Pair("authorization", "Bearer file")));
  EXPECT_TRUE(given.transport.gzip);
  EXPECT_EQ(given.timeout_ns, 2 * kNsPerSecond);
  EXPECT_EQ(given.encoding, otlp::Encoding::kProtobuf);
  EXPECT_EQ(given.transport.tls_files.ca, "/a");
  EXPECT_EQ(given.transport.tls_files.cert, "/b");
  EXPECT_EQ(given.transport.tls_files.key, "/c");
}

TEST(ExportSettings, DefaultsAreThoseOfOpenTelemetry) {
  const OtlpSettings settings = ResolveOtlpSettings(*ParseExportUrl("otlp+https://c"), {}).value();
  EXPECT_THAT(settings.transport.headers, IsEmpty());
  EXPECT_TRUE(settings.transport.gzip);
  EXPECT_EQ(settings.timeout_ns, 10 * kNsPerSecond);
  EXPECT_EQ(settings.encoding, otlp::Encoding::kProtobuf);
  EXPECT_EQ(settings.transport.tls_files.ca, "");
}

TEST(ExportSettings, RefusesInvalidValuesWithoutShowingThem) {
  const TestFiles files;
  const std::string forged = files.Write("forged", "authorization: secret\r\nx: y\r\n");
  const std::string open = files.Write("open", "authorization: secret\n", 0644);
  const struct {
    std::string url;
    ExportVariables variables;
    const char* message;
  } cases[] = {
      {"otlp://c", {{"OTEL_EXPORTER_OTLP_HEADERS", "authorization=secret%0d%0ax: y"}}, "OTEL_EXPORTER_OTLP_HEADERS"},
      {"otlp+http://c?headers_file=" + forged, {}, "line 1"},
      {"otlp+http://c?headers_file=" + open, {}, "chmod"},
      {"otlp+http://c?headers_file=" + files.Path("missing"), {}, "ENOENT"},
  };
  for (const auto& c : cases) {
    const absl::StatusOr<OtlpSettings> settings = ResolveOtlpSettings(*ParseExportUrl(c.url), c.variables);
    ASSERT_FALSE(settings.ok()) << c.message;
    EXPECT_THAT(std::string(settings.status().message()), HasSubstr(c.message));
    EXPECT_THAT(std::string(settings.status().message()), Not(HasSubstr("secret")));
  }
}

}  // namespace
}  // namespace tributary
