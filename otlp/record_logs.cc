#include "otlp/record_logs.h"

#include <algorithm>

#include "base/saturate.h"
#include "schemas/otlp/logs_service.pb.h"

namespace tributary::otlp {
namespace {

namespace proto = ::opentelemetry::proto::logs::v1;

constexpr size_t kRecordOverheadBytes = 8;     // tag and length
constexpr size_t kResourceOverheadBytes = 64;  // tags and lengths of a resource, its logs and its scope

uint64_t TimeOf(UnixNs time) { return static_cast<uint64_t>(std::max<int64_t>(time.value, 0)); }

}  // namespace

RecordLogs::RecordLogs(const RequestIdentity& identity, std::string_view scope_version)
    : identity_(identity),
      session_(identity.SessionText()),
      version_(scope_version),
      next_(identity.first),
      request_(new LogsRequest) {}

RecordLogs::~RecordLogs() = default;

void RecordLogs::Add(const Attributes& resource, const RecordHead& head, absl::FunctionRef<void(KeyValues*)> fill) {
  auto [scope, added] = scopes_.try_emplace(resource);
  if (added) {
    auto* logs = request_->add_resource_logs();
    SetResource(resource, logs->mutable_resource());
    scope->second = logs->add_scope_logs();
    scope->second->mutable_scope()->set_name("tributary");
    scope->second->mutable_scope()->set_version(version_);
    bytes_ += kResourceOverheadBytes + logs->ByteSizeLong();
  }
  proto::LogRecord* record = scope->second->add_log_records();
  record->set_time_unix_nano(TimeOf(head.time));
  record->set_observed_time_unix_nano(std::max<uint64_t>(TimeOf(head.observed), 1));  // 0 would mean that it is not set
  record->set_severity_number(head.is_warning ? proto::SEVERITY_NUMBER_WARN : proto::SEVERITY_NUMBER_INFO);
  record->set_severity_text(head.is_warning ? "WARN" : "INFO");
  record->set_event_name(head.name);
  record->mutable_body()->set_string_value(head.body);
  AddText(record->mutable_attributes(), "tributary.sender", identity_.sender);
  AddText(record->mutable_attributes(), "tributary.session", session_);
  AddInt(record->mutable_attributes(), "tributary.sequence", ClampToInt64(next_++));
  fill(record->mutable_attributes());
  bytes_ += kRecordOverheadBytes + record->ByteSizeLong();
}

}  // namespace tributary::otlp
