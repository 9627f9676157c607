#include "reducer/web/rollouts.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "base/json.h"
#include "base/status.h"
#include "reducer/web/unit_json.h"

namespace tributary {
namespace {

// Maximum number of workloads that are distinguished for one selector.
constexpr size_t kWorkloadsMax = 10'000;

using Workload = std::tuple<std::string, std::string, std::string>;  // kind, namespace, name
using Workloads = absl::flat_hash_set<Workload>;

std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

absl::StatusOr<Workloads> SelectedWorkloads(QueryEngine& engine, const QueryRequest& query) {
  ASSIGN_OR_RETURN(const SeriesList series, engine.QuerySeries(query, kWorkloadsMax));
  Workloads workloads;
  for (const SeriesList::Named& workload : series.workloads) {
    workloads.emplace(workload.kind, workload.name_space, workload.name);
  }
  for (const SeriesList::Named& service : series.services) {
    workloads.emplace(kServiceKind, service.name_space, service.name);
  }
  return workloads;
}

std::string_view EnvironmentOf(const Rollout& rollout) {
  return rollout.kind == kServiceKind ? FindAttribute(rollout.attributes, "deployment.environment.name") : "";
}

// Checks the environment of a service, because services of two environments may have the same name.
bool IsInEnvironment(const Rollout& rollout, const Selector& selector) {
  return rollout.kind != kServiceKind ||
         std::all_of(selector.matchers().begin(), selector.matchers().end(), [&](const Selector::Matcher& matcher) {
           return matcher.label != "deployment_environment_name" || matcher.Holds(EnvironmentOf(rollout));
         });
}

std::string SelectorOf(const Rollout& rollout) {
  if (rollout.kind == kServiceKind) {
    return fmt::format("{{service_namespace={},service_name={},deployment_environment_name={}}}",
                       Quoted(rollout.name_space), Quoted(rollout.name), Quoted(EnvironmentOf(rollout)));
  }
  return fmt::format("{{k8s_namespace_name={},k8s_{}_name={}}}", Quoted(rollout.name_space), rollout.kind,
                     Quoted(rollout.name));
}

struct Use {
  store::TimeRange range;
  uint64_t cpu_ns = 0, count = 0;
};

absl::StatusOr<Use> UseOf(QueryEngine& engine, const QueryRequest& query, const Rollout& rollout,
                          store::TimeRange range) {
  Use use{.range = range};
  if (range.from >= range.to) return use;
  QueryRequest request = query;
  request.range = range;
  ASSIGN_OR_RETURN(request.selector, Selector::Parse(SelectorOf(rollout)));
  ASSIGN_OR_RETURN(const Timeline timeline, engine.QueryTimeline(request, 1));
  use.cpu_ns = std::accumulate(timeline.values.begin(), timeline.values.end(), uint64_t{0});
  use.count = std::accumulate(timeline.counts.begin(), timeline.counts.end(), uint64_t{0});
  return use;
}

void WriteUse(JsonWriter& json, std::string_view key, const Use& use) {
  json.Key(key);
  json.BeginObject();
  json.Field("from", use.range.from.value / kNsPerMs);
  json.Field("to", std::max(use.range.from.value, use.range.to.value) / kNsPerMs);
  json.Field("cpu_ns", use.cpu_ns);
  json.Field("count", use.count);
  json.EndObject();
}

void WriteVersion(JsonWriter& json, const Attributes& attributes, std::string_view prefix, std::string_view version) {
  json.Field("hash", FindAttribute(attributes, fmt::format("{}.hash", prefix)));
  json.Field("images", FindAttribute(attributes, fmt::format("{}.images", prefix)));
  json.Field("version", FindAttribute(attributes, version));
}

absl::Status WriteRollout(JsonWriter& json, QueryEngine& engine, const QueryRequest& query, const Rollout& rollout,
                          bool with_cpu, UnixNs now) {
  json.BeginObject();
  json.Field("at", rollout.at.value / kNsPerMs);
  json.Field("cluster", rollout.cluster);
  json.Field("kind", rollout.kind);
  json.Field("namespace", rollout.name_space);
  json.Field("name", rollout.name);
  json.Field("environment", EnvironmentOf(rollout));
  json.Field("executable", FindAttribute(rollout.attributes, "process.executable.name"));
  WriteVersion(json, rollout.attributes, "rollout", "service.version");
  json.Key("previous");
  json.BeginObject();
  WriteVersion(json, rollout.attributes, "rollout.previous", "rollout.previous.service.version");
  json.EndObject();
  if (with_cpu) {
    const UnixNs begin{rollout.at.value - kRolloutWindowNs};
    const UnixNs end{std::min(rollout.at.value + kRolloutWindowNs, now.value)};
    ASSIGN_OR_RETURN(const Use before, UseOf(engine, query, rollout, {begin, rollout.at}));
    ASSIGN_OR_RETURN(const Use after, UseOf(engine, query, rollout, {rollout.at, end}));
    WriteUse(json, "before", before);
    WriteUse(json, "after", after);
  }
  json.EndObject();
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> RolloutsJson(QueryEngine& engine, const RolloutLog* log, const QueryRequest& query,
                                         const RolloutsRequest& request, UnixNs now) {
  std::optional<Workloads> selected;
  if (!query.selector.matchers().empty()) {
    ASSIGN_OR_RETURN(selected, SelectedWorkloads(engine, query));
  }
  auto is_selected = [&](const Rollout& rollout) {
    return !selected || (selected->contains(Workload(rollout.kind, rollout.name_space, rollout.name)) &&
                         IsInEnvironment(rollout, query.selector));
  };
  std::vector<Rollout> rollouts;
  if (log != nullptr) rollouts = log->List(query.range, request.limit + 1, is_selected);
  JsonWriter json;
  json.BeginObject();
  json.Field("from", query.range.from.value / kNsPerMs);
  json.Field("to", query.range.to.value / kNsPerMs);
  if (request.with_cpu) {
    ASSIGN_OR_RETURN(const SampleTypeInfo type, engine.FindType(query));
    json.Field("type", type.name);
    WriteUnit(json, type);
  }
  json.Key("rollouts");
  json.BeginArray();
  for (size_t i = 0; i < std::min(rollouts.size(), request.limit); ++i) {
    RETURN_IF_ERROR(WriteRollout(json, engine, query, rollouts[i], request.with_cpu, now));
  }
  json.EndArray();
  json.Field("truncated", rollouts.size() > request.limit);
  json.EndObject();
  return std::move(json).Take();
}

}  // namespace tributary
