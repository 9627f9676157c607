#include "otlp/event_logs.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/saturate.h"
#include "otlp/attribute_values.h"
#include "profile/signal_name.h"
#include "schemas/otlp/logs_service.pb.h"

namespace tributary::otlp {
namespace {

namespace proto = ::opentelemetry::proto::logs::v1;

constexpr size_t kRecordOverheadBytes = 8;     // tag and length
constexpr size_t kResourceOverheadBytes = 64;  // tags and lengths of a resource, its logs and its scope

void AddEnd(const ProcessEnd& end, KeyValues* out) {
  if (end.signal == 0) {
    AddInt(out, "process.exit.code", end.exit_code);
  } else {
    AddText(out, "tributary.process.signal", SignalName(end.signal));
  }
  if (end.core_dumped) AddBool(out, "tributary.process.core_dumped", true);
  if (end.oom_killed) AddBool(out, "tributary.process.oom_killed", true);
  AddInt(out, "tributary.process.run_ns", ClampToInt64(end.run_ns));
  AddInt(out, "tributary.process.user_ns", ClampToInt64(end.user_ns));
  AddInt(out, "tributary.process.system_ns", ClampToInt64(end.system_ns));
  AddInt(out, "tributary.process.peak_rss_bytes", ClampToInt64(end.peak_rss_bytes));
}

void AddEvent(const EventInfo& event, KeyValues* out) {
  if (event.kind == ProcessEventKind::kSum) {
    AddInt(out, "tributary.process.count", event.processes);
    AddInt(out, "tributary.process.events", event.events);
  } else {
    AddInt(out, "process.pid", event.pid.value);
    AddInt(out, "process.parent_pid", event.parent.value);
    AddInt(out, "tributary.process.start_time_ns", event.start_time_ns);
  }
  AddText(out, "process.command", event.name);
  AddText(out, "process.executable.path", event.executable_path);
  AddInt(out, "process.user.id", event.uid);
  if (event.kind == ProcessEventKind::kExit || event.kind == ProcessEventKind::kSum) AddEnd(event.end, out);
}

}  // namespace

EventLogs::EventLogs(const RequestIdentity& identity, std::string_view scope_version)
    : identity_(identity),
      session_(identity.SessionText()),
      version_(scope_version),
      next_(identity.first),
      request_(new LogsRequest) {}

EventLogs::~EventLogs() = default;

void EventLogs::Add(const Attributes& resource, const EventInfo& event) {
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
  const auto time = static_cast<uint64_t>(std::max<int64_t>(event.time.value, 0));
  record->set_time_unix_nano(time);
  record->set_observed_time_unix_nano(std::max<uint64_t>(time, 1));  // 0 would mean that it is not set
  const bool is_bad = event.end.core_dumped || event.end.oom_killed;
  record->set_severity_number(is_bad ? proto::SEVERITY_NUMBER_WARN : proto::SEVERITY_NUMBER_INFO);
  record->set_severity_text(is_bad ? "WARN" : "INFO");
  const std::string_view kind = ProcessEventKindName(event.kind);
  record->set_event_name(fmt::format("tributary.process.{}", kind));
  record->mutable_body()->set_string_value(fmt::format("process {}: {}", kind, ToText(event.name)));
  AddText(record->mutable_attributes(), "tributary.sender", identity_.sender);
  AddText(record->mutable_attributes(), "tributary.session", session_);
  AddInt(record->mutable_attributes(), "tributary.sequence", ClampToInt64(next_++));
  AddEvent(event, record->mutable_attributes());
  bytes_ += kRecordOverheadBytes + record->ByteSizeLong();
}

}  // namespace tributary::otlp
