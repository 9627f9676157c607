#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/log.h"
#include "base/status.h"
#include "cli/commands.h"
#include "cli/http_client.h"
#include "cli/json_reader.h"
#include "cli/output.h"
#include "cli/query_parameters.h"
#include "cli/server_client.h"
#include "cli/text.h"

namespace tributary::cli {
namespace {

constexpr size_t kChangeLettersMax = 60;

// Returns "a → b", or only "b" if both are equal.
std::string ChangeOf(const std::string& before, const std::string& now) {
  if (before == now) return EscapeForDisplay(now);
  return CutToWidth(fmt::format("{} → {}", before.empty() ? "?" : EscapeForDisplay(before),
                                now.empty() ? "?" : EscapeForDisplay(now)),
                    kChangeLettersMax);
}

// "shop service checkout (prod)"
std::string WorkloadOf(const RolloutsAnswer::Rollout& rollout) {
  std::string text = rollout.name_space.empty() ? "" : rollout.name_space + ' ';
  text += fmt::format("{} {}", rollout.kind, rollout.name);
  if (!rollout.environment.empty()) text += fmt::format(" ({})", rollout.environment);
  return EscapeForDisplay(text);
}

// Returns what changed: the images. If the images are the same, the hash of a template, a digest or a build-id is the
// only information.
std::string SummaryOf(const RolloutsAnswer::Rollout& rollout) {
  const RolloutsAnswer::Version &now = rollout.now, &previous = rollout.previous;
  const bool is_program = now.images.empty() && previous.images.empty();
  const std::string summary = is_program ? EscapeForDisplay(rollout.executable) : ChangeOf(previous.images, now.images);
  if (now.images != previous.images || now.hash == previous.hash) return summary;
  return fmt::format("{}{}({})", summary, summary.empty() ? "" : " ", ChangeOf(previous.hash, now.hash));
}

// Returns the rate per second in the unit of the answer; for a gauge, the value.
std::optional<double> RateOf(const RolloutsAnswer::Use& use, const Measure& measure) {
  if (use.to_ms <= use.from_ms) return std::nullopt;
  if (measure.is_gauge) return static_cast<double>(use.value);
  return static_cast<double>(use.value) / (static_cast<double>(use.to_ms - use.from_ms) / 1e3);
}

std::string WriteRate(std::optional<double> rate, const Measure& measure) {
  return rate ? FormatRate(*rate, measure) : "-";
}

std::string WriteChange(std::optional<double> before, std::optional<double> after) {
  if (!before || !after || *before <= 0) return "-";
  return fmt::format("{:+.1f}%", (*after / *before - 1) * 100);
}

}  // namespace

std::string WriteRollouts(const RolloutsAnswer& answer) {
  if (answer.rollouts.empty()) {
    return "no selected workload or service changed its version in this time range (docs/rollouts.md says which "
           "changes are shown)\n";
  }
  std::vector<std::vector<std::string>> rows;
  for (const RolloutsAnswer::Rollout& rollout : answer.rollouts) {
    const std::optional<double> before = RateOf(rollout.before, answer.measure),
                                after = RateOf(rollout.after, answer.measure);
    rows.push_back({FormatTime(rollout.at_ms), WorkloadOf(rollout), SummaryOf(rollout),
                    ChangeOf(rollout.previous.version, rollout.now.version), WriteRate(before, answer.measure),
                    WriteRate(after, answer.measure), WriteChange(before, after)});
  }
  std::string out = WriteTable({"TIME", "WORKLOAD", "WHAT", "VERSION",
                                answer.measure.IsCpuTime() ? "CORES BEFORE" : "BEFORE", "AFTER", "CHANGE"},
                               {false, false, false, false, true, true, true}, rows);
  if (answer.truncated) out += "\nnot all rollouts are shown: raise --limit, or give a shorter time range\n";
  return out;
}

absl::StatusOr<int> RunRollouts(const RolloutsOptions& options) {
  HttpClient::Parameters parameters = QueryParameters(options.query);
  parameters.emplace_back("limit", fmt::format("{}", options.limit));
  parameters.emplace_back("cpu", "1");
  ASSIGN_OR_RETURN(const HttpClient client, MakeClient(options.query.server));
  ASSIGN_OR_RETURN(std::string json, client.Get("/api/v1/rollouts", parameters));
  ASSIGN_OR_RETURN(const RolloutsAnswer rollouts, ParseRollouts(json));
  if (options.json && !json.ends_with('\n')) json += '\n';
  RETURN_IF_ERROR(WriteOutput("-", options.json ? json : WriteRollouts(rollouts)));
  return kExitOk;
}

}  // namespace tributary::cli
