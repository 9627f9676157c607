#include "kernel-collector/distribution/destination.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

Exporter Sends(std::string name = "otlp", std::string host = "gw:4317") {
  Exporter exporter;
  exporter.path = "exporters." + name;
  exporter.line = 7;
  exporter.column = 3;
  exporter.host = std::move(host);
  exporter.tls = true;
  exporter.ca = "/ca";
  exporter.settings.headers = {{"a", "b"}};
  exporter.lost = {"line 8: lost"};
  exporter.advice = "; use a reducer";
  return exporter;
}
Exporter Prints(Exporter::Kind kind = Exporter::Kind::kConsole) {
  Exporter exporter;
  exporter.kind = kind;
  exporter.path = kind == Exporter::Kind::kDebug ? "exporters.debug" : "exporters.console";
  exporter.console = kind == Exporter::Kind::kDebug ? "debug" : "switches";
  exporter.advice = "print with a reducer";
  return exporter;
}

std::map<std::string, std::string> ValuesOf(const absl::StatusOr<Destination>& destination) {
  EXPECT_TRUE(destination.ok()) << destination.status();
  std::map<std::string, std::string> values;
  if (!destination.ok()) return values;
  for (const auto& value : destination->values) values[value.option] = value.text;
  return values;
}

TEST(Destination, WithoutExportersNothingChanges) {
  const auto destination = ChooseDestination({});
  EXPECT_THAT(ValuesOf(destination), IsEmpty());
  EXPECT_FALSE(destination->settings);
  EXPECT_THAT(destination->warnings, IsEmpty());
}

TEST(Destination, TheExporterSays) {
  const auto destination = ChooseDestination({.exporters = {Sends()}});
  EXPECT_THAT(ValuesOf(destination),
              UnorderedElementsAre(Pair("intake-encoder", "otlp_profiles"), Pair("intake-host", "gw:4317"),
                                   Pair("tls", "true"), Pair("tls-ca", "/ca")));
  EXPECT_EQ(destination->values[0].source, "line 7, column 3: exporters.otlp");
  EXPECT_THAT(destination->settings->headers, ElementsAre(Pair("a", "b")));
  EXPECT_THAT(destination->warnings, ElementsAre("line 8: lost"));
  // The scheme of a URL says whether TLS is used.
  Exporter http = Sends("otlphttp", "http://gw:4318/v1development/profiles");
  http.kind = Exporter::Kind::kHttp;
  http.tls = false;
  http.ca.clear();
  EXPECT_THAT(ValuesOf(ChooseDestination({.exporters = {http}})),
              UnorderedElementsAre(Pair("intake-encoder", "otlp_profiles"), Pair("intake-host", http.host)));
}

TEST(Destination, PrintsAndSends) {
  EXPECT_THAT(ValuesOf(ChooseDestination({.exporters = {Prints()}})),
              UnorderedElementsAre(Pair("intake-encoder", "console"), Pair("console", "switches")));
  const auto both = ChooseDestination({.exporters = {Prints(), Sends()}});
  EXPECT_EQ(ValuesOf(both)["intake-encoder"], "otlp_profiles");
  EXPECT_EQ(ValuesOf(both)["console"], "switches");
  EXPECT_THAT(both->warnings, ElementsAre("line 8: lost"));
  // `debug` prints if there is nothing else.
  EXPECT_EQ(ValuesOf(ChooseDestination({.exporters = {Prints(Exporter::Kind::kDebug)}}))["console"], "debug");
  for (const Exporter& other : {Prints(), Sends()}) {
    const auto destination = ChooseDestination({.exporters = {Prints(Exporter::Kind::kDebug), other}});
    EXPECT_NE(ValuesOf(destination)["console"], "debug");
    EXPECT_EQ(destination->warnings.back(), "line 0: exporters.debug: print with a reducer");
  }
}

TEST(Destination, OneReceiverOnly) {
  EXPECT_THAT(
      std::string(ChooseDestination({.exporters = {Sends(), Sends("otlp/2")}}).status().message()),
      HasSubstr("line 7, column 3: exporters.otlp/2: a node sends to one receiver, and exporters.otlp is in use"));
  Exporter bad = Sends();
  bad.problem = absl::InvalidArgumentError("line 7, column 9: no");
  EXPECT_EQ(ChooseDestination({.exporters = {bad}}).status(), bad.problem);
  EXPECT_TRUE(ChooseDestination({.exporters = {bad, Sends()}, .host_option = "--intake-host"}).ok());
}

TEST(Destination, OptionsOutrankExporters) {
  const std::vector<Exporter> both = {Sends(), Prints()};
  for (const auto& [option, request] : std::initializer_list<std::pair<std::string, DestinationRequest>>{
           {"--intake-host", {.exporters = both, .host_option = "--intake-host"}},
           {"--intake-port", {.exporters = both, .host_option = "--intake-port"}},
           {"--intake-encoder", {.exporters = both, .encoder = "binary"}},
           {"--intake-encoder", {.exporters = both, .host_option = "--intake-host", .encoder = "otlp_log"}},
           {"--intake-host", {.exporters = both, .host_option = "--intake-host", .encoder = "otlp_profiles"}}}) {
    const auto destination = ChooseDestination(request);
    EXPECT_THAT(ValuesOf(destination), IsEmpty());
    EXPECT_FALSE(destination->settings);
    EXPECT_THAT(destination->warnings, ElementsAre("line 7: exporters.otlp: not used, because " + option +
                                                       " says where the samples go; use a reducer",
                                                   "line 0: exporters.console: print with a reducer"));
  }
  // The exporters fill what an encoder leaves open.
  EXPECT_EQ(ValuesOf(ChooseDestination({.exporters = both, .encoder = "otlp_profiles"}))["intake-host"], "gw:4317");
  const auto console = ChooseDestination({.exporters = both, .host_option = "--intake-host", .encoder = "console"});
  EXPECT_EQ(ValuesOf(console)["console"], "switches");
  EXPECT_THAT(console->warnings,
              ElementsAre(HasSubstr("not used, because --intake-encoder says where the samples go; use a reducer")));
}

TEST(Destination, TheAgentOutranksExporters) {
  const auto destination = ChooseDestination({.agent = "localhost:4137", .exporters = {Sends(), Prints()}});
  EXPECT_THAT(ValuesOf(destination), UnorderedElementsAre(Pair("intake-encoder", "otlp_profiles"),
                                                          Pair("intake-host", "localhost:4137"), Pair("tls", "true")));
  EXPECT_THAT(
      destination->warnings,
      ElementsAre("line 7: exporters.otlp: not used, because -collection-agent says where the samples go; use a "
                  "reducer",
                  "line 0: exporters.console: print with a reducer"));
  EXPECT_FALSE(destination->settings);
  EXPECT_EQ(ValuesOf(ChooseDestination({.agent = "localhost:4137", .agent_is_plain = true}))["tls"], "false");
  const auto with_host = ChooseDestination({.agent = "localhost:4137", .host_option = "--intake-host"});
  EXPECT_THAT(ValuesOf(with_host), IsEmpty());
  EXPECT_THAT(with_host->warnings,
              ElementsAre("--collection-agent: not used, because --intake-host says where the samples go; start the "
                          "reducer with --export otlps://localhost:4137 to send them on"));
  EXPECT_THAT(ChooseDestination({.agent = "localhost:4137", .encoder = "console"})->warnings,
              ElementsAre(HasSubstr("not used, because --intake-encoder says where the samples go")));
}

TEST(Destination, TheNumberOfWarningsIsLimited) {
  EXPECT_EQ(ChooseDestination({.exporters = std::vector<Exporter>(1'000, Prints()), .host_option = "--intake-host"})
                ->warnings.size(),
            64u);
}

}  // namespace
}  // namespace tributary
