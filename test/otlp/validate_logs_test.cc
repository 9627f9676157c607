#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "schemas/otlp/logs_service.pb.h"
#include "test/otlp/validator.h"

namespace tributary::otlp {
namespace {

using ::opentelemetry::proto::logs::v1::LogRecord;
using ::testing::Contains;

void AddAttribute(LogRecord* record, const char* key, const char* text) {
  auto* attribute = record->add_attributes();
  attribute->set_key(key);
  attribute->mutable_value()->set_string_value(text);
}

void AddNumber(LogRecord* record, const char* key, int64_t number) {
  auto* attribute = record->add_attributes();
  attribute->set_key(key);
  attribute->mutable_value()->set_int_value(number);
}

// Two records of samples: the first one stands for three samples.
LogsRequest ValidRequest() {
  LogsRequest request;
  auto* resource = request.add_resource_logs();
  auto* host = resource->mutable_resource()->add_attributes();
  host->set_key("host.name");
  host->mutable_value()->set_string_value("h");
  auto* scope = resource->add_scope_logs();
  for (const int64_t sequence : {10, 13}) {
    LogRecord* record = scope->add_log_records();
    record->set_time_unix_nano(5);
    record->set_observed_time_unix_nano(6);
    record->set_event_name("tributary.samples");
    record->mutable_body()->set_string_value("main");
    record->set_trace_id("0123456789abcdef");
    record->set_span_id("01234567");
    AddAttribute(record, "tributary.sender", "r");
    AddAttribute(record, "tributary.session", "00112233445566778899aabbccddeeff");
    AddNumber(record, "tributary.sequence", sequence);
    AddNumber(record, "tributary.sample.count", 3);
    auto* frame = record->add_attributes();
    frame->set_key("tributary.stack");
    auto* values = frame->mutable_value()->mutable_array_value()->add_values()->mutable_kvlist_value();
    for (const char* key : {"function", "file"}) {
      auto* value = values->add_values();
      value->set_key(key);
      value->mutable_value()->set_string_value("x");
    }
  }
  return request;
}

TEST(ValidateLogs, AcceptsAValidRequest) {
  const std::vector<Finding> findings = ValidateLogsBytes(ValidRequest().SerializeAsString());
  EXPECT_TRUE(findings.empty()) << DescribeFindings(findings);
}

TEST(ValidateLogs, FindsEachDefect) {
  const auto record = [](LogsRequest& r) {
    return r.mutable_resource_logs(0)->mutable_scope_logs(0)->mutable_log_records(1);
  };
  const struct {
    const char* rule;
    std::function<void(LogsRequest&)> spoil;
  } defects[] = {
      {"request.no_resource", [](LogsRequest& r) { r.clear_resource_logs(); }},
      {"request.too_large",
       [&](LogsRequest& r) { record(r)->mutable_body()->set_string_value(std::string(5 << 20, 'x')); }},
      {"resource.no_scope", [](LogsRequest& r) { r.mutable_resource_logs(0)->clear_scope_logs(); }},
      {"resource.repeated", [](LogsRequest& r) { *r.add_resource_logs() = r.resource_logs(0); }},
      {"resource.attribute_repeated",
       [](LogsRequest& r) { r.mutable_resource_logs(0)->mutable_resource()->add_attributes()->set_key("host.name"); }},
      {"attribute.no_key", [](LogsRequest& r) { r.mutable_resource_logs(0)->mutable_resource()->add_attributes(); }},
      {"scope.no_records", [](LogsRequest& r) { r.mutable_resource_logs(0)->add_scope_logs(); }},
      {"scope.attribute_repeated",
       [](LogsRequest& r) {
         auto* scope = r.mutable_resource_logs(0)->mutable_scope_logs(0)->mutable_scope();
         scope->add_attributes()->set_key("a");
         scope->add_attributes()->set_key("a");
       }},
      {"record.attribute_repeated", [&](LogsRequest& r) { AddNumber(record(r), "tributary.sample.count", 3); }},
      {"kvlist.attribute_repeated",
       [&](LogsRequest& r) {
         auto* frame = record(r)->mutable_attributes(4)->mutable_value()->mutable_array_value()->mutable_values(0);
         frame->mutable_kvlist_value()->add_values()->set_key("function");
       }},
      {"attribute.key_strindex.range", [&](LogsRequest& r) { record(r)->mutable_attributes(0)->set_key_strindex(3); }},
      {"record.no_observed_time", [&](LogsRequest& r) { record(r)->clear_observed_time_unix_nano(); }},
      {"record.severity",
       [&](LogsRequest& r) {
         record(r)->set_severity_number(static_cast<::opentelemetry::proto::logs::v1::SeverityNumber>(25));
       }},
      {"record.trace_id", [&](LogsRequest& r) { record(r)->set_trace_id("short"); }},
      {"record.span_id", [&](LogsRequest& r) { record(r)->set_span_id(std::string(8, '\0')); }},
      {"record.half_link", [&](LogsRequest& r) { record(r)->clear_span_id(); }},
      {"record.no_event_name", [&](LogsRequest& r) { record(r)->clear_event_name(); }},
      {"record.no_identity", [&](LogsRequest& r) { record(r)->mutable_attributes()->DeleteSubrange(0, 1); }},
      {"record.no_identity",
       [&](LogsRequest& r) { record(r)->mutable_attributes(3)->mutable_value()->set_int_value(0); }},
      {"record.sequence_repeated",
       [&](LogsRequest& r) { record(r)->mutable_attributes(2)->mutable_value()->set_int_value(12); }},
      {"record.sequence_repeated",
       [&](LogsRequest& r) { record(r)->mutable_attributes(2)->mutable_value()->set_int_value(8); }},
      {"string.not_utf8", [&](LogsRequest& r) { record(r)->set_severity_text("\xff"); }},
  };
  for (const auto& defect : defects) {
    LogsRequest request = ValidRequest();
    defect.spoil(request);
    std::set<std::string> rules;
    for (const Finding& finding : ValidateLogs(request)) rules.insert(finding.rule);
    EXPECT_THAT(rules, Contains(defect.rule));
  }
}

TEST(ValidateLogs, FindsUnknownFieldsAndOtherBytes) {
  std::string bytes = ValidRequest().SerializeAsString();
  EXPECT_EQ(ValidateLogsBytes("\x0a\xff").at(0).rule, "message.not_protobuf");
  bytes += "\x78\x01";  // field 15 of the request
  EXPECT_EQ(ValidateLogsBytes(bytes).at(0).rule, "message.unknown_field");
}

}  // namespace
}  // namespace tributary::otlp
