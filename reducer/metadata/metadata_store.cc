#include "reducer/metadata/metadata_store.h"

#include <utility>

#include "base/log.h"
#include "base/status.h"

namespace tributary {
namespace {

// The store does not wait for a watcher that is away for this long.
constexpr int64_t kExpectedNs = 6 * 60 * kNsPerMinute;

Counter& AddRefusals(Metrics& metrics, const char* reason) {
  return metrics.AddCounter("tributary_metadata_refusals_total",
                            "Metadata entities (hosts, containers, pods and others) that were refused, by reason; "
                            "scope: the sender may not report this entity; full: a limit was reached.",
                            {{"reason", reason}});
}

// Returns true if the sender may describe this entity.
bool MayReport(const MetadataSender& sender, const Entity& entity) {
  switch (entity.kind) {
    case EntityKind::kHost:
      return !sender.is_cluster && entity.id == sender.id;
    case EntityKind::kContainer:
      return !entity.id.empty();
    case EntityKind::kPod:
    case EntityKind::kNamespace:
    case EntityKind::kK8sNode:
    case EntityKind::kWorkload:
      return sender.is_cluster && !entity.id.empty();
    case EntityKind::kCluster:
      return sender.is_cluster;
    case EntityKind::kRollout:  // an event: rollouts of a cluster go to the RolloutLog
    case EntityKind::kUnknown:
      break;
  }
  return false;  // also a kind that a later release sends
}

LiveEntities::Options LiveOptions(const MetadataStore::Options& options, bool has_database) {
  return {.has_database = has_database,
          .gone_kept_ns = has_database ? options.gone_in_memory_ns : options.keep_ns,
          .away_ns = options.away_ns,
          .entities_max = options.entities_max,
          .bytes_max = options.bytes_max,
          .node_entities_max = options.node_entities_max,
          .clusters_max = options.clusters_max,
          .nodes_max = options.nodes_max,
          .observer = options.observer};
}

}  // namespace

MetadataStore::MetadataStore(Options options, const K8sNameRules& rules, AttributeNames& names, const Clock& clock,
                             Metrics& metrics)
    : rules_(rules),
      names_(names),
      clock_(clock),
      updates_(metrics.AddCounter(
          "tributary_metadata_entities_told_total",
          "States of metadata entities (hosts, containers, pods and others) that nodes and k8s-collectors reported.")),
      refused_(AddRefusals(metrics, "scope")),
      failures_(metrics.AddCounter("tributary_metadata_store_errors_total",
                                   "Failures to open, read or write metadata.db, the file of the stored metadata.")) {
  TakeDatabase(std::move(options.store));
  live_ = std::make_unique<LiveEntities>(LiveOptions(options, db_ != nullptr), AddRefusals(metrics, "full"), metrics);
  cold_ = std::make_unique<ColdEntities>(
      ColdEntities::Options{.entities_max = options.cold_entities_max, .bytes_max = options.cold_bytes_max}, db_.get(),
      failures_);
  upkeep_ = std::make_unique<MetadataUpkeep>(MetadataUpkeep::Options{.keep_ns = options.keep_ns,
                                                                     .keep_used_ns = options.keep_used_ns,
                                                                     .gone_in_memory_ns = options.gone_in_memory_ns},
                                             db_.get(), *live_, *cold_, clock_, metrics, failures_);
  upkeep_->Load(names_);
}

MetadataStore::~MetadataStore() = default;

void MetadataStore::TakeDatabase(absl::StatusOr<std::unique_ptr<EntityStore>> opened) {
  if (opened.ok()) {
    db_ = *std::move(opened);
    return;
  }
  failures_.Add();
  LogError("metadata is kept in memory only, a restart loses it error=\"{}\"", Message(opened.status()));
}

void MetadataStore::Connected(const MetadataSender& sender) { live_->Connected(sender, clock_.Unix()); }

void MetadataStore::Disconnected(const MetadataSender& sender) { live_->Disconnected(sender, clock_.Unix()); }

void MetadataStore::Take(const MetadataSender& sender, MetadataUpdate update) {
  std::vector<Entity> entities;
  entities.reserve(update.entities.size());
  for (Entity& entity : update.entities) {
    if (!MayReport(sender, entity)) {
      refused_.Add();
      continue;
    }
    entity.attributes = rules_.Apply(std::move(entity.attributes));
    names_.Learn(entity.attributes);
    entities.push_back(std::move(entity));
  }
  updates_.Add(entities.size());
  update.entities = std::move(entities);
  live_->Take(sender, std::move(update), clock_.Unix());
}

FoundEntity MetadataStore::Find(EntityKind kind, const MetadataSender& sender, std::string_view id, UnixNs at) const {
  LiveEntity live = live_->Find(kind, sender, id, at);
  return live.ask_database ? cold_->Find(sender, kind, id, at, live) : std::move(live);
}

FoundInCluster MetadataStore::FindInClusters(EntityKind kind, std::string_view id, UnixNs at,
                                             absl::FunctionRef<bool(const Entity&)> accept) const {
  std::vector<std::pair<MetadataSender, LiveEntity>> unsure;
  if (std::optional<FoundInCluster> found = live_->FindInClusters(kind, id, at, accept, &unsure)) {
    return *std::move(found);
  }
  for (const auto& [sender, live] : unsure) {
    FoundEntity found = cold_->Find(sender, kind, id, at, live);
    if (found.entity != nullptr && accept(*found.entity)) return {std::move(found), sender};
  }
  return {};
}

bool MetadataStore::ExpectsClusters() const {
  return live_->AnyClusterSentSince(UnixNs{clock_.Unix().value - kExpectedNs});
}

}  // namespace tributary
