#include "cli/json_fields.h"
#include "cli/json_reader.h"

namespace tributary::cli {
namespace {

EventProgramsAnswer::Use GetUse(const object& from) {
  return {.processes = GetNumber(from, "processes"),
          .failed = GetNumber(from, "failed"),
          .cpu_ns = GetNumber(from, "cpu_ns"),
          .run_ns = GetNumber(from, "run_ns"),
          .peak_rss_bytes = GetNumber(from, "peak_rss_bytes"),
          .share = GetReal(from, "share")};
}

}  // namespace

absl::StatusOr<EventsAnswer> ParseEvents(std::string_view json) {
  Document document;
  RETURN_IF_ERROR(document.Parse(json));
  const object& root = document.root;
  EventsAnswer answer{.from_ms = GetNumber(root, "from"),
                      .to_ms = GetNumber(root, "to"),
                      .next = GetString(root, "next"),
                      .truncated = GetBool(root, "truncated")};
  RETURN_IF_ERROR(ForEachObject(root, "events", [&](const object& event) {
    answer.events.push_back({.at_ms = GetNumber(event, "at"),
                             .kind = GetString(event, "kind"),
                             .host = GetString(event, "host"),
                             .node_id = GetString(event, "node_id"),
                             .pid = GetSigned(event, "pid"),
                             .name = GetString(event, "name"),
                             .executable = GetString(event, "executable"),
                             .executable_path = GetString(event, "executable_path"),
                             .container_id = GetString(event, "container_id"),
                             .container = GetString(event, "container"),
                             .pod = GetString(event, "pod"),
                             .name_space = GetString(event, "namespace"),
                             .unit = GetString(event, "unit"),
                             .exit_code = GetNumber(event, "exit_code"),
                             .signal = GetNumber(event, "signal"),
                             .signal_name = GetString(event, "signal_name"),
                             .core_dumped = GetBool(event, "core_dumped"),
                             .oom_killed = GetBool(event, "oom_killed"),
                             .run_ns = GetNumber(event, "run_ns"),
                             .cpu_ns = GetNumber(event, "cpu_ns"),
                             .peak_rss_bytes = GetNumber(event, "peak_rss_bytes"),
                             .processes = GetNumber(event, "processes")});
  }));
  return answer;
}

absl::StatusOr<EventProgramsAnswer> ParseEventPrograms(std::string_view json) {
  Document document;
  RETURN_IF_ERROR(document.Parse(json));
  const object& root = document.root;
  EventProgramsAnswer answer;
  object others, total;
  if (root.at_key("total").get(total) != simdjson::SUCCESS) return Bad("no total");
  answer.total = GetUse(total);
  if (root.at_key("others").get(others) == simdjson::SUCCESS) answer.others = GetUse(others);
  RETURN_IF_ERROR(ForEachObject(root, "programs", [&](const object& program) {
    answer.programs.push_back({.name = GetString(program, "name"),
                               .executable = GetString(program, "executable"),
                               .executable_path = GetString(program, "executable_path"),
                               .container = GetString(program, "container"),
                               .pod = GetString(program, "pod"),
                               .name_space = GetString(program, "namespace"),
                               .use = GetUse(program)});
  }));
  return answer;
}

}  // namespace tributary::cli
