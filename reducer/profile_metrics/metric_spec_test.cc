#include "reducer/profile_metrics/metric_spec.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "reducer/metadata/attribute_names.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> LabelsOf(const MetricSpec& spec) {
  std::vector<std::string> names;
  for (const MetricLabel& label : spec.by) names.push_back(label.name);
  return names;
}

TEST(MetricSpec, TakesAllKeys) {
  const auto spec = MetricSpec::Parse(
      R"(name=cpu_seconds_total,selector={k8s.namespace.name="shop", service.name=~"a,}b\"c"},by=service,function,)"
      R"(k8s.pod.name,type=off_cpu)");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->name, "cpu_seconds_total");
  ASSERT_EQ(spec->selector.matchers().size(), 2u);
  EXPECT_EQ(spec->selector.matchers()[1].value, "a,}b\"c") << "a selector ends at the brace outside of quotes";
  EXPECT_EQ(LabelsOf(*spec), (std::vector<std::string>{"service", "function", "k8s_pod_name"}));
  EXPECT_EQ(spec->by[0].attribute, "service_name");
  EXPECT_TRUE(spec->by[1].is_of_frame());
  EXPECT_EQ(spec->type.name, "off_cpu");
  EXPECT_TRUE(spec->is_time());
  EXPECT_TRUE(spec->uses_frames());
}

TEST(MetricSpec, HasDefaults) {
  const auto spec = MetricSpec::Parse("name=cpu_total");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_TRUE(spec->selector.matchers().empty());
  EXPECT_TRUE(spec->by.empty());
  EXPECT_EQ(spec->type, InfoOf(*FindSampleType(SampleType::kCpu)));
  EXPECT_FALSE(spec->uses_frames());
}

TEST(MetricSpec, TakesTheKeysInAnyOrderAndByMoreThanOnce) {
  const auto spec = MetricSpec::Parse("type=heap:bytes,by=service,by=host.name,name=heap_total");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(LabelsOf(*spec), (std::vector<std::string>{"service", "host_name"}));
  EXPECT_EQ(spec->type.unit, "bytes");
  EXPECT_FALSE(spec->is_time());
}

TEST(MetricSpec, PointsAtTheMistake) {
  const struct {
    std::string text, message;
  } kCases[] = {
      {"", "'' has no name"},
      {"by=service", "has no name; write name=NAME"},
      {"nam=x", "unknown key 'nam' at byte 0; the keys are name, selector, by and type"},
      {"name=x_total,bye=service", "unknown key 'bye' at byte 13"},
      {"name=x_total,service", "expected KEY=VALUE at byte 13, found 'service'"},
      {"name=x_total,", ""},
      {"name=x,", "the name x must end with _total"},
      {"name=x_total,,by=service", "expected KEY=VALUE at byte 13, found ''"},
      {"name=x_total,name=y", "the key name occurs again at byte 13"},
      {"name=cpu-seconds", "'cpu-seconds' at byte 5 is not the name of a metric: use letters, digits and '_'"},
      {"name=9x", "is not the name of a metric"},
      {"name=", "'' at byte 5 is not the name of a metric"},
      {"name=tributary_x", "begins with tributary_, as the reducer's own metrics do"},
      {"name=process_x", "begins with process_"},
      {"name=" + std::string(129, 'x'), "the name at byte 5 is longer than 128 bytes"},
      {"name=x_total,selector=a", "the selector that begins at byte 22: selector: expected '{' at byte 0"},
      {"name=x_total,selector={a=b},by=service", "the selector that begins at byte 22: selector: expected a value"},
      {R"(name=x_total,selector={a="b")", "expected ',' or '}'"},
      {R"(name=x_total,selector={a=~"("})", "regular expression at byte"},
      {R"(name=x_total,selector={}y)", "expected ',' at byte 24, found 'y'"},
      {R"(name=x_total,selector={thread.name="a"})", "the label 'thread_name' at its byte 1 belongs to threads"},
      {"name=x_total,by=", "'' at byte 16 is not a label for by=; allowed are service, executable, language"},
      {"name=x_total,by=a b", "'a b' at byte 16 is not a label"},
      {"name=x_total,by=1a", "is not a label"},
      {"name=x_total,by=thread.id", "the label thread.id at byte 16 belongs to threads"},
      {"name=x_total,by=service,function,service", "by= has the label service again at byte 33"},
      {"name=x_total,by=a.b,a_b", "by= has the label a_b again at byte 20"},
      {"name=x_total,by=a,b,c,d,e,f,g,h,i", "by= has more than 8 labels: 'i' at byte 32 is one too many"},
      {"name=x_total,type=ram", "'ram' at byte 18 is not a type of samples: write cpu, off_cpu, or NAME:UNIT"},
      {"name=x_total,type=:bytes", "is not a type of samples"},
      {"name=x_total,type=a:b:c", "is not a type of samples"},
      {"name=" + std::string(10'001, 'x'), "the text is longer than 10000 bytes"},
  };
  for (const auto& [text, message] : kCases) {
    const auto spec = MetricSpec::Parse(text);
    EXPECT_EQ(spec.ok(), message.empty()) << text;
    EXPECT_THAT(std::string(spec.status().message()), HasSubstr(message)) << text;
  }
}

TEST(MetricSpec, AnswersEveryBeginningOfAText) {
  const std::string text = R"(name=x_total,selector={a="\"b",c!~"d\\\\"},by=service,function,type=heap:bytes)";
  size_t valid = 0;
  for (size_t size = 0; size <= text.size(); ++size) {
    const auto spec = MetricSpec::Parse(text.substr(0, size));
    EXPECT_NE(spec.ok(), spec.status().message().size() > 0) << size;
    valid += spec.ok() ? 1 : 0;
  }
  // All beginnings that end behind the name, selector=, the selector, a letter of a label, or a letter of the unit.
  EXPECT_EQ(valid, 31u);
  EXPECT_TRUE(MetricSpec::Parse(text).ok());
}

TEST(MetricSpec, RefusesEqualNamesAndTooManyMetrics) {
  EXPECT_THAT(
      std::string(ParseMetricSpecs({"name=a_total", "name=b_total", "name=a_total,by=service"}).status().message()),
      HasSubstr("two metrics have the name a_total"));
  std::vector<std::string> texts;
  for (size_t i = 0; i < MetricSpec::kMetricsMax; ++i) texts.push_back(fmt::format("name=m{}_total", i));
  EXPECT_EQ(ParseMetricSpecs(texts)->size(), MetricSpec::kMetricsMax);
  texts.push_back("name=more_total");
  EXPECT_THAT(std::string(ParseMetricSpecs(texts).status().message()), HasSubstr("at most 32 are allowed"));
}

TEST(MetricSpec, FindsAttributesThatNoProcessHas) {
  AttributeNames names;
  names.Learn({{"team.name", "blue"}});
  const auto specs = ParseMetricSpecs(
      {R"(name=a_total,selector={team.nam="x",node.id="n"},by=service,executable,function,team.name)"});
  const std::vector<std::string> sentences = FindUnknownAttributes(*specs, names);
  ASSERT_EQ(sentences.size(), 1u);
  EXPECT_EQ(sentences[0],
            "no process has the attribute team_nam of the metric a_total yet: check its spelling, the nearest one "
            "is team.name");
}

TEST(MetricSpec, FindsTypesThatNoProgramSends) {
  const auto specs = ParseMetricSpecs({"name=a_total", "name=b_total,type=heap:bytes", "name=c_total,type=hepa:bytes",
                                       "name=d_total,type=live:bytes", "name=e_total,type=off_cpu"});
  const std::set<SampleTypeInfo> types = {{"heap", "bytes"}, {"live", "bytes", Aggregation::kLast}};
  EXPECT_THAT(FindUnknownTypes(*specs, types),
              ElementsAre("no program has sent samples of the type hepa:bytes of the metric c_total yet: check its "
                          "spelling",
                          "the type live:bytes of the metric d_total is a gauge, and gauges make no metrics: read it "
                          "with /api/v1/timeline?type=live:bytes, or let the program itself offer the gauge to "
                          "Prometheus"));
}

}  // namespace
}  // namespace tributary
