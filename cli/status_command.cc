#include <fmt/format.h>

#include "base/log.h"
#include "base/status.h"
#include "cli/commands.h"
#include "cli/json_reader.h"
#include "cli/text.h"

namespace tributary::cli {
namespace {

std::string LostText(const Totals& totals) {
  if (totals.TotalLost() == 0) return "0";
  std::string reasons;
  for (const auto& [reason, count] : totals.lost) {
    if (count > 0)
      reasons += fmt::format("{}{} {}", reasons.empty() ? "" : ", ", EscapeForDisplay(reason), FormatCount(count));
  }
  return fmt::format("{} ({})", FormatCount(totals.TotalLost()), reasons);
}

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

}  // namespace

std::string WriteStatus(const StatusAnswer& status) {
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
  out += fmt::format("\nstacks: {}\n", HealthText(status.stack_health));
  if (status.nodes.size() > 1) {
    for (const StatusAnswer::Node& node : status.nodes) {
      out += fmt::format("  {}: {}\n", EscapeForDisplay(node.host), HealthText(node.stack_health));
    }
  }
  out += fmt::format("reducer {}: up {}, CPU {:.1f} s, memory {}, disk {}, {} shards, {} symbol tables\n",
                     EscapeForDisplay(status.version), FormatNs(status.uptime_s * 1'000'000'000),
                     status.reducer_cpu_seconds, FormatBytes(status.reducer_rss_bytes),
                     FormatBytes(status.reducer_disk_bytes), status.shards, FormatCount(status.symbol_tables));
  return out;
}

absl::StatusOr<int> RunStatus(const StatusOptions& options) {
  ASSIGN_OR_RETURN(std::string json, HttpClient(options.server).Get("/api/v1/status"));
  // Read in either case: an answer of another kind is an error, not output.
  ASSIGN_OR_RETURN(StatusAnswer status, ParseStatus(json));
  if (options.json && !json.ends_with('\n')) json += '\n';
  RETURN_IF_ERROR(WriteOutput("-", options.json ? json : WriteStatus(status)));
  return kExitOk;
}

}  // namespace tributary::cli
