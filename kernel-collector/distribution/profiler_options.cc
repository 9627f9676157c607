#include "kernel-collector/distribution/profiler_options.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "kernel-collector/distribution/comma_list.h"
#include "kernel-collector/distribution/config.h"
#include "kernel-collector/distribution/otlp_receiver.h"
#include "kernel-collector/distribution/tracers.h"

namespace tributary {
namespace {

// The gate without which the Collector has no pipelines of profiles. kernel-collector always has them.
constexpr std::string_view kProfilesGate = "service.profilesSupport";

// "GATE,+GATE,-GATE": a dash switches a gate off.
absl::Status CheckGates(std::string_view gates) {
  for (const std::string_view gate : CommaList(gates)) {
    if (gate.starts_with('-') && gate.substr(1) == kProfilesGate) {
      return Error(absl::StatusCode::kInvalidArgument,
                   "must not switch profiles off: kernel-collector has nothing else");
    }
  }
  return absl::OkStatus();
}

// Returns the gates of the list that have no meaning here, as written.
std::vector<std::string> OtherGates(const std::vector<std::string>& lists) {
  std::vector<std::string> others;
  for (const std::string& list : lists) {
    for (const std::string_view gate : CommaList(list)) {
      if (gate != kProfilesGate && gate.substr(1) != kProfilesGate) others.emplace_back(gate);
    }
  }
  return others;
}

}  // namespace

void ProfilerOptionTable::AddTo(Options& table) {
  table.Add(
      {.name = "tracers",
       .help = "languages whose stacks are walked, as for the OpenTelemetry eBPF profiler: all, or names separated "
               "by commas; native and Go code is always sampled; a warning names the languages that do not exist "
               "here yet (docs/migrate.md)",
       .value_name = "NAME,NAME",
       .flag_aliases = {"t"},
       .env_aliases = {"OTEL_PROFILING_AGENT_TRACERS"},
       .check = CheckTracers},
      &tracers_, "");
  table.Add({.name = "collection-agent",
             .help = "OTLP receiver, as for the OpenTelemetry eBPF profiler; kernel-collector sends to --intake-host "
                     "instead, and a warning says which options send to this receiver",
             .value_name = "HOST:PORT",
             .env_aliases = {"OTEL_PROFILING_AGENT_COLLECTION_AGENT"},
             .check = [](std::string_view v) { return v.empty() ? absl::OkStatus() : ExportOption(v, true).status(); },
             .secret = true},
            &collection_agent_, "");
  table.Add({.name = "disable-tls",
             .help = "the receiver of --collection-agent does not use TLS",
             .env_aliases = {"OTEL_PROFILING_AGENT_DISABLE_TLS"}},
            &disable_tls_, false);
  table.Add(
      {.name = "feature-gates",
       .help = "feature gates of the OpenTelemetry Collector: service.profilesSupport is always on, and a warning "
               "names all other gates",
       .value_name = "GATE,GATE",
       .check = CheckGates},
      &feature_gates_);
  table.SetForeignReader([this](const YamlNode& root) { return ReadFile(root); });
}

absl::StatusOr<std::optional<std::vector<Options::ForeignValue>>> ProfilerOptionTable::ReadFile(const YamlNode& root) {
  if (!IsDistributionConfig(root)) return std::nullopt;
  ASSIGN_OR_RETURN(DistributionConfig config, ReadDistributionConfig(root));
  file_warnings_ = std::move(config.warnings);
  interpreters_ = std::move(config.interpreters);
  return std::move(config.values);
}

absl::StatusOr<std::vector<std::string>> ProfilerOptionTable::TakeWarnings() {
  std::vector<std::string> warnings = std::move(file_warnings_);
  for (std::string& warning : warnings) warning = "--config: " + warning;
  const bool from_interpreters = interpreters_ && tracers_ == interpreters_->tracers;
  const std::string missing = MissingTracers(from_interpreters ? interpreters_->named : tracers_);
  if (!missing.empty()) {
    warnings.push_back("--tracers: " + missing);
  }
  if (!collection_agent_.empty()) {
    ASSIGN_OR_RETURN(const std::string option, ExportOption(collection_agent_, disable_tls_));
    warnings.push_back(fmt::format(
        "--collection-agent: kernel-collector sends its samples to --intake-host, by default to a reducer; start the "
        "reducer with {} to send them on, or send OTLP without a reducer: --intake-encoder otlp_profiles "
        "(docs/alone.md)",
        option));
  } else if (disable_tls_) {
    warnings.push_back(
        "--disable-tls: has no effect without --collection-agent; --tls is for reducers, and off if unset");
  }
  for (const std::string& gate : OtherGates(feature_gates_)) {
    warnings.push_back(fmt::format("--feature-gates: {} has no effect here", EscapeForDisplay(gate)));
  }
  return warnings;
}

}  // namespace tributary
