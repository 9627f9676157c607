#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <optional>

#include "base/log.h"
#include "base/status.h"
#include "cli/commands.h"
#include "cli/event_follower.h"
#include "cli/http_client.h"
#include "cli/json_reader.h"
#include "cli/output.h"
#include "cli/query_parameters.h"
#include "cli/server_client.h"
#include "cli/signal_inbox.h"
#include "cli/text.h"

namespace tributary::cli {
namespace {

constexpr size_t kProgramLettersMax = 60, kPlaceLettersMax = 50, kIdLettersMax = 12;
constexpr uint32_t kProgramsMax = 1'000;  // of one answer
constexpr int kPollMs = 1'000;
constexpr size_t kCommBytes = 15;  // the kernel cuts the names of processes

// Returns the path, and the name if it is not the name of the file: "/usr/bin/python3 (gunicorn)".
std::string ProgramOf(const std::string& name, const std::string& executable, const std::string& path) {
  std::string text = path.empty() ? name : path;
  const bool is_file_name = name.size() < kCommBytes ? name == executable : executable.starts_with(name);
  if (!path.empty() && !name.empty() && !is_file_name) text += fmt::format(" ({})", name);
  return CutToWidth(EscapeForDisplay(text), kProgramLettersMax);
}

// "shop/web-1 nginx", "nginx.service", or the start of the container's id.
std::string PlaceOf(const EventsAnswer::Event& event) {
  std::string text = event.pod.empty() ? "" : fmt::format("{}/{} ", event.name_space, event.pod);
  text += !event.container.empty() ? event.container : event.container_id.substr(0, kIdLettersMax);
  if (text.empty()) text = event.unit;
  return CutToWidth(EscapeForDisplay(text), kPlaceLettersMax);
}

bool HasEnd(const EventsAnswer::Event& event) { return event.kind == "exit" || event.kind == "sum"; }

std::string EndOf(const EventsAnswer::Event& event) {
  if (event.kind == "end_unknown") return "unknown";
  if (!HasEnd(event)) return "";
  if (event.oom_killed) return "OOM";
  if (event.signal == 0) return fmt::format("exit {}", event.exit_code);
  return EscapeForDisplay(event.signal_name) + (event.core_dumped ? " (core dumped)" : "");
}

std::string KindOf(const EventsAnswer::Event& event) {
  if (event.kind == "sum") return fmt::format("sum of {}", FormatCount(event.processes));
  return EscapeForDisplay(event.kind);
}

Table MakeEventTable() {
  return {{"TIME", "NODE", "PID", "KIND", "PROGRAM", "CONTAINER", "ENDED", "RUN TIME", "CPU", "MEMORY"},
          {false, false, true, false, false, false, false, true, true, true}};
}

std::vector<std::vector<std::string>> EventRows(const EventsAnswer& answer) {
  std::vector<std::vector<std::string>> rows;
  for (const EventsAnswer::Event& event : answer.events) {
    const bool has_end = HasEnd(event);
    rows.push_back({FormatTime(event.at_ms), EscapeForDisplay(event.host.empty() ? event.node_id : event.host),
                    event.pid == 0 ? "" : fmt::format("{}", event.pid), KindOf(event),
                    ProgramOf(event.name, event.executable, event.executable_path), PlaceOf(event), EndOf(event),
                    has_end && event.run_ns > 0 ? FormatNs(event.run_ns) : "", has_end ? FormatNs(event.cpu_ns) : "",
                    has_end ? FormatBytes(event.peak_rss_bytes) : ""});
  }
  return rows;
}

std::vector<std::string> ProgramRow(const std::string& program, const std::string& place,
                                    const EventProgramsAnswer::Use& use) {
  return {FormatCount(use.processes),
          FormatCount(use.failed),
          FormatNs(use.cpu_ns),
          fmt::format("{:.2f}%", std::clamp(use.share, 0.0, 1.0) * 100),
          use.processes == 0 ? "-" : FormatNs(use.run_ns / use.processes),
          FormatBytes(use.peak_rss_bytes),
          program,
          place};
}

std::string WithNewline(std::string json) {
  if (!json.ends_with('\n')) json += '\n';
  return json;
}

absl::StatusOr<int> Follow(const EventsOptions& options) {
  ASSIGN_OR_RETURN(HttpClient client, MakeClient(options.query.server));
  SignalInbox signals;
  bool is_stopped = false;
  const auto stop_after = [&](int timeout_ms) {
    const std::optional<SignalInbox::Signal> signal = signals.Wait(timeout_ms);
    is_stopped |= signal && signal->number != SIGCHLD;
    return is_stopped;
  };
  client.CancelIf([&] { return stop_after(0); });
  Table table = MakeEventTable();
  const auto print = [&](std::string_view json) -> absl::Status {
    if (options.json) return WriteOutput("-", WithNewline(std::string(json)));
    ASSIGN_OR_RETURN(const EventsAnswer events, ParseEvents(json));
    return WriteOutput("-", table.Write(EventRows(events)));
  };
  EventFollower follower(options,
                         {.get = [&](const auto& parameters) { return client.Get("/api/v1/events", parameters); },
                          .print = print,
                          .report = [](std::string_view message) { fmt::print(stderr, "tributary: {}\n", message); }});
  do {
    const absl::Status polled = follower.Poll();
    if (!polled.ok() && !is_stopped) return polled;
  } while (!stop_after(kPollMs));
  return kExitOk;
}

absl::StatusOr<int> ShowPrograms(const EventsOptions& options) {
  HttpClient::Parameters parameters = SelectionParameters(options.query);
  parameters.emplace_back("limit", fmt::format("{}", std::min(options.limit, kProgramsMax)));
  ASSIGN_OR_RETURN(const HttpClient client, MakeClient(options.query.server));
  ASSIGN_OR_RETURN(std::string json, client.Get("/api/v1/events/programs", parameters));
  ASSIGN_OR_RETURN(const EventProgramsAnswer programs, ParseEventPrograms(json));
  RETURN_IF_ERROR(WriteOutput("-", options.json ? WithNewline(std::move(json)) : WriteEventPrograms(programs)));
  return kExitOk;
}

}  // namespace

std::string WriteEvents(const EventsAnswer& events) {
  if (events.events.empty()) return "no process events match\n";
  std::string out = MakeEventTable().Write(EventRows(events));
  if (events.truncated) out += "\nnot all events are shown: raise --limit, or give a shorter time range\n";
  return out;
}

std::string WriteEventPrograms(const EventProgramsAnswer& programs) {
  if (programs.total.processes == 0) return "no selected process ran for less than 10 s\n";
  std::vector<std::vector<std::string>> rows;
  for (const EventProgramsAnswer::Program& program : programs.programs) {
    std::string place = program.pod.empty() ? "" : fmt::format("{}/{} ", program.name_space, program.pod);
    place += program.container;
    rows.push_back(ProgramRow(ProgramOf(program.name, program.executable, program.executable_path),
                              CutToWidth(EscapeForDisplay(place), kPlaceLettersMax), program.use));
  }
  if (programs.others.processes > 0) rows.push_back(ProgramRow("others", "", programs.others));
  rows.push_back(ProgramRow("total", "", programs.total));
  return WriteTable({"PROCESSES", "FAILED", "CPU", "SHARE", "MEAN RUN TIME", "MEMORY", "PROGRAM", "CONTAINER"},
                    {true, true, true, true, true, true, false, false}, rows) +
         "\nSHARE is the share in the CPU time of all processes that ended in this time range\n";
}

absl::StatusOr<int> RunEvents(const EventsOptions& options) {
  if (options.programs) return ShowPrograms(options);
  if (options.follow) return Follow(options);
  HttpClient::Parameters parameters = SelectionParameters(options.query);
  parameters.emplace_back("limit", fmt::format("{}", options.limit));
  if (!options.kind.empty()) parameters.emplace_back("kind", options.kind);
  ASSIGN_OR_RETURN(const HttpClient client, MakeClient(options.query.server));
  ASSIGN_OR_RETURN(std::string json, client.Get("/api/v1/events", parameters));
  ASSIGN_OR_RETURN(const EventsAnswer events, ParseEvents(json));
  RETURN_IF_ERROR(WriteOutput("-", options.json ? WithNewline(std::move(json)) : WriteEvents(events)));
  return kExitOk;
}

}  // namespace tributary::cli
