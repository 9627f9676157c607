#include "kernel-collector/distribution/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "kernel-collector/distribution/table.h"

namespace tributary {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

absl::StatusOr<DistributionConfig> Read(std::string_view yaml, const Options::Environment& environment = {}) {
  const auto root = ParseYaml(yaml);
  if (!root.ok()) return root.status();
  EXPECT_TRUE(IsDistributionConfig(*root));
  return ReadDistributionConfig(*root, environment);
}

std::string ErrorOf(std::string_view yaml) {
  const auto config = Read(yaml);
  return config.ok() ? "" : std::string(config.status().message());
}

std::map<std::string, std::string> ValuesOf(const DistributionConfig& config) {
  std::map<std::string, std::string> values;
  for (const auto& value : config.values) values[value.option] = value.text;
  return values;
}

// A file of the fuzz corpus. The first two are the examples on the distribution's page.
std::string Example(const std::string& name) {
  std::ifstream file(std::string(TRIBUTARY_SOURCE_DIR) + "/test/fuzz/corpus/distribution_config_fuzz/" + name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// A receiver `profiling` with one key, which is in line 1.
std::string WithKey(const std::string& key) {
  return "receivers: {profiling: {" + key + "}}\nservice: {pipelines: {profiles: {receivers: [profiling]}}}\n";
}

TEST(DistributionConfig, ReadsThePagesFirstExample) {
  const auto config = Read(Example("quick_start.yaml"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(ValuesOf(*config), UnorderedElementsAre(Pair("tracers", "perl,php,python,hotspot,ruby,v8,dotnet,go"),
                                                      Pair("sample-rate", "20"), Pair("log-level", "debug"),
                                                      Pair("resource-attribute", "foo=bar")));
  EXPECT_EQ(config->values[1].source, "line 5, column 23: receivers.profiling.SamplesPerSecond");
  EXPECT_THAT(config->warnings,
              ElementsAre(HasSubstr("line 10: receivers.customprofilesreceiver: this example receiver"),
                          HasSubstr("line 14: processors.customprofilesexporter: read as customprofilesprocessor")));
  ASSERT_EQ(config->exporters.size(), 1u);
  EXPECT_EQ(config->exporters[0].kind, Exporter::Kind::kConsole);
  EXPECT_THAT(config->exporters[0].console, HasSubstr("&export_stack_frame_types=native,kernel,go,jvm,php,cpython&"));
}

TEST(DistributionConfig, NamesTheReducersOptionsForKubernetes) {
  const auto config = Read(Example("kubernetes.yaml"));
  ASSERT_TRUE(config.ok()) << config.status();
  ASSERT_EQ(config->warnings.size(), 1u);
  EXPECT_THAT(config->warnings[0],
              AllOf(HasSubstr("processors.k8sattributes"), HasSubstr("run one k8s-collector in each cluster"),
                    HasSubstr("wait_for_metadata_timeout is the reducer's option --metadata-wait 10s")));
}

TEST(DistributionConfig, WritesTheReducersRulesForLabels) {
  const std::string service =
      "service: {pipelines: {profiles: {receivers: [profiling], processors: [k8sattributes]}}}\n";
  const auto config = Read(
      "receivers: {profiling: }\nprocessors: {k8sattributes: {extract: {labels: [{key: app}, {tag_name: team, key: "
      "t, from: namespace}], annotations: [{key_regex: 'x/(.*)', tag_name: 'x.$$1', from: pod}]}}}\n" +
      service);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(config->warnings.at(0), HasSubstr("; reducer --k8s-label 'app'; reducer --k8s-label 'namespace:t=team'; "
                                                "reducer --k8s-annotation 'pod:x/(.*)=x.$1'"));
  EXPECT_EQ(ErrorOf("receivers: {profiling: }\nprocessors: {k8sattributes: {extract: {labels: [5]}}}\n" + service),
            "line 2, column 49: a rule must have a key or a key_regex");
}

TEST(DistributionConfig, ReadsNewerKeys) {
  const auto config = Read(Example("gateway.yaml"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(
      ValuesOf(*config),
      UnorderedElementsAre(Pair("tracers", "native,go,perl,php,hotspot,ruby,v8,dotnet,beam,labels,luajit"),
                           Pair("sample-rate", "97"), Pair("batch-interval", "10s"), Pair("resource-env", "TEAM"),
                           Pair("resource-attribute", "deployment.environment.name=a%2Cb%3Dc%25")));
  ASSERT_TRUE(config->interpreters);
  EXPECT_EQ(config->interpreters->named, "go,ruby");
  EXPECT_THAT(config->warnings,
              ElementsAre(HasSubstr("receivers.profiling/node.off_cpu_threshold: off-CPU samples do not exist yet"),
                          HasSubstr("receivers.profiling/node.monitor_interval: "),
                          HasSubstr("receivers.profiling/node.probes: samples at probes do not exist yet"),
                          HasSubstr("processors.resource.attributes: only the actions"),
                          HasSubstr("processors.batch: --batch-interval"), HasSubstr("extensions.pprof"),
                          HasSubstr("line 23: service.telemetry"),
                          HasSubstr("service.pipelines.metrics: kernel-collector has only profiles")));
  ASSERT_EQ(config->exporters.size(), 1u);
  EXPECT_EQ(config->exporters[0].host, "pyroscope:4040");
}

TEST(DistributionConfig, SpellingsOfAKeyAreTheSame) {
  for (const char* key : {"SamplesPerSecond", "samples_per_second"}) {
    const auto config = Read(WithKey(std::string(key) + ": 5"));
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_THAT(ValuesOf(*config), ElementsAre(Pair("sample-rate", "5")));
  }
}

TEST(DistributionConfig, ValuesThatMeanOffGiveNoWarning) {
  for (const Key& key : Keys()) {
    if (key.action != KeyAction::kOff || key.argument.empty()) continue;
    const auto config = Read(WithKey(std::string(key.name) + ": " + std::string(key.argument)));
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_THAT(config->warnings, IsEmpty()) << key.name;
  }
  EXPECT_THAT(Read(WithKey("OffCPUThreshold: 0.0"))->warnings, IsEmpty());
  EXPECT_THAT(Read(WithKey("OffCPUThreshold: "))->warnings, IsEmpty());
  EXPECT_THAT(Read(WithKey("probes: []"))->warnings, IsEmpty());
  EXPECT_THAT(Read(WithKey("VerboseMode: false"))->values, IsEmpty());
}

TEST(DistributionConfig, EachRowOfTheTableIsUsable) {
  for (const Component& component : Components()) {
    EXPECT_EQ(FindComponent(component.section, component.type), &component) << component.type;
  }
  for (const Key& key : Keys()) {
    bool is_used = false;
    for (const Component& component : Components()) {
      if (!key.IsOf(component)) continue;
      is_used = true;
      EXPECT_EQ(FindKey(component, key.name), &key) << key.name << " stands twice";
    }
    EXPECT_TRUE(is_used) << key.component;
    EXPECT_EQ(KeyName(key.name), key.name);
    if (key.action != KeyAction::kExporter) {
      EXPECT_EQ(key.warning.empty(), key.action != KeyAction::kOff) << key.name;
    }
    // For kOff, no argument means that every value gives the warning. A flag must have a value that means "off".
    if (key.action != KeyAction::kOff || key.type == KeyType::kBool) {
      EXPECT_EQ(key.argument.empty(), key.action == KeyAction::kAlways || key.action == KeyAction::kExporter)
          << key.name;
    }
  }
}

TEST(DistributionConfig, ThePageForUsersNamesEachRow) {
  std::ifstream file(std::string(TRIBUTARY_SOURCE_DIR) + "/docs/migrate.md");
  std::stringstream text;
  text << file.rdbuf();
  const std::string page = KeyName(text.str());
  for (const Component& component : Components()) {
    EXPECT_NE(page.find("`" + KeyName(component.type) + "`"), page.npos) << component.type;
    if (component.new_type.empty()) continue;
    EXPECT_EQ(FindComponent(component.section, component.new_type), &component);
    EXPECT_NE(text.str().find("`" + std::string(component.new_type) + "`"), std::string::npos) << component.new_type;
  }
  for (const Key& key : Keys()) EXPECT_NE(page.find("`" + std::string(key.name)), page.npos) << key.name;
}

TEST(DistributionConfig, UnusedComponentsHaveNoEffect) {
  const auto config = Read(
      "receivers: {profiling: , profiling/other: {SamplesPerSecond: 5}}\nexporters: {debug: }\n"
      "service: {pipelines: {profiles: {receivers: [profiling], exporters: }}}\n");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(config->values, IsEmpty());
  EXPECT_THAT(config->warnings, IsEmpty());
}

TEST(DistributionConfig, ErrorsHaveLineAndColumn) {
  EXPECT_EQ(
      ErrorOf(
          "receivers:\n  profiling:\n  hostmetrics: {}\nservice: {pipelines: {profiles: {receivers: [profiling]}}}\n"),
      "line 3, column 3: hostmetrics: unknown component; the receivers are: profiling, customprofilesreceiver, "
      "profilingextension, nop");
  EXPECT_EQ(ErrorOf(WithKey("SamplePerSecond: 5")),
            "line 1, column 25: SamplePerSecond: receivers.profiling has no such key");
  EXPECT_EQ(ErrorOf(WithKey("OffCPUThreshold: [1]")), "line 1, column 42: OffCPUThreshold must be a number");
  EXPECT_EQ(ErrorOf(WithKey("SamplesPerSecond: many")), "line 1, column 43: SamplesPerSecond must be a whole number");
  EXPECT_EQ(ErrorOf(WithKey("SamplesPerSecond: 20.0")), "line 1, column 43: SamplesPerSecond must be a whole number");
  EXPECT_EQ(ErrorOf("receivers: {profiling: {<<: {Tracers: go}}}\n"
                    "service: {pipelines: {profiles: {receivers: [profiling]}}}\n"),
            "line 1, column 25: <<: a map cannot be merged into another one; write its keys out");
  EXPECT_EQ(ErrorOf(WithKey("VerboseMode: 1")), "line 1, column 38: VerboseMode must be true or false");
  EXPECT_EQ(ErrorOf(WithKey("Tracers: [go]")), "line 1, column 34: Tracers must be text");
  EXPECT_EQ(ErrorOf(WithKey("reporter_interval: 5")),
            "line 1, column 44: reporter_interval must be a duration, such as 5s");
  EXPECT_EQ(ErrorOf("receivers: [profiling]\nservice: {pipelines: {profiles: {receivers: [profiling]}}}\n"),
            "line 2, column 46: 'profiling' is not defined below receivers");
  EXPECT_EQ(ErrorOf("receivers: {profiling: 1}\nservice: {pipelines: {profiles: {receivers: [profiling]}}}\n"),
            "line 1, column 24: receivers.profiling must be a map");
  EXPECT_THAT(ErrorOf("receivers: {profiling: }\nsample_rate: 5\n"),
              HasSubstr("line 2, column 1: sample_rate: a file in"));
  EXPECT_THAT(ErrorOf("receivers: {profiling: }\n"), HasSubstr("line 1, column 1: the section service is missing"));
  EXPECT_THAT(ErrorOf("receivers: {profiling: }\nservice: {pipelines: {profiles: }}\n"),
              HasSubstr("must be a map with receivers"));
  EXPECT_THAT(ErrorOf("receivers: {profiling: }\nservice: {pipelines: {profile: {}}}\n"),
              HasSubstr("line 2, column 23: profile: a pipeline must be of profiles"));
  EXPECT_THAT(ErrorOf("receivers: {profiling: }\nservice: {pipelines: {profiles: {receivers: }}}\n"),
              HasSubstr("line 2, column 1: service: no pipeline of profiles uses the receiver profiling"));
  EXPECT_THAT(
      ErrorOf("receivers: {profiling: , profiling/2: }\nservice: {pipelines: {profiles: {receivers: [profiling, "
              "profiling/2]}}}\n"),
      HasSubstr("several receivers"));
}

TEST(DistributionConfig, TwoSpellingsOfAKeyAreAnError) {
  EXPECT_EQ(ErrorOf(WithKey("SamplesPerSecond: 5, samples_per_second: 5")),
            "line 1, column 46: samples_per_second: the key stands twice, in two spellings");
}

TEST(DistributionConfig, ExpandsVariables) {
  const Options::Environment environment = {{"RATE", "97"}, {"OFF", "true"},  {"NODE", "node-1"}, {"LIST", "[a, b]"},
                                            {"W", "10s"},   {"NAMES", "A,B"}, {"EXPORTER", "nop"}};
  auto values = [&](const std::string& key) {
    const auto config = Read(WithKey(key), environment);
    EXPECT_TRUE(config.ok()) << config.status();
    return config.ok() ? ValuesOf(*config) : std::map<std::string, std::string>();
  };
  EXPECT_THAT(values("SamplesPerSecond: '${env:RATE}'"), ElementsAre(Pair("sample-rate", "97")));
  EXPECT_THAT(values("SamplesPerSecond: '${env:UNSET:-5}'"), ElementsAre(Pair("sample-rate", "5")));
  EXPECT_THAT(values("SamplesPerSecond: '${env:UNSET}'"), IsEmpty());  // the default
  EXPECT_THAT(values("include_env_vars: 'X,${NAMES}'"), ElementsAre(Pair("resource-env", "X,A,B")));
  EXPECT_THAT(values("VerboseMode: '${env:OFF}'"), ElementsAre(Pair("log-level", "debug")));
  EXPECT_THAT(values("reporter_interval: '${env:W}'"), ElementsAre(Pair("batch-interval", "10s")));
  EXPECT_THAT(values("interpreters: {python: {disabled: '${env:OFF}'}}")["tracers"], Not(HasSubstr("python")));
  EXPECT_THAT(Read(WithKey("SamplesPerSecond: '${env:UNSET}'"))->warnings,
              ElementsAre("line 1: the environment variable UNSET is not set; its value is empty"));
  // A wrong type has the place of the variable.
  EXPECT_EQ(std::string(Read(WithKey("SamplesPerSecond: '${env:NODE}'"), environment).status().message()),
            "line 1, column 43: SamplesPerSecond must be a whole number");
  EXPECT_EQ(std::string(Read(WithKey("SamplesPerSecond: '${env:LIST}'"), environment).status().message()),
            "line 1, column 43: SamplesPerSecond must be a whole number");
  EXPECT_THAT(ErrorOf(WithKey("Tracers: '${file:/etc/tracers}'")), HasSubstr("line 1, column 34: only environment"));
  auto attribute = [&](const std::string& value) {
    return ValuesOf(*Read("receivers: {profiling: }\nprocessors: {resource: {attributes: [{key: k, value: " + value +
                              ", action: upsert}]}}\nservice: {pipelines: {profiles: {receivers: [profiling], "
                              "processors: [resource]}}}\n",
                          environment))["resource-attribute"];
  };
  EXPECT_EQ(attribute("'${env:NODE}'"), "k=node-1");
  EXPECT_EQ(attribute("'b$$c$${d}'"), "k=b%24c%24%7Bd%7D");
  EXPECT_EQ(attribute("'${env:LIST}'"), "k=%5Ba%2C%20b%5D");
  // Names of components, too.
  EXPECT_TRUE(Read("receivers: {profiling: }\nexporters: {nop: }\nservice: {pipelines: {profiles: {receivers: "
                   "[profiling], exporters: ['${env:EXPORTER}']}}}\n",
                   environment)
                  .ok());
}

TEST(DistributionConfig, InterpretersAreOnUnlessDisabled) {
  const auto config = Read(WithKey("interpreters: {Python: {disabled: true}, php: {enabled: false}, ruby: , go: {}}"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(ValuesOf(*config),
              ElementsAre(Pair("tracers", "native,go,perl,hotspot,ruby,v8,dotnet,beam,labels,luajit")));
  EXPECT_EQ(config->interpreters->named, "go,ruby");
  EXPECT_THAT(Read(WithKey("interpreters: {}"))->values, IsEmpty());
  EXPECT_EQ(ErrorOf(WithKey("interpreters: {go: {disabled: maybe}}")),
            "line 1, column 55: disabled must be true or false");
  EXPECT_EQ(ErrorOf(WithKey("interpreters: {go: false}")), "line 1, column 44: an interpreter must be a map");
  EXPECT_THAT(ErrorOf(WithKey("interpreters: {all: {}}")), HasSubstr("there is no such interpreter"));
  EXPECT_EQ(ErrorOf(WithKey("interpreters: {go: , cobol: }")),
            "line 1, column 46: cobol: there is no such interpreter; --tracers has the same names");
}

TEST(DistributionConfig, DurationsGetAFormThatOurOptionsAccept) {
  EXPECT_THAT(ValuesOf(*Read(WithKey("reporter_interval: 1.5s"))), ElementsAre(Pair("batch-interval", "1500ms")));
  auto advice = [](const std::string& settings) {
    return Read("receivers: {profiling: }\nprocessors: {k8s_attributes: {" + settings +
                "}}\nservice: {pipelines: {profiles: {receivers: [profiling], processors: [k8s_attributes]}}}\n")
        ->warnings.at(0);
  };
  EXPECT_THAT(advice("wait_for_metadata_timeout: 1m30s"), HasSubstr("option --metadata-wait 90s"));
  EXPECT_THAT(advice("wait_for_metadata: true"), EndsWith("option --metadata-wait"));
  EXPECT_THAT(advice("wait_for_metadata: false, context: c"), Not(HasSubstr("--metadata-wait")));
}

TEST(DistributionConfig, KnowsTheNamesOfNewerReleases) {
  const auto config = Read(
      "receivers: {profiling: , nop: }\nprocessors: {resource_detection: {detectors: [env]}, transform: {a: b}}\n"
      "exporters: {otlp_grpc: {endpoint: 'a:4317'}, otlp_http/x: {endpoint: b}}\nextensions: {opamp: {server: }}\n"
      "service: {extensions: [opamp], pipelines: {profiles: {receivers: [profiling, nop], processors: "
      "[resource_detection, transform], exporters: [otlp_grpc, otlp_http/x]}}}\n");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(config->warnings, ElementsAre(HasSubstr("processors.resource_detection: kernel-collector always"),
                                            HasSubstr("processors.transform: "), HasSubstr("extensions.opamp: ")));
  ASSERT_EQ(config->exporters.size(), 2u);
  EXPECT_EQ(config->exporters[0].host, "a:4317");
  EXPECT_EQ(config->exporters[1].kind, Exporter::Kind::kHttp);
}

TEST(DistributionConfig, TheNumberOfWarningsIsLimited) {
  std::string pipelines;
  for (int i = 0; i < 1'000; ++i) pipelines += ", metrics/" + std::to_string(i) + ": ";
  const auto config =
      Read("receivers: {profiling: }\nservice: {pipelines: {profiles: {receivers: [profiling]}" + pipelines + "}}\n");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->warnings.size(), 64u);
  EXPECT_THAT(config->warnings.back(), HasSubstr("; 936 more warnings are not shown"));
  std::string rules;
  for (int i = 0; i < 65; ++i) rules += "{key: a}, ";
  const std::string service = "service: {pipelines: {profiles: {receivers: [profiling]}}}\n";
  EXPECT_THAT(ErrorOf("receivers: {profiling: }\nprocessors: {k8sattributes: {extract: {labels: [" + rules + "]}}}\n" +
                      service),
              HasSubstr("there are more than 64 rules"));
}

}  // namespace
}  // namespace tributary
