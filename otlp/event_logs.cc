#include "otlp/event_logs.h"

#include <fmt/format.h>

#include "base/saturate.h"
#include "profile/signal_name.h"

namespace tributary::otlp {
namespace {

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

void AddAttributes(const EventInfo& event, KeyValues* out) {
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

void AddEvent(const Attributes& resource, const EventInfo& event, RecordLogs* logs) {
  const std::string_view kind = ProcessEventKindName(event.kind);
  logs->Add(resource,
            {.time = event.time,
             .observed = event.time,
             .is_warning = event.end.core_dumped || event.end.oom_killed,
             .name = fmt::format("tributary.process.{}", kind),
             .body = fmt::format("process {}: {}", kind, ToText(event.name))},
            [&event](KeyValues* out) { AddAttributes(event, out); });
}

}  // namespace tributary::otlp
