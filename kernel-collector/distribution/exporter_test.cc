#include "kernel-collector/distribution/exporter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "kernel-collector/distribution/config.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

absl::StatusOr<Exporter> Read(const std::string& type, const std::string& settings,
                              const Options::Environment& environment = {}) {
  const auto root =
      ParseYaml("receivers: {profiling: }\nexporters: {" + type + ": " + settings +
                "}\nservice: {pipelines: {profiles: {receivers: [profiling], exporters: [" + type + "]}}}\n");
  if (!root.ok()) return root.status();
  auto config = ReadDistributionConfig(*root, environment);
  if (!config.ok()) return config.status();
  EXPECT_THAT(config->warnings, IsEmpty());
  return config->exporters.at(0);
}

std::string ErrorOf(const std::string& type, const std::string& settings) {
  return std::string(Read(type, settings).status().message());
}
std::string ProblemOf(const std::string& type, const std::string& settings) {
  const auto exporter = Read(type, settings);
  EXPECT_TRUE(exporter.ok()) << exporter.status();
  return exporter.ok() ? std::string(exporter->problem.message()) : "";
}

TEST(Exporter, ReadsReceiversOverGrpc) {
  struct Case {
    const char *settings, *host;
    bool tls;
    const char* advice;
  };
  for (const auto& [settings, host, tls, advice] :
       {Case{"{endpoint: 'gw:4317'}", "gw:4317", true, "--export otlps://gw:4317 "},
        Case{"{endpoint: 'gw:4317', tls: {insecure: true}}", "gw:4317", false, "--export otlp://gw:4317 "},
        // The Collector only removes this scheme.
        Case{"{endpoint: 'http://gw:4317/'}", "gw:4317", true, "--export otlps://gw:4317 "},
        Case{"{endpoint: 'HTTP://gw:4317', tls: {insecure: false}}", "gw:4317", true, "--export otlps://gw:4317 "},
        Case{"{endpoint: 'http://gw:4317', tls: {insecure: true}}", "gw:4317", false, "--export otlp://gw:4317 "},
        Case{"{endpoint: 'http://gw:4317', tls: {insecure: true, ca_file: /ca}}", "gw:4317", true, "otlps://gw"},
        Case{"{endpoint: 'https://[::1]:4317', tls: {insecure: true}}", "[::1]:4317", true,
             "--export otlps://[::1]:4317 "},
        Case{"{endpoint: 'dns:///gw:4317', tls: {insecure: true, ca_file: /ca}}", "gw:4317", true, "otlps://gw"},
        Case{"{endpoint: gw}", "gw:443", true, "--export otlps://gw:443 "}}) {
    const auto exporter = Read("otlp", settings);
    ASSERT_TRUE(exporter.ok()) << exporter.status();
    EXPECT_TRUE(exporter->problem.ok()) << exporter->problem;
    EXPECT_EQ(exporter->host, host);
    EXPECT_EQ(exporter->tls, tls) << settings;
    EXPECT_THAT(exporter->advice, HasSubstr(advice));
    EXPECT_THAT(exporter->lost, IsEmpty());
  }
  EXPECT_EQ(Read("otlp_grpc/x", "{endpoint: 'gw:4317'}")->kind, Exporter::Kind::kGrpc);
}

TEST(Exporter, ReadsReceiversOverHttp) {
  for (const auto& [settings, host] : std::initializer_list<std::pair<const char*, const char*>>{
           {"{endpoint: 'http://gw:4318'}", "http://gw:4318/v1development/profiles"},
           {"{endpoint: 'HTTPS://gw/otlp/'}", "https://gw:443/otlp/v1development/profiles"},
           {"{endpoint: 'http://gw'}", "http://gw:80/v1development/profiles"},
           {"{endpoint: 'http://a:1', profiles_endpoint: 'http://gw:2/p'}", "http://gw:2/p"}}) {
    const auto exporter = Read("otlphttp", settings);
    ASSERT_TRUE(exporter.ok()) << exporter.status();
    EXPECT_TRUE(exporter->problem.ok()) << exporter->problem;
    EXPECT_EQ(exporter->host, host);
    EXPECT_THAT(exporter->settings.parameters, ElementsAre(Pair("encoding", "protobuf")));
  }
  EXPECT_THAT(Read("otlp_http", "{endpoint: 'https://gw:4318'}")->advice,
              HasSubstr("--export otlp+https://gw:4318/v1development/profiles to send them on"));
}

TEST(Exporter, ReadsAllSettings) {
  const auto exporter = Read("otlphttp",
                             "{endpoint: 'https://gw:1', tls: {ca_file: /ca, cert_file: /cert, key_file: /key}, "
                             "headers: {X-Scope-OrgID: team, authorization: 'Bearer ${env:TOKEN}'}, "
                             "compression: none, timeout: 1m30s, encoding: json}",
                             {{"TOKEN", "geheim"}});
  ASSERT_TRUE(exporter.ok()) << exporter.status();
  EXPECT_EQ(exporter->ca + exporter->cert + exporter->key, "/ca/cert/key");
  EXPECT_THAT(exporter->settings.parameters,
              UnorderedElementsAre(Pair("compression", "none"), Pair("timeout", "90s"), Pair("encoding", "json")));
  EXPECT_THAT(exporter->settings.headers,
              ElementsAre(Pair("x-scope-orgid", "team"), Pair("authorization", "Bearer geheim")));
  EXPECT_THAT(exporter->lost, IsEmpty());
  const auto list = Read("otlp", "{endpoint: 'gw:1', headers: [{name: a, value: b}, {name: c, value: }]}");
  EXPECT_THAT(list->settings.headers, ElementsAre(Pair("a", "b"), Pair("c", "")));
  // Times out of our range, and no limit.
  for (const auto& [given, taken] : {std::pair{"1h", "600s"}, {"0", "600s"}, {"1us", "1ms"}}) {
    EXPECT_EQ(
        Read("otlp", std::string("{endpoint: 'gw:1', timeout: ") + given + "}")->settings.parameters.at("timeout"),
        taken);
  }
}

TEST(Exporter, TlsIsNeverSwitchedOffSilently) {
  EXPECT_EQ(Read("otlp", "{endpoint: 'http://gw:1', tls: {ca_file: /ca}}")->ca, "/ca");
  // These authorities are not read. The connection must not become a plain one.
  EXPECT_TRUE(Read("otlp", "{endpoint: 'gw:1', tls: {insecure: true, ca_pem: x}}")->tls);
  // Files for TLS have no use without TLS.
  const auto http = Read("otlphttp", "{endpoint: 'http://gw:1', tls: {ca_file: /ca, cert_file: /c, key_file: ''}}");
  EXPECT_EQ(http->ca + http->cert, "");
  EXPECT_THAT(http->lost,
              ElementsAre("line 2: exporters.otlphttp.tls.ca_file: is not used, because the connection has no TLS",
                          HasSubstr("exporters.otlphttp.tls.cert_file: is not used")));
  const auto grpc = Read("otlp", "{endpoint: 'gw:1', tls: {insecure: true, key_file: /k}}");
  EXPECT_EQ(grpc->key, "");
  EXPECT_THAT(grpc->lost, ElementsAre(HasSubstr("exporters.otlp.tls.key_file: is not used")));
}

TEST(Exporter, NamesSettingsWithoutAnEqual) {
  const auto exporter = Read("otlp",
                             "{endpoint: 'gw:1', compression: zstd, sending_queue: {queue_size: 5}, retry_on_failure: "
                             "{enabled: true}, tls: {insecure_skip_verify: true, min_version: '1.3', ca_file: }, "
                             "wait_for_ready: false, auth: {authenticator: x}, balancer_name: }");
  ASSERT_TRUE(exporter.ok()) << exporter.status();
  EXPECT_EQ(exporter->settings.parameters.at("compression"), "gzip");
  EXPECT_THAT(exporter->lost,
              ElementsAre("line 2: exporters.otlp.compression: requests are gzip instead",
                          HasSubstr("exporters.otlp.sending_queue: samples are sent again"),
                          HasSubstr("exporters.otlp.retry_on_failure: samples are sent again"),
                          HasSubstr("exporters.otlp.tls.insecure_skip_verify: the receiver's certificate is always"),
                          HasSubstr("exporters.otlp.tls.min_version: has no effect here"),
                          HasSubstr("exporters.otlp.auth: has no effect here")));
}

TEST(Exporter, ProblemsHaveTheirPlace) {
  EXPECT_EQ(ProblemOf("otlp", "{}"), "line 2, column 13: exporters.otlp: the endpoint is missing");
  EXPECT_EQ(ProblemOf("otlp", ""), "line 2, column 13: exporters.otlp: the endpoint is missing");
  for (const char* bad :
       {"'gw:0'", "'gw:70000'", "'unix:///s'", "':4317'", "\"a\\r\\nb:1\"", "'a b:1'", "'gw:1/path'", "'ftp://gw:1'"}) {
    EXPECT_THAT(ProblemOf("otlp", std::string("{endpoint: ") + bad + "}"),
                HasSubstr("line 2, column 30: exporters.otlp: endpoint must be HOST:PORT"))
        << bad;
  }
  EXPECT_EQ(ProblemOf("otlphttp", "{endpoint: 'gw:4318'}"),
            "line 2, column 34: exporters.otlphttp: endpoint must be a URL with http or https");
  for (const char* bad : {"'http://gw:0'", "'http://gw/a?b=c'", "\"http://gw/\\r\\nX: y\"", "'http://'"}) {
    EXPECT_THAT(ProblemOf("otlphttp", std::string("{endpoint: ") + bad + "}"),
                HasSubstr("endpoint must be http://HOST[:PORT][/PATH]"))
        << bad;
  }
  EXPECT_THAT(ProblemOf("otlphttp", "{endpoint: 'http://gw:1', encoding: xml}"), HasSubstr("must be proto or json"));
  // kernel-collector would add a path, and the Collector does not.
  for (const char* bad : {"'http://gw:4318'", "'https://gw/'"}) {
    EXPECT_THAT(
        ProblemOf("otlphttp", std::string("{profiles_endpoint: ") + bad + "}"),
        HasSubstr("profiles_endpoint must have a path, such as /v1development/profiles: the Collector sends to"))
        << bad;
  }
  // The advice does not need the address.
  EXPECT_THAT(Read("otlp", "{endpoint: 'gw:0'}")->advice, HasSubstr("start the reducer with --export"));
}

TEST(Exporter, HeadersCannotForgeOthers) {
  for (const char* bad : {"{\"a\\r\\nb\": c}", "{a: \"geheim\\r\\nX: y\"}", "{a: [geheim]}", "{Content-Type: geheim}",
                          "[{value: geheim}]", "geheim"}) {
    const std::string problem = ProblemOf("otlp", std::string("{endpoint: 'gw:1', headers: ") + bad + "}");
    EXPECT_THAT(problem, HasSubstr("line 2, column ")) << bad;
    EXPECT_THAT(problem, Not(HasSubstr("geheim"))) << bad;
  }
}

TEST(Exporter, NeverShowsUsersOfEndpoints) {
  for (const char* type : {"otlp", "otlphttp"}) {
    const std::string error = ErrorOf(type, "{endpoint: 'http://u:geheim@gw:4317'}");
    EXPECT_THAT(error, HasSubstr("endpoint must not contain a user or a password"));
    EXPECT_THAT(error, Not(HasSubstr("geheim")));
  }
  EXPECT_THAT(ErrorOf("otlphttp", "{endpoint: 'http://a', profiles_endpoint: 'http://u:geheim@gw'}"),
              HasSubstr("profiles_endpoint must not contain"));
}

TEST(Exporter, ReadsAllSwitchesOfTheConsole) {
  const auto exporter =
      Read("customprofilesexporter",
           "{ignore_profiles_without_container_id: false, export_resource_attributes: True, export_profile_attributes: "
           "true, ExportSampleAttributes: false, export_stack_frames: true, export_stack_frame_types: [native, go], "
           "export_function_file: true, export_sample_types: [samples]}");
  ASSERT_TRUE(exporter.ok()) << exporter.status();
  EXPECT_EQ(exporter->console,
            "layout=collector&ignore_profiles_without_container_id=false&export_resource_attributes=true&"
            "export_profile_attributes=true&export_sample_attributes=false&export_stack_frames=true&"
            "export_stack_frame_types=native,go&export_function_file=true&export_sample_types=samples");
  // The exporter's own default.
  EXPECT_EQ(Read("customprofilesexporter", "")->console, "layout=collector&ignore_profiles_without_container_id=true");
  EXPECT_THAT(ErrorOf("customprofilesexporter", "{export_stack_frame_types: [go, '', jvm]}"),
              HasSubstr("line 2, column "));
  EXPECT_THAT(ErrorOf("customprofilesexporter", "{layout: collector}"), HasSubstr("has no such key"));
  EXPECT_EQ(Read("debug", "{verbosity: detailed}")->console, "layout=collector");
}

}  // namespace
}  // namespace tributary
