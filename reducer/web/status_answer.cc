#include "reducer/web/status_answer.h"

#include <utility>

#include "base/json.h"
#include "base/version.h"
#include "reducer/store/bounded_types.h"
#include "reducer/web/endings_json.h"
#include "reducer/web/unit_json.h"

namespace tributary {
namespace {

constexpr size_t kTypesOfTotalMax = 256;  // nodes run the same programs, and share their types

// Writes stored, lost and in_flight. `of` picks one number of a count: the samples of all types, the samples of one
// type, or the process events. in_flight is signed: more records stored than captured would be a bug, and must be
// visible.
template <typename Pick>
void Law(JsonWriter& json, const NamedAccounting& accounting, const NamedSampleCounts& stored, Pick&& of) {
  json.Field("stored", of(stored));
  json.Key("lost");
  json.BeginObject();
  uint64_t lost = 0;
  for (uint8_t i = 0; i < kLossReasonCount; ++i) {
    const uint64_t records = of(accounting.lost[i]);
    if (records != 0) json.Field(LossReasonName(static_cast<LossReason>(i)), records);
    lost += records;
  }
  json.EndObject();
  json.Field("in_flight", static_cast<int64_t>(of(accounting.captured) - of(stored) - lost));
}

// Writes the counts of samples of each type, if there are samples of other types than CPU.
void Types(JsonWriter& json, const NamedAccounting& accounting, const NamedSampleCounts& stored) {
  const NamedSampleCounts all = stored + accounting.Counted();
  if (all.cpu() == all.total()) return;
  json.Key("types");
  json.BeginArray();
  auto add = [&](const SampleTypeInfo& type) {
    json.BeginObject();
    json.Field("name", type.name);
    WriteUnit(json, type);
    json.Field("captured", accounting.captured.Of(type));
    Law(json, accounting, stored, [&type](const NamedSampleCounts& counts) { return counts.Of(type); });
    json.EndObject();
  };
  if (all.cpu() > 0) add(InfoOf(*FindSampleType(SampleType::kCpu)));
  for (const auto& [type, samples] : all.parts()) {
    if (type != SampleTypeInfo{}) add(type);  // the default type stands for process events
  }
  json.EndArray();
}

// Writes the counts of all samples together, then of each type, then of process events.
void Counts(JsonWriter& json, const NamedAccounting& accounting, const NamedSampleCounts& stored) {
  json.Field("captured", accounting.captured.total());
  json.Field("idle", accounting.idle);
  Law(json, accounting, stored, [](const NamedSampleCounts& counts) { return counts.total(); });
  Types(json, accounting, stored);
  json.Key("process_events");
  json.BeginObject();
  json.Field("captured", accounting.captured.events());
  Law(json, accounting, stored, [](const NamedSampleCounts& counts) { return counts.events(); });
  json.EndObject();
}

void NodeEntry(JsonWriter& json, const store::NodeStatus& node, bool connected) {
  json.BeginObject();
  json.Field("id", node.node_id);
  json.Field("host", node.host_name);
  json.Field("kernel", node.kernel_release);
  json.Field("architecture", node.architecture);
  json.Field("version", node.agent_version);
  json.Field("cpus", node.cpu_count);
  json.Field("sample_rate_hz", node.sample_rate_hz);
  json.Field("connected", connected);
  json.Field("last_seen", node.last_seen.value / kNsPerMs);
  Counts(json, node.accounting, node.stored);
  json.Field("wire_bytes", node.wire_bytes);
  Endings(json, "stack_health", node.endings);
  json.EndObject();
}

}  // namespace

std::string StatusJson(const std::vector<store::NodeStatus>& nodes, const std::vector<bool>& connected,
                       const ReducerStatus& reducer) {
  NamedAccounting accounting;
  NamedSampleCounts stored;
  store::BoundedTypes types(kTypesOfTotalMax);
  uint64_t endings[kEndingCount] = {};
  for (const store::NodeStatus& node : nodes) {
    accounting += types.Bound(node.accounting);
    stored += types.Bound(node.stored);
    for (size_t i = 0; i < kEndingCount; ++i) endings[i] += node.endings[i];
  }
  JsonWriter json;
  json.BeginObject();
  json.Field("version", kVersion);
  json.Field("uptime_s", reducer.uptime_s);
  json.Key("total");
  json.BeginObject();
  Counts(json, accounting, stored);
  json.EndObject();
  Endings(json, "stack_health", endings);
  json.Key("nodes");
  json.BeginArray();
  for (size_t i = 0; i < nodes.size(); ++i) NodeEntry(json, nodes[i], connected[i]);
  json.EndArray();
  json.Key("clusters");
  json.BeginArray();
  for (const MetadataStore::Cluster& cluster : reducer.clusters) {
    json.BeginObject();
    json.Field("id", cluster.id);
    json.Field("connected", cluster.connected);
    json.Field("entities", cluster.entities);
    json.Field("last_told", cluster.last_update.value / kNsPerMs);
    json.EndObject();
  }
  json.EndArray();
  json.Key("refusals");
  json.BeginArray();
  for (const Refusals::Entry& entry : reducer.refusals) {
    json.BeginObject();
    json.Field("node", entry.node);
    json.Field("reason", entry.reason);
    json.Field("amount", entry.amount);
    json.EndObject();
  }
  json.EndArray();
  json.Key("damage");
  json.BeginArray();
  for (const store::DamageEntry& entry : reducer.damage) {
    json.BeginObject();
    json.Field("shard", entry.shard);
    json.Field("kind", entry.kind);
    json.Field("count", entry.count);
    json.Field("reason", entry.reason);
    json.EndObject();
  }
  json.EndArray();
  json.Key("reducer");
  json.BeginObject();
  json.Field("cpu_seconds", reducer.cpu_seconds);
  json.Field("rss_bytes", reducer.rss_bytes);
  json.Field("disk_bytes", reducer.disk_bytes);
  json.Field("shards", reducer.shards);
  json.Field("symbol_tables", reducer.symbol_tables);
  json.EndObject();
  json.EndObject();
  return std::move(json).Take();
}

std::string CallerJson(const Caller& caller) {
  JsonWriter json;
  json.BeginObject();
  json.Field("name", caller.name);
  json.Field("signed_in_by", NameOf(caller.sign_in));
  json.Key("rights");
  json.BeginArray();
  for (const std::string_view right : NamesOf(caller.rights)) json.String(right);
  json.EndArray();
  json.EndObject();
  return std::move(json).Take();
}

}  // namespace tributary
