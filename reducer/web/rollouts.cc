#include "reducer/web/rollouts.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "base/json.h"
#include "base/status.h"
#include "reducer/metadata/rollout_fields.h"
#include "reducer/web/unit_json.h"

namespace tributary {
namespace {

// Maximum number of workloads that are distinguished for one selector.
constexpr size_t kWorkloadsMax = 10'000;

using Workload = std::tuple<std::string, std::string, std::string>;  // kind, namespace, name
using Workloads = absl::flat_hash_set<Workload>;

// The workloads and services with samples that the selector selects.
struct Selected {
  Workloads workloads;
  bool truncated = false;  // some are missing
};

absl::StatusOr<Selected> SelectedWorkloads(QueryEngine& engine, const QueryRequest& query) {
  ASSIGN_OR_RETURN(const SeriesList series, engine.QuerySeries(query, kWorkloadsMax + 1));
  Selected selected{.truncated = series.workloads.size() > kWorkloadsMax || series.services.size() > kWorkloadsMax};
  for (const SeriesList::Named& workload : series.workloads) {
    selected.workloads.emplace(workload.kind, workload.name_space, workload.name);
  }
  for (const SeriesList::Named& service : series.services) {
    selected.workloads.emplace(kServiceKind, service.name_space, service.name);
  }
  return selected;
}

// Checks the environment of a service, because services of two environments may have the same name.
bool IsInEnvironment(const Rollout& rollout, const Selector& selector) {
  return rollout.kind != kServiceKind ||
         std::all_of(selector.matchers().begin(), selector.matchers().end(), [&](const Selector::Matcher& matcher) {
           return matcher.label != "deployment_environment_name" || matcher.Holds(EnvironmentOf(rollout));
         });
}

struct Use {
  store::TimeRange range;
  WorkloadUse sum;
};
// The periods before and after a rollout.
struct Uses {
  Use before, after;
};

// Returns the uses of all rollouts. One query reads the samples of all their periods.
absl::StatusOr<std::vector<Uses>> UsesOf(QueryEngine& engine, const QueryRequest& query,
                                         std::span<const Rollout> rollouts, UnixNs now) {
  std::vector<WorkloadWindow> windows;
  QueryRequest request = query;
  request.selector = Selector();
  for (const Rollout& rollout : rollouts) {
    const WorkloadKey workload{rollout.kind, rollout.name_space, rollout.name, std::string(EnvironmentOf(rollout))};
    const UnixNs begin = std::max(kQueryTimes.from, UnixNs{rollout.at.value - kRolloutWindowNs});
    const UnixNs end = std::min({UnixNs{rollout.at.value + kRolloutWindowNs}, now, kQueryTimes.to});
    windows.push_back({workload, {begin, rollout.at}});
    windows.push_back({workload, {rollout.at, std::max(end, rollout.at)}});
    request.range.from = std::min(request.range.from, begin);
    request.range.to = std::max(request.range.to, end);
  }
  ASSIGN_OR_RETURN(const std::vector<WorkloadUse> found, engine.QueryWorkloadUse(request, windows));
  std::vector<Uses> uses;
  for (size_t i = 0; i < windows.size(); i += 2) {
    uses.push_back({{windows[i].range, found[i]}, {windows[i + 1].range, found[i + 1]}});
  }
  return uses;
}

void WriteUse(JsonWriter& json, std::string_view key, const Use& use) {
  json.Key(key);
  json.BeginObject();
  json.Field("from", use.range.from.value / kNsPerMs);
  json.Field("to", use.range.to.value / kNsPerMs);
  json.Field("cpu_ns", use.sum.value);
  json.Field("count", use.sum.count);
  json.EndObject();
}

void WriteVersion(JsonWriter& json, const RolloutVersion& version) {
  json.Field("hash", version.hash);
  json.Field("images", version.images);
  json.Field("version", version.version);
}

void WriteRollout(JsonWriter& json, const Rollout& rollout, const Uses* uses) {
  json.BeginObject();
  json.Field("at", rollout.at.value / kNsPerMs);
  json.Field("cluster", rollout.cluster);
  json.Field("kind", rollout.kind);
  json.Field("namespace", rollout.name_space);
  json.Field("name", rollout.name);
  json.Field("environment", EnvironmentOf(rollout));
  json.Field("executable", ExecutableOf(rollout));
  WriteVersion(json, VersionOf(rollout));
  json.Key("previous");
  json.BeginObject();
  WriteVersion(json, PreviousVersionOf(rollout));
  json.EndObject();
  if (uses != nullptr) {
    WriteUse(json, "before", uses->before);
    WriteUse(json, "after", uses->after);
  }
  json.EndObject();
}

}  // namespace

absl::StatusOr<std::string> RolloutsJson(QueryEngine& engine, const RolloutLog* log, const QueryRequest& query,
                                         const RolloutsRequest& request, UnixNs now) {
  std::optional<Selected> selected;
  if (!query.selector.matchers().empty()) {
    ASSIGN_OR_RETURN(selected, SelectedWorkloads(engine, query));
  }
  auto is_selected = [&](const Rollout& rollout) {
    return !selected || (selected->workloads.contains(Workload(rollout.kind, rollout.name_space, rollout.name)) &&
                         IsInEnvironment(rollout, query.selector));
  };
  std::vector<Rollout> rollouts;
  if (log != nullptr) rollouts = log->List(query.range, request.limit + 1, is_selected);
  const bool truncated = rollouts.size() > request.limit || (selected && selected->truncated);
  rollouts.resize(std::min(rollouts.size(), request.limit));
  std::vector<Uses> uses;
  if (request.with_cpu && !rollouts.empty()) {
    ASSIGN_OR_RETURN(uses, UsesOf(engine, query, rollouts, now));
  }
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
  for (size_t i = 0; i < rollouts.size(); ++i) {
    WriteRollout(json, rollouts[i], request.with_cpu ? &uses[i] : nullptr);
  }
  json.EndArray();
  json.Field("truncated", truncated);
  json.EndObject();
  return std::move(json).Take();
}

}  // namespace tributary
