#include "test/otlp/metrics_validator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <set>

namespace tributary::otlp {
namespace {

namespace metrics = ::opentelemetry::proto::metrics::v1;
namespace common = ::opentelemetry::proto::common::v1;
using Request = MetricsValidator::Request;

constexpr uint64_t kStart = 1'700'000'000'000'000'000, kTime = kStart + 1'000'000'000;

void AddAttribute(google::protobuf::RepeatedPtrField<common::KeyValue>* attributes, const char* key,
                  const char* value) {
  common::KeyValue* attribute = attributes->Add();
  attribute->set_key(key);
  attribute->mutable_value()->set_string_value(value);
}

// Returns a valid request: a sum of two series, and a gauge.
Request ValidRequest(uint64_t time = kTime) {
  Request request;
  auto* resource = request.add_resource_metrics();
  AddAttribute(resource->mutable_resource()->mutable_attributes(), "service.name", "test");
  auto* scope = resource->add_scope_metrics();
  scope->mutable_scope()->set_name("test");
  AddAttribute(scope->mutable_scope()->mutable_attributes(), "a", "b");
  auto* counter = scope->add_metrics();
  counter->set_name("test_sent_bytes_total");
  counter->set_unit("By");
  counter->mutable_sum()->set_is_monotonic(true);
  counter->mutable_sum()->set_aggregation_temporality(metrics::AGGREGATION_TEMPORALITY_CUMULATIVE);
  for (const char* node : {"n1", "n2"}) {
    auto* point = counter->mutable_sum()->add_data_points();
    AddAttribute(point->mutable_attributes(), "node", node);
    AddAttribute(point->mutable_attributes(), "reason", "r");
    point->set_start_time_unix_nano(kStart);
    point->set_time_unix_nano(time);
    point->set_as_int(7);
  }
  auto* gauge = scope->add_metrics();
  gauge->set_name("test_age_seconds");
  gauge->set_unit("s");
  AddAttribute(gauge->mutable_metadata(), "prometheus.type", "gauge");
  auto* point = gauge->mutable_gauge()->add_data_points();
  point->set_time_unix_nano(time);
  point->set_as_double(-0.5);
  return request;
}

// Short names for the parts that the defects below break.
struct Target {
  Request& request;
  metrics::ResourceMetrics* resource = request.mutable_resource_metrics(0);
  metrics::ScopeMetrics* scope = resource->mutable_scope_metrics(0);
  metrics::Metric* counter = scope->mutable_metrics(0);
  metrics::Sum* sum = counter->mutable_sum();
  metrics::NumberDataPoint* point = sum->mutable_data_points(0);
  metrics::Metric* gauge = scope->mutable_metrics(1);
  metrics::NumberDataPoint* gauge_point = gauge->mutable_gauge()->mutable_data_points(0);
};

struct Defect {
  const char* rule;
  std::function<void(Target)> plant;
};

const Defect kDefects[] = {
    // The message.
    {"request.no_resources", [](Target t) { t.request.clear_resource_metrics(); }},
    {"request.too_large", [](Target t) { t.counter->set_description(std::string(4 << 20, 'x')); }},
    {"message.unknown_field",
     [](Target t) { t.counter->GetReflection()->MutableUnknownFields(t.counter)->AddVarint(9, 1); }},
    {"string.not_utf8", [](Target t) { t.point->mutable_attributes(0)->mutable_value()->set_string_value("\xff"); }},
    // Resources and scopes.
    {"resource.repeated", [](Target t) { *t.request.add_resource_metrics() = Request(t.request).resource_metrics(0); }},
    {"resource.no_service_name", [](Target t) { t.resource->mutable_resource()->mutable_attributes(0)->set_key("x"); }},
    {"resource.attribute_repeated",
     [](Target t) { AddAttribute(t.resource->mutable_resource()->mutable_attributes(), "service.name", "y"); }},
    {"resource.no_scopes", [](Target t) { t.resource->clear_scope_metrics(); }},
    {"scope.attribute_repeated",
     [](Target t) { AddAttribute(t.scope->mutable_scope()->mutable_attributes(), "a", "c"); }},
    {"scope.no_metrics", [](Target t) { t.scope->clear_metrics(); }},
    // Metrics.
    {"metric.repeated", [](Target t) { t.gauge->set_name("test_sent_bytes_total"); }},
    {"metric.name", [](Target t) { t.gauge->set_name("test age_seconds"); }},
    {"metric.unit", [](Target t) { t.gauge->set_unit("seconds since"); }},
    {"metric.unit_differs_from_name", [](Target t) { t.counter->set_unit("s"); }},
    {"metric.attribute_repeated",
     [](Target t) { AddAttribute(t.gauge->mutable_metadata(), "prometheus.type", "gauge"); }},
    {"metric.no_data", [](Target t) { t.gauge->clear_data(); }},
    {"metric.no_points", [](Target t) { t.gauge->mutable_gauge()->clear_data_points(); }},
    {"sum.not_cumulative",
     [](Target t) { t.sum->set_aggregation_temporality(metrics::AGGREGATION_TEMPORALITY_DELTA); }},
    // Data points.
    {"point.repeated",
     [](Target t) {
       t.point->mutable_attributes(0)->mutable_value()->set_string_value("n2");
       t.point->mutable_attributes()->SwapElements(0, 1);
     }},
    {"point.attribute_repeated", [](Target t) { t.point->mutable_attributes(1)->set_key("node"); }},
    {"attribute.no_key", [](Target t) { t.point->mutable_attributes(1)->clear_key(); }},
    {"attribute.strindex",
     [](Target t) { t.point->mutable_attributes(1)->mutable_value()->set_string_value_strindex(1); }},
    {"point.no_value", [](Target t) { t.point->clear_value(); }},
    {"point.value_with_flag", [](Target t) { t.point->set_flags(1); }},
    {"point.flags", [](Target t) { t.point->set_flags(2); }},
    {"point.nan", [](Target t) { t.gauge_point->set_as_double(std::numeric_limits<double>::quiet_NaN()); }},
    {"point.no_time", [](Target t) { t.gauge_point->clear_time_unix_nano(); }},
    {"point.start_after_time", [](Target t) { t.point->set_start_time_unix_nano(kTime + 1); }},
    {"sum.no_start", [](Target t) { t.point->clear_start_time_unix_nano(); }},
    {"sum.negative", [](Target t) { t.point->set_as_int(-1); }},
};

// Defects that only a second request can have. It is otherwise valid, and a second later.
const Defect kLaterDefects[] = {
    {"series.time_not_later", [](Target t) { t.gauge_point->set_time_unix_nano(kTime); }},
    {"series.start_earlier", [](Target t) { t.point->set_start_time_unix_nano(kStart - 1); }},
    {"series.fell", [](Target t) { t.point->set_as_int(6); }},
};

std::set<std::string> Rules(const std::vector<Finding>& findings) {
  std::set<std::string> rules;
  for (const Finding& finding : findings) rules.insert(finding.rule);
  return rules;
}

TEST(MetricsValidator, FindsNothingInValidRequests) {
  MetricsValidator validator;
  for (const uint64_t time : {kTime, kTime + 1}) {
    const std::vector<Finding> findings = validator.CheckBytes(ValidRequest(time).SerializeAsString());
    EXPECT_TRUE(findings.empty()) << DescribeFindings(findings);
  }
}

TEST(MetricsValidator, FindsEveryPlantedDefectByItsOwnRule) {
  std::set<std::string> planted;
  for (const Defect& defect : kDefects) {
    EXPECT_TRUE(planted.insert(defect.rule).second) << defect.rule << " is planted twice";
    Request request = ValidRequest();
    defect.plant(Target{request});
    const std::vector<Finding> findings = MetricsValidator().Check(request);
    EXPECT_THAT(Rules(findings), ::testing::Contains(defect.rule)) << DescribeFindings(findings);
  }
}

TEST(MetricsValidator, FindsDefectsBetweenRequests) {
  for (const Defect& defect : kLaterDefects) {
    MetricsValidator validator;
    ASSERT_TRUE(validator.Check(ValidRequest()).empty());
    Request request = ValidRequest(kTime + 1'000'000'000);
    defect.plant(Target{request});
    EXPECT_THAT(Rules(validator.Check(request)), ::testing::ElementsAre(defect.rule));
  }
}

TEST(MetricsValidator, ASumThatBeginsAgainMayFall) {
  MetricsValidator validator;
  ASSERT_TRUE(validator.Check(ValidRequest()).empty());
  Request request = ValidRequest(kTime + 1'000'000'000);
  Target{request}.point->set_start_time_unix_nano(kTime + 1);
  Target{request}.point->set_as_int(0);
  const std::vector<Finding> findings = validator.Check(request);
  EXPECT_TRUE(findings.empty()) << DescribeFindings(findings);
}

TEST(MetricsValidator, CallsOtherBytesNotProtobuf) {
  EXPECT_THAT(Rules(MetricsValidator().CheckBytes("\xff\xff\xff\xff")), ::testing::ElementsAre("message.not_protobuf"));
}

TEST(MetricsValidator, StopsAtItsCap) {
  Request request = ValidRequest();
  for (int i = 0; i < 5000; ++i) *Target{request}.sum->add_data_points() = *Target{request}.point;
  EXPECT_EQ(MetricsValidator().Check(request).size(), kFindingsMax);
}

}  // namespace
}  // namespace tributary::otlp
