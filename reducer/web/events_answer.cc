#include "reducer/web/events_answer.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "base/json.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/status.h"
#include "profile/signal_name.h"
#include "reducer/metadata/labels.h"

namespace tributary {
namespace {

constexpr uint64_t kEventsDefault = 1'000, kEventsMax = 10'000;
constexpr uint64_t kMarksDefault = 500, kMarksMax = 2'000;
constexpr uint64_t kProgramsDefault = 100, kProgramsMax = 1'000;

std::string_view Find(const Params& params, const std::string& name) {
  const auto it = params.find(name);
  return it == params.end() ? std::string_view() : std::string_view(it->second);
}

absl::Status Invalid(std::string_view name, std::string_view value, std::string_view must) {
  return Error(absl::StatusCode::kInvalidArgument,
               fmt::format("{}: '{}' must be {}", name, EscapeForDisplay(value.substr(0, 64)), must));
}

absl::StatusOr<EventListRequest> ParseList(const Params& params) {
  EventListRequest list{.cursor = std::string(Find(params, "cursor"))};
  ASSIGN_OR_RETURN(list.kinds, EventKinds::Parse(Find(params, "kind")));
  ASSIGN_OR_RETURN(list.limit, ParseNumber(params, "limit", kEventsDefault, 1, kEventsMax));
  const std::string_view order = Find(params, "order");
  if (order == "oldest") {
    list.order = EventOrder::kOldestFirst;
  } else if (!order.empty() && order != "newest") {
    return Invalid("order", order, "newest or oldest");
  }
  return list;
}

absl::StatusOr<EventProgramsRequest> ParsePrograms(const Params& params) {
  EventProgramsRequest programs;
  ASSIGN_OR_RETURN(programs.limit, ParseNumber(params, "limit", kProgramsDefault, 1, kProgramsMax));
  const std::string_view sort = Find(params, "sort");
  if (sort == "cpu") {
    programs.sort = EventProgramsRequest::Sort::kCpu;
  } else if (!sort.empty() && sort != "processes") {
    return Invalid("sort", sort, "processes or cpu");
  }
  if (const std::string_view run_max = Find(params, "run_max"); !run_max.empty()) {
    const absl::StatusOr<int64_t> ns = ParseDurationNs(run_max);
    if (!ns.ok() || *ns <= 0) return Invalid("run_max", run_max, "a duration, such as 500ms or 10s");
    programs.run_max_ns = *ns;
  }
  return programs;
}

void Range(JsonWriter& json, const QueryRequest& request) {
  json.Field("from", request.range.from.value / kNsPerMs);
  json.Field("to", request.range.to.value / kNsPerMs);
}

void Place(JsonWriter& json, const EventPlace& place) {
  json.Field("container_id", place.container_id);
  json.Field("container", place.container);
  json.Field("pod", place.pod);
  json.Field("namespace", place.name_space);
  json.Field("unit", place.unit);
}

void Ending(JsonWriter& json, const ProcessEnd& end) {
  json.Field("exit_code", uint32_t{end.exit_code});
  json.Field("signal", uint32_t{end.signal});
  json.Field("signal_name", SignalName(end.signal));
  json.Field("core_dumped", end.core_dumped);
  json.Field("oom_killed", end.oom_killed);
}

void Event(JsonWriter& json, const EventList::Event& event) {
  const store::EventRecord& record = event.record;
  json.BeginObject();
  json.Field("at", record.time.value / kNsPerMs);
  json.Field("at_ns", record.time.value);
  json.Field("kind", ProcessEventKindName(record.kind));
  json.Field("node_id", record.node_id);
  json.Field("host", record.host_name);
  json.Field("pid", record.pid.value);
  json.Field("parent_pid", record.parent.value);
  json.Field("start_time_ns", record.start_time_ns);
  json.Field("name", record.name);
  json.Field("executable", BaseName(record.executable_path));
  json.Field("executable_path", record.executable_path);
  Place(json, event.place);
  json.Field("cgroup_path", record.cgroup_path);
  json.Field("uid", record.uid);
  const bool is_sum = record.kind == ProcessEventKind::kSum;
  if (is_sum || record.kind == ProcessEventKind::kExit) {
    const ProcessEnd& end = record.end;
    Ending(json, end);
    json.Field("run_ns", end.run_ns);
    json.Field("user_ns", end.user_ns);
    json.Field("system_ns", end.system_ns);
    json.Field("cpu_ns", end.user_ns + end.system_ns);
    json.Field("peak_rss_bytes", end.peak_rss_bytes);
  }
  if (is_sum) {
    json.Field("processes", record.processes);
    json.Field("events", record.events);
  }
  json.EndObject();
}

std::string_view MarkName(EventMarks::Kind kind) {
  switch (kind) {
    case EventMarks::Kind::kCrash:
      return "crash";
    case EventMarks::Kind::kOom:
      return "oom";
    case EventMarks::Kind::kRestart:
      return "restart";
  }
  return "";
}

void Mark(JsonWriter& json, const EventMarks::Mark& mark) {
  const store::EventRecord& record = mark.record;
  json.BeginObject();
  json.Field("at", record.time.value / kNsPerMs);
  json.Field("kind", MarkName(mark.kind));
  json.Field("node_id", record.node_id);
  json.Field("host", record.host_name);
  json.Field("pid", record.pid.value);
  json.Field("start_time_ns", record.start_time_ns);
  json.Field("name", record.name);
  json.Field("executable", BaseName(record.executable_path));
  json.Field("executable_path", record.executable_path);
  Place(json, mark.place);
  Ending(json, mark.end);
  json.Field("count", mark.count);
  json.EndObject();
}

void Use(JsonWriter& json, const EventPrograms::Use& use, uint64_t ended_cpu_ns) {
  json.Field("processes", use.processes);
  json.Field("failed", use.failed);
  json.Field("cpu_ns", use.cpu_ns);
  json.Field("run_ns", use.run_ns);
  json.Field("peak_rss_bytes", use.peak_rss_bytes);
  json.Field("share", ended_cpu_ns == 0 ? 0.0 : static_cast<double>(use.cpu_ns) / static_cast<double>(ended_cpu_ns));
}

}  // namespace

absl::StatusOr<std::string> EventsAnswer(QueryEngine& engine, const QueryRequest& request, const Params& params) {
  ASSIGN_OR_RETURN(const EventListRequest list, ParseList(params));
  ASSIGN_OR_RETURN(const EventList found, engine.QueryEvents(request, list));
  JsonWriter json;
  json.BeginObject();
  Range(json, request);
  json.Key("events");
  json.BeginArray();
  for (const EventList::Event& event : found.events) Event(json, event);
  json.EndArray();
  json.Field("next", found.next);
  json.Field("truncated", found.truncated);
  json.EndObject();
  return std::move(json).Take();
}

absl::StatusOr<std::string> EventMarksAnswer(QueryEngine& engine, const QueryRequest& request, const Params& params) {
  ASSIGN_OR_RETURN(const uint64_t limit, ParseNumber(params, "limit", kMarksDefault, 1, kMarksMax));
  ASSIGN_OR_RETURN(const EventMarks found, engine.QueryEventMarks(request, limit));
  JsonWriter json;
  json.BeginObject();
  Range(json, request);
  json.Key("marks");
  json.BeginArray();
  for (const EventMarks::Mark& mark : found.marks) Mark(json, mark);
  json.EndArray();
  json.Field("truncated", found.truncated);
  json.EndObject();
  return std::move(json).Take();
}

absl::StatusOr<std::string> EventProgramsAnswer(QueryEngine& engine, const QueryRequest& request,
                                                const Params& params) {
  ASSIGN_OR_RETURN(const EventProgramsRequest programs, ParsePrograms(params));
  ASSIGN_OR_RETURN(const EventPrograms found, engine.QueryEventPrograms(request, programs));
  JsonWriter json;
  json.BeginObject();
  Range(json, request);
  json.Field("run_max_ns", programs.run_max_ns);
  json.Key("programs");
  json.BeginArray();
  for (const EventPrograms::Program& program : found.programs) {
    json.BeginObject();
    json.Field("name", program.name);
    json.Field("executable", BaseName(program.executable_path));
    json.Field("executable_path", program.executable_path);
    json.Field("container", program.container);
    json.Field("pod", program.pod);
    json.Field("namespace", program.name_space);
    Use(json, program.use, found.ended_cpu_ns);
    json.EndObject();
  }
  json.EndArray();
  json.Key("others");
  json.BeginObject();
  json.Field("programs", found.other_programs);
  json.Field("ungrouped_processes", found.ungrouped);
  Use(json, found.others, found.ended_cpu_ns);
  json.EndObject();
  json.Key("total");
  json.BeginObject();
  Use(json, found.total, found.ended_cpu_ns);
  json.Field("ended_processes", found.ended_processes);
  json.Field("ended_cpu_ns", found.ended_cpu_ns);
  json.EndObject();
  json.Field("truncated", found.others.processes > 0);
  json.EndObject();
  return std::move(json).Take();
}

}  // namespace tributary
