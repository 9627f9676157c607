#include "reducer/export/records_text.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <string_view>

#include "base/log.h"
#include "profile/signal_name.h"
#include "reducer/metadata/rollout_fields.h"

namespace tributary {
namespace {

std::string FormatTime(UnixNs time) {
  const auto seconds = static_cast<std::time_t>(time.value / kNsPerSecond);
  std::tm fields{};
  if (gmtime_r(&seconds, &fields) == nullptr) return "?";
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:09}Z", fields, time.value % kNsPerSecond);
}

class Line {
 public:
  Line(std::string_view kind, std::string_view what, UnixNs time)
      : text_(fmt::format("{}: {}, Time: {}", kind, EscapeForDisplay(what), FormatTime(time))) {}

  void Add(std::string_view key, std::string_view value) {
    if (!value.empty()) text_ += fmt::format(", {}: {}", key, EscapeForDisplay(value));
  }
  void Add(std::string_view key, uint64_t value) { text_ += fmt::format(", {}: {}", key, value); }
  std::string Take() && { return std::move(text_) + '\n'; }

 private:
  std::string text_;
};

void AddEnd(Line& line, const store::EventRecord& event) {
  const ProcessEnd& end = event.end;
  if (end.signal == 0) {
    line.Add("exit_code", end.exit_code);
  } else {
    line.Add("signal", SignalName(end.signal));
  }
  if (end.core_dumped) line.Add("core_dumped", "true");
  if (end.oom_killed) line.Add("oom_killed", "true");
  line.Add("run_ns", end.run_ns);
  line.Add("user_ns", end.user_ns);
  line.Add("system_ns", end.system_ns);
  line.Add("peak_rss_bytes", end.peak_rss_bytes);
}

}  // namespace

std::string FormatEvents(std::span<const store::EventRecord> events) {
  std::string text;
  for (const store::EventRecord& event : events) {
    Line line("Process Event", ProcessEventKindName(event.kind), event.time);
    const bool is_sum = event.kind == ProcessEventKind::kSum;
    line.Add("host.name", event.host_name);
    line.Add("host.id", event.node_id);
    if (is_sum) {
      line.Add("processes", event.processes);
      line.Add("events", event.events);
    } else {
      line.Add("process.pid", fmt::format("{}", event.pid.value));
      line.Add("process.parent_pid", fmt::format("{}", event.parent.value));
    }
    line.Add("process.command", event.name);
    line.Add("process.executable.path", event.executable_path);
    line.Add("container.id", event.container_id);
    line.Add("user.id", event.uid);
    if (is_sum || event.kind == ProcessEventKind::kExit) AddEnd(line, event);
    text += std::move(line).Take();
  }
  return text;
}

std::string FormatLosses(std::span<const store::LossRecord> losses) {
  std::string text;
  for (const store::LossRecord& loss : losses) {
    Line line("Loss", store::ReasonText(loss), loss.first);
    line.Add("host.name", loss.host_name);
    line.Add("host.id", loss.node_id);
    const bool is_event = loss.type == SampleTypeInfo{};
    line.Add(is_event ? "events" : "samples", fmt::format("{}", loss.samples));
    line.Add("type", loss.type.name);
    line.Add("unit", loss.type.unit);
    text += std::move(line).Take();
  }
  return text;
}

std::string FormatRollouts(std::span<const Rollout> rollouts) {
  std::string text;
  for (const Rollout& rollout : rollouts) {
    Line line("Rollout", rollout.name, rollout.at);
    line.Add("kind", rollout.kind);
    line.Add("namespace", rollout.name_space);
    line.Add("cluster", rollout.cluster);
    line.Add("environment", EnvironmentOf(rollout));
    line.Add("executable", ExecutableOf(rollout));
    const RolloutVersion version = VersionOf(rollout), previous = PreviousVersionOf(rollout);
    line.Add("version", version.version);
    line.Add("images", version.images);
    line.Add("hash", version.hash);
    line.Add("previous version", previous.version);
    line.Add("previous images", previous.images);
    line.Add("previous hash", previous.hash);
    text += std::move(line).Take();
  }
  return text;
}

}  // namespace tributary
