#include "kernel-collector/distribution/profiler_options.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "kernel-collector/distribution/comma_list.h"
#include "kernel-collector/distribution/config.h"
#include "kernel-collector/distribution/flag_file.h"
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

// Returns true for a message about a place in the file.
bool IsOfFile(std::string_view message) { return message.starts_with("line "); }

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

void ProfilerOptionTable::AddTo(Options& table, const Options::Environment& environment) {
  table_ = &table;
  environment_ = &environment;
  table.Add(
      {.name = "tracers",
       .help = "languages whose stacks are walked, as for the OpenTelemetry eBPF profiler: all, or names separated "
               "by commas; sets --runtimes; native and Go code is always sampled; a warning names the languages that "
               "do not exist here yet (docs/migrate.md)",
       .value_name = "NAME,NAME",
       .flag_aliases = {"t"},
       .env_aliases = {"OTEL_PROFILING_AGENT_TRACERS"},
       .check = CheckTracers},
      &tracers_, "");
  table.Add({.name = "collection-agent",
             .help = "receiver of OTLP, as for the OpenTelemetry eBPF profiler: the same as --intake-encoder "
                     "otlp_profiles --intake-host HOST:PORT --tls; has no effect if --intake-host, --intake-port or "
                     "another encoder is given",
             .value_name = "HOST:PORT",
             .env_aliases = {"OTEL_PROFILING_AGENT_COLLECTION_AGENT"},
             .check = [](std::string_view v) { return v.empty() ? absl::OkStatus() : ParseAgent(v, true).status(); },
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
  table.SetForeignReader([this](std::string_view text) { return ReadFile(text); });
  table.SetDeriver([this] { return Derive(); });
}

absl::StatusOr<std::optional<std::vector<Options::ForeignValue>>> ProfilerOptionTable::ReadFile(std::string_view text) {
  ASSIGN_OR_RETURN(std::optional<DistributionConfig> flags, ReadFlagFile(text));
  if (flags) {
    file_ = *std::move(flags);
    return std::move(file_.values);
  }
  absl::StatusOr<YamlNode> root = ParseYaml(text);
  if (!root.ok() || !IsDistributionConfig(*root)) return std::nullopt;
  ASSIGN_OR_RETURN(file_, ReadDistributionConfig(*std::move(root), *environment_));
  return std::move(file_.values);
}

absl::StatusOr<std::vector<Options::ForeignValue>> ProfilerOptionTable::Derive() {
  DestinationRequest request;
  request.agent = collection_agent_;
  request.agent_is_plain = disable_tls_;
  request.exporters = std::move(file_.exporters);
  for (const std::string_view name : {"intake-port", "intake-host"}) {
    if (table_->IsGiven(name)) request.host_option = fmt::format("--{}", name);
  }
  request.encoder = table_->GivenText("intake-encoder");
  absl::StatusOr<Destination> destination = ChooseDestination(request);
  if (!destination.ok()) return WithContext(destination.status(), "--config");
  destination_ = *std::move(destination);
  for (Options::ForeignValue& value : destination_.values) {
    if (IsOfFile(value.source)) value.source = "--config: " + value.source;
  }
  std::vector<Options::ForeignValue> values = std::move(destination_.values);
  if (!tracers_.empty()) values.push_back({"runtimes", RuntimesOfTracers(tracers_), "--tracers"});
  return values;
}

std::vector<std::string> ProfilerOptionTable::TakeWarnings() {
  std::vector<std::string> warnings = std::move(file_.warnings);
  for (std::string& warning : destination_.warnings) warnings.push_back(std::move(warning));
  for (std::string& warning : warnings) {
    if (IsOfFile(warning)) warning = "--config: " + warning;
  }
  const bool from_interpreters = file_.interpreters && tracers_ == file_.interpreters->tracers;
  const std::string missing = MissingTracers(from_interpreters ? file_.interpreters->named : tracers_);
  if (!missing.empty()) {
    warnings.push_back("--tracers: " + missing);
  }
  if (collection_agent_.empty() && disable_tls_) {
    warnings.push_back("--disable-tls: has no effect without --collection-agent; --tls is off if unset");
  }
  for (const std::string& gate : OtherGates(feature_gates_)) {
    warnings.push_back(fmt::format("--feature-gates: {} has no effect here", EscapeForDisplay(gate)));
  }
  return warnings;
}

}  // namespace tributary
