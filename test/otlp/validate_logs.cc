#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "schemas/otlp/logs_service.pb.h"
#include "test/otlp/validation.h"

namespace tributary::otlp {
namespace {

using ::opentelemetry::proto::logs::v1::LogRecord;

constexpr size_t kRequestBytesMax = 4u << 20;  // the limit of most gRPC servers
constexpr int kSeverityMax = 24;

// The identity of a record, and the number of samples or events that it stands for.
struct Numbers {
  std::string sender, session;
  std::optional<int64_t> sequence;
  int64_t count = 1;
};

Numbers NumbersOf(const LogRecord& record) {
  Numbers numbers;
  for (const common::KeyValue& attribute : record.attributes()) {
    if (attribute.key() == "tributary.sender") numbers.sender = attribute.value().string_value();
    if (attribute.key() == "tributary.session") numbers.session = attribute.value().string_value();
    if (attribute.key() == "tributary.sequence") numbers.sequence = attribute.value().int_value();
    if (attribute.key() == "tributary.sample.count") numbers.count = attribute.value().int_value();
  }
  return numbers;
}

class LogsCheck {
 public:
  explicit LogsCheck(const LogsRequest& request) : request_(request) {}

  std::vector<Finding> Check() {
    if (size_t bytes = request_.ByteSizeLong(); bytes >= kRequestBytesMax) {
      v_.Add("request.too_large", "", fmt::format("{} bytes", bytes));
    }
    CheckMessage(request_, "", v_);
    if (request_.resource_logs().empty()) v_.Add("request.no_resource", "", "no resource_logs");
    for (int i = 0; i < request_.resource_logs_size(); ++i) {
      const auto& resource = request_.resource_logs(i);
      const std::string where = fmt::format("resource {}", i);
      CheckAttributes(resource.resource().attributes(), "resource", where, v_);
      if (!resources_.insert(resource.resource().SerializeAsString()).second) {
        v_.Add("resource.repeated", where, "the same attributes as an earlier resource");
      }
      if (resource.scope_logs().empty()) v_.Add("resource.no_scope", where, "no scope_logs");
      for (const auto& scope : resource.scope_logs()) {
        CheckAttributes(scope.scope().attributes(), "scope", where, v_);
        if (scope.log_records().empty()) v_.Add("scope.no_records", where, "no log_records");
        for (int j = 0; j < scope.log_records_size(); ++j) {
          CheckRecord(scope.log_records(j), fmt::format("{} record {}", where, j));
        }
      }
    }
    return std::move(v_).Take();
  }

 private:
  void CheckRecord(const LogRecord& record, const std::string& where) {
    CheckAttributes(record.attributes(), "record", where, v_);
    CheckValue(record.body(), where, v_);
    if (record.observed_time_unix_nano() == 0) v_.Add("record.no_observed_time", where, "observed_time_unix_nano is 0");
    if (record.severity_number() < 0 || record.severity_number() > kSeverityMax) {
      v_.Add("record.severity", where, fmt::format("severity {}", static_cast<int>(record.severity_number())));
    }
    CheckId(record.trace_id(), 16, "record.trace_id", where);
    CheckId(record.span_id(), 8, "record.span_id", where);
    if (record.trace_id().empty() != record.span_id().empty()) {
      v_.Add("record.half_link", where, "one of trace_id and span_id is missing");
    }
    if (record.event_name().empty()) v_.Add("record.no_event_name", where, "event_name is empty");
    CheckNumbers(NumbersOf(record), where);
  }

  void CheckId(const std::string& id, size_t bytes, const std::string& rule, const std::string& where) {
    if (id.empty()) return;
    if (id.size() != bytes || id.find_first_not_of('\0') == std::string::npos) {
      v_.Add(rule, where, fmt::format("{} bytes, or only zeros", id.size()));
    }
  }

  // docs/export-records.md: each record of a session begins where the record before it ends. Records of several
  // resources may alternate, so only the union is checked: it has no number twice.
  void CheckNumbers(const Numbers& numbers, const std::string& where) {
    if (numbers.sender.empty() || numbers.session.size() != 32 || !numbers.sequence || numbers.count < 1) {
      v_.Add("record.no_identity", where, "tributary.sender, .session, .sequence or a positive count is missing");
      return;
    }
    const int64_t end = *numbers.sequence + numbers.count;
    auto& taken = taken_[{numbers.sender, numbers.session}];
    const auto later = taken.lower_bound({*numbers.sequence, 0});
    const bool overlaps = (later != taken.end() && later->first < end) ||
                          (later != taken.begin() && std::prev(later)->second > *numbers.sequence);
    if (overlaps) v_.Add("record.sequence_repeated", where, fmt::format("number {}", *numbers.sequence));
    taken.emplace(*numbers.sequence, end);
  }

  const LogsRequest& request_;
  const ProfilesRequest no_tables_;  // logs have no dictionary: any index into it is a finding
  Validation v_{no_tables_};
  std::set<std::string> resources_;
  std::map<std::pair<std::string, std::string>, std::set<std::pair<int64_t, int64_t>>> taken_;  // [first, end)
};

}  // namespace

std::vector<Finding> ValidateLogs(const LogsRequest& request) { return LogsCheck(request).Check(); }

std::vector<Finding> ValidateLogsBytes(std::string_view bytes) {
  LogsRequest request;
  if (!request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return {Finding{"message.not_protobuf", "", fmt::format("{} bytes", bytes.size())}};
  }
  return ValidateLogs(request);
}

}  // namespace tributary::otlp
