#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/log.h"
#include "base/status.h"
#include "cli/commands.h"
#include "cli/http_client.h"
#include "cli/json_reader.h"
#include "cli/output.h"
#include "cli/server_client.h"
#include "cli/text.h"

namespace tributary::cli {
namespace {

std::string LostText(const Totals& totals) {
  const std::string opted_out =
      totals.OptedOut() == 0 ? "" : fmt::format("; opted out: {}", FormatCount(totals.OptedOut()));
  if (totals.TotalLost() == 0) return "0" + opted_out;
  std::string reasons;
  for (const auto& [reason, count] : totals.lost) {
    if (count > 0 && reason != kOptedOut)
      reasons += fmt::format("{}{} {}", reasons.empty() ? "" : ", ", EscapeForDisplay(reason), FormatCount(count));
  }
  return fmt::format("{} ({}){}", FormatCount(totals.TotalLost()), reasons, opted_out);
}

constexpr size_t kExecutablesShown = 5;
constexpr size_t kNameLettersMax = 60;
constexpr size_t kReasonLettersMax = 160;

std::string HealthText(const Counts& health) {
  uint64_t all = 0;
  for (const auto& [ending, count] : health) all += count;
  std::string text;
  for (const auto& [ending, count] : health) {
    if (count > 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", EscapeForDisplay(ending), FormatPercent(count, all));
  }
  return text.empty() ? "no stacks yet" : text;
}

std::string Joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += (all.empty() ? "" : ", ") + EscapeForDisplay(text);
  return CutToWidth(all, kNameLettersMax);
}

std::string CountsText(const Counts& counts) {
  std::string text;
  for (const auto& [name, count] : counts) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", EscapeForDisplay(name), FormatCount(count));
  }
  return text;
}

std::string RecentHealthText(const absl::StatusOr<StackHealthAnswer>& recent) {
  if (!recent.ok()) return fmt::format("last 5 minutes: {}\n", Message(recent.status()));
  std::string out = "last 5 minutes: ";
  if (recent->complete_share) {
    // Rounded down: 100.00% means that all stacks are complete.
    out +=
        fmt::format("{:.2f}% complete (without kernel_only stacks); ", std::floor(*recent->complete_share * 1e4) / 1e2);
  }
  if (recent->samples > 0) out += fmt::format("{} samples: ", FormatCount(recent->samples));
  out += HealthText(recent->endings) + '\n';
  if (recent->executables.empty()) return out;
  std::vector<std::vector<std::string>> rows;
  const size_t shown = std::min(recent->executables.size(), kExecutablesShown);
  for (size_t i = 0; i < shown; ++i) {
    const StackHealthAnswer::Executable& executable = recent->executables[i];
    rows.push_back({FormatCount(executable.samples), FormatPercent(executable.samples, recent->samples),
                    CutToWidth(EscapeForDisplay(executable.name), kNameLettersMax), CountsText(executable.endings),
                    Joined(executable.programs)});
  }
  out += "\nincomplete stacks, by the executable in which the stack walk stopped\n";
  out += WriteTable({"SAMPLES", "SHARE", "EXECUTABLE", "WHY", "IN"}, {true, true, false, false, false}, rows);
  const uint64_t more = recent->executables.size() - shown + recent->truncated_executables;
  if (more > 0)
    out += fmt::format("and {} more executables: see Stack health on the reducer's web page\n", FormatCount(more));
  return out;
}

// Returns a table of the sample types; "" if all samples are of type cpu.
std::string TypesText(const std::vector<TypeTotals>& types) {
  if (types.empty()) return "";
  std::vector<std::vector<std::string>> rows;
  for (const TypeTotals& type : types) {
    rows.push_back({CutToWidth(EscapeForDisplay(type.name), kNameLettersMax),
                    CutToWidth(EscapeForDisplay(type.unit), kNameLettersMax), FormatCount(type.totals.captured),
                    FormatCount(type.totals.stored), FormatCount(type.totals.in_flight), LostText(type.totals)});
  }
  return '\n' + WriteTable({"SAMPLE TYPE", "UNIT", "CAPTURED", "STORED", "IN FLIGHT", "LOST"},
                           {false, false, true, true, true, false}, rows);
}

// Returns a line for the process events; "" if there are none.
std::string EventsText(const Totals& events) {
  if (events.captured == 0 && events.stored == 0 && events.TotalLost() == 0 && events.OptedOut() == 0) return "";
  return fmt::format("\nprocess events: captured {}, stored {}, in flight {}, lost {}\n", FormatCount(events.captured),
                     FormatCount(events.stored), FormatCount(events.in_flight), LostText(events));
}

// The watchers of Kubernetes clusters.
std::string ClustersText(const std::vector<StatusAnswer::Cluster>& clusters) {
  if (clusters.empty()) return "";
  std::vector<std::vector<std::string>> rows;
  for (const StatusAnswer::Cluster& cluster : clusters) {
    rows.push_back(
        {EscapeForDisplay(cluster.id), cluster.connected ? "connected" : "gone", FormatCount(cluster.entities),
         cluster.last_update_ms == 0 ? "none since the reducer started" : FormatTime(cluster.last_update_ms)});
  }
  return '\n' + WriteTable({"CLUSTER", "STATE", "ENTITIES", "LAST UPDATE"}, {false, false, true, false}, rows);
}

// What the reducer refused, cut or delayed, by node.
std::string RefusalsText(const StatusAnswer& status) {
  if (status.refusals.empty()) return "";
  std::vector<std::vector<std::string>> rows;
  for (const StatusAnswer::Refusal& refusal : status.refusals) {
    std::string_view name = refusal.node;
    for (const StatusAnswer::Node& node : status.nodes) {
      if (node.id == refusal.node && !node.host.empty()) name = node.host;
    }
    rows.push_back({CutToWidth(EscapeForDisplay(name), kNameLettersMax), EscapeForDisplay(refusal.reason),
                    FormatCount(refusal.amount)});
  }
  return "\nrefused, cut or delayed since the reducer started (docs/limits.md explains the reasons)\n" +
         WriteTable({"NODE", "REASON", "AMOUNT"}, {false, false, true}, rows);
}

// Damaged data of the store.
std::string DamageText(const StatusAnswer& status) {
  if (status.damage.empty()) return "";
  std::vector<std::vector<std::string>> rows;
  for (const StatusAnswer::Damage& damage : status.damage) {
    rows.push_back({FormatCount(damage.shard), EscapeForDisplay(damage.kind), FormatCount(damage.count),
                    CutToWidth(EscapeForDisplay(damage.reason), kReasonLettersMax)});
  }
  return "\ndamaged data (run 'tributary check' on the reducer's data directory; docs/store.md explains what "
         "happens)\n" +
         WriteTable({"SHARD", "KIND", "COUNT", "FIRST REASON"}, {true, false, true, false}, rows);
}

// Joins two objects: the second becomes member `key` of the first.
std::string WithMember(std::string json, std::string_view key, std::string_view member) {
  const size_t end = json.find_last_of('}');
  if (end == std::string::npos) return json;
  json.insert(end, fmt::format(",\"{}\":{}", key, member));
  return json;
}

}  // namespace

std::string WriteStatus(const StatusAnswer& status, const absl::StatusOr<StackHealthAnswer>& recent) {
  std::vector<std::vector<std::string>> rows;
  uint64_t wire_bytes = 0;
  for (const StatusAnswer::Node& node : status.nodes) {
    wire_bytes += node.wire_bytes;
    rows.push_back({EscapeForDisplay(node.host.empty() ? node.id : node.host), node.connected ? "connected" : "gone",
                    fmt::format("{} Hz x {}", node.sample_rate_hz, node.cpus), FormatCount(node.totals.captured),
                    FormatCount(node.totals.stored), FormatCount(node.totals.in_flight), LostText(node.totals),
                    FormatBytes(node.wire_bytes)});
  }
  rows.push_back({"total", "", "", FormatCount(status.total.captured), FormatCount(status.total.stored),
                  FormatCount(status.total.in_flight), LostText(status.total), FormatBytes(wire_bytes)});
  std::string out = WriteTable({"NODE", "STATE", "RATE", "CAPTURED", "STORED", "IN FLIGHT", "LOST", "WIRE"},
                               {false, false, true, true, true, true, false, false}, rows);
  out += TypesText(status.types);
  out += EventsText(status.process_events);
  out += ClustersText(status.clusters);
  out += RefusalsText(status);
  out += DamageText(status);
  out += fmt::format("\nstacks: {}\n", HealthText(status.stack_health));
  if (status.nodes.size() > 1) {
    for (const StatusAnswer::Node& node : status.nodes) {
      out += fmt::format("  {}: {}\n", EscapeForDisplay(node.host), HealthText(node.stack_health));
    }
  }
  out += RecentHealthText(recent) + '\n';
  out += fmt::format("reducer {}: up {}, CPU {:.1f} s, memory {}, disk {}, {} shards, {} symbol tables\n",
                     EscapeForDisplay(status.version), FormatNs(status.uptime_s * 1'000'000'000),
                     status.reducer_cpu_seconds, FormatBytes(status.reducer_rss_bytes),
                     FormatBytes(status.reducer_disk_bytes), status.shards, FormatCount(status.symbol_tables));
  return out;
}

absl::StatusOr<int> RunStatus(const StatusOptions& options) {
  ASSIGN_OR_RETURN(const HttpClient client, MakeClient(options.server));
  ASSIGN_OR_RETURN(std::string json, client.Get("/api/v1/status"));
  // Parsed in both cases: an answer of another kind is an error, not output.
  ASSIGN_OR_RETURN(StatusAnswer status, ParseStatus(json));
  // A reducer that is too busy for this query, or that is older than the query, still has a status.
  absl::StatusOr<std::string> health_json = client.Get("/api/v1/stack-health", {{"from", "-5m"}, {"to", "now"}});
  absl::StatusOr<StackHealthAnswer> recent =
      health_json.ok() ? ParseStackHealth(*health_json) : absl::StatusOr<StackHealthAnswer>(health_json.status());
  if (options.json) {
    if (recent.ok()) json = WithMember(std::move(json), "recent_stack_health", *health_json);
    if (!json.ends_with('\n')) json += '\n';
  }
  RETURN_IF_ERROR(WriteOutput("-", options.json ? json : WriteStatus(status, recent)));
  return kExitOk;
}

}  // namespace tributary::cli
