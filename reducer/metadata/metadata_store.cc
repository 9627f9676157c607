#include "reducer/metadata/metadata_store.h"

#include <algorithm>

#include "base/status.h"

namespace tributary {
namespace {

// A watcher that is away this long is not waited for.
constexpr int64_t kExpectedNs = 6 * 60 * kNsPerMinute;

const char kRefusedHelp[] =
    "Entities that were turned away: of none of the teller's business (scope), or too many (full).";

}  // namespace

MetadataStore::MetadataStore(Options options, const K8sNameRules& rules, AttributeNames& names, const Clock& clock,
                             Metrics& metrics)
    : options_(std::move(options)),
      rules_(rules),
      names_(names),
      clock_(clock),
      updates_(metrics.AddCounter("tributary_metadata_entities_told_total", "States of entities that were told.")),
      refused_scope_(metrics.AddCounter("tributary_metadata_refusals_total", kRefusedHelp, {{"reason", "scope"}})),
      refused_full_(metrics.AddCounter("tributary_metadata_refusals_total", kRefusedHelp, {{"reason", "full"}})),
      lost_states_(metrics.AddCounter("tributary_metadata_lost_states_total",
                                      "States of entities that change too often to keep all.")),
      failures_(metrics.AddCounter("tributary_metadata_store_errors_total", "Failures to read or write metadata.db.")),
      entities_gauge_(metrics.AddGauge("tributary_metadata_entities", "Entities in memory.")),
      bytes_gauge_(metrics.AddGauge("tributary_metadata_bytes", "Memory of the entities, about.")),
      tellers_gauge_(metrics.AddGauge("tributary_metadata_tellers", "Nodes and clusters' watchers that are known.")) {
  if (options_.path.empty()) return;
  OpenDatabase();
  if (db_ != nullptr) Load();
}

MetadataStore::~MetadataStore() {
  Stop();
  Flush();
}

void MetadataStore::OpenDatabase() {
  absl::StatusOr<std::unique_ptr<MetadataDb>> db = MetadataDb::Open(options_.path, options_.db_bytes_max);
  if (db.ok()) {
    db_ = *std::move(db);
    return;
  }
  failures_.Add();
  LogError("metadata is not kept over a restart path={} error=\"{}\"", options_.path, Message(db.status()));
}

void MetadataStore::Load() {
  const UnixNs now = clock_.Unix();
  auto take = [this, now](const MetadataDb::Row& row) {
    Told* told = FindOrAddTeller(row.teller, now);
    if (told == nullptr || entities_ >= options_.entities_max || bytes_ >= options_.bytes_max) return;
    auto record = std::make_unique<Record>();
    for (const EntityTimeline::State& state : row.states) {
      record->bytes += EntityBytes(*state.entity);
      names_.Meet(state.entity->attributes);
      record->timeline.Restore(state);
    }
    record->used = record->used_saved = row.used;
    record->has_older = true;
    bytes_ += record->bytes;
    ++entities_;
    told->tells_containers |= row.kind == EntityKind::kContainer;
    Key key(row.kind, row.id);
    if (record->timeline.gone()) gone_.push_back({told, key, now});
    told->records.emplace(std::move(key), std::move(record));
  };
  absl::Status loaded = db_->Load(UnixNs{now.value - options_.gone_in_memory_ns}, take);
  absl::StatusOr<std::vector<MetadataTeller>> clusters = db_->Clusters();
  if (clusters.ok()) {
    for (const MetadataTeller& cluster : *clusters) FindOrAddTeller(cluster, now);
  }
  if (!loaded.ok()) LogFailure("read", loaded);
  if (entities_ > 0) LogInfo("metadata read entities={} bytes={}", entities_, bytes_);
}

// And has heard of it.
MetadataStore::Told* MetadataStore::FindOrAddTeller(const MetadataTeller& teller, UnixNs now) {
  auto it = tellers_.find(teller);
  if (it == tellers_.end()) {
    const bool full = teller.is_cluster ? clusters_.size() >= options_.clusters_max
                                        : tellers_.size() - clusters_.size() >= options_.nodes_max;
    if (full) return nullptr;
    it = tellers_.emplace(teller, std::make_unique<Told>()).first;
    it->second->teller = teller;
    if (teller.is_cluster) clusters_.push_back(it->second.get());
    tellers_gauge_.Set(static_cast<int64_t>(tellers_.size()));
  }
  it->second->last_heard = now;
  return it->second.get();
}

bool MetadataStore::MayTell(const MetadataTeller& teller, const Entity& entity) {
  switch (entity.kind) {
    case EntityKind::kHost:
      return !teller.is_cluster && entity.id == teller.id;
    case EntityKind::kContainer:
      return !entity.id.empty();
    case EntityKind::kPod:
    case EntityKind::kNamespace:
    case EntityKind::kK8sNode:
    case EntityKind::kWorkload:
      return teller.is_cluster && !entity.id.empty();
    case EntityKind::kCluster:
      return teller.is_cluster;
    case EntityKind::kRollout:  // an event: a cluster's go to the RolloutLog
    case EntityKind::kUnknown:
      break;
  }
  return false;  // also a kind of a later release
}

void MetadataStore::Connected(const MetadataTeller& teller) {
  std::unique_lock lock(mutex_);
  if (Told* told = FindOrAddTeller(teller, clock_.Unix())) ++told->connections;
}

void MetadataStore::Disconnected(const MetadataTeller& teller) {
  std::unique_lock lock(mutex_);
  auto it = tellers_.find(teller);
  if (it == tellers_.end() || it->second->connections == 0) return;
  Told& told = *it->second;
  told.last_heard = clock_.Unix();
  if (--told.connections == 0) told.in_snapshot = false;
}

void MetadataStore::Take(const MetadataTeller& teller, MetadataUpdate update) {
  std::vector<Entity> entities;
  entities.reserve(update.entities.size());
  for (Entity& entity : update.entities) {
    if (!MayTell(teller, entity)) {
      refused_scope_.Add();
      continue;
    }
    entity.attributes = rules_.Apply(std::move(entity.attributes));
    names_.Meet(entity.attributes);
    entities.push_back(std::move(entity));
  }
  updates_.Add(entities.size());
  const UnixNs now = clock_.Unix();
  std::unique_lock lock(mutex_);
  Told* told = FindOrAddTeller(teller, now);
  if (told == nullptr) {
    refused_full_.Add(entities.size());
    return;
  }
  told->last_told = now;
  if (update.begins_snapshot) ++told->snapshot;
  told->in_snapshot = (told->in_snapshot || update.begins_snapshot) && !update.ends_snapshot;
  for (Entity& entity : entities) TakeEntity(*told, std::move(entity), now);
  if (update.ends_snapshot) EndSnapshot(*told, now);
  entities_gauge_.Set(static_cast<int64_t>(entities_));
  bytes_gauge_.Set(static_cast<int64_t>(bytes_));
}

void MetadataStore::TakeEntity(Told& told, Entity entity, UnixNs now) {
  Key key(entity.kind, entity.id);
  auto it = told.records.find(key);
  if (it == told.records.end()) {
    // A workload is its labels; of most none was chosen.
    if (entity.kind == EntityKind::kWorkload && entity.attributes.empty()) return;
    const bool full = entities_ >= options_.entities_max || bytes_ >= options_.bytes_max ||
                      (!told.teller.is_cluster && told.records.size() >= options_.node_entities_max);
    if (full) {
      refused_full_.Add();
      return;
    }
    it = told.records.emplace(key, std::make_unique<Record>()).first;
    // Perhaps it was told, and forgotten here, before.
    it->second->has_older = db_ != nullptr;
    it->second->ended_unseen = entity.gone;
    ++entities_;
  }
  told.tells_containers |= entity.kind == EntityKind::kContainer;
  Record& record = *it->second;
  record.snapshot = told.snapshot;
  record.ended_unseen &= entity.gone;
  // What ended a while ago and is saved is found in the database.
  if (db_ != nullptr && !record.dirty &&
      record.timeline.DropBefore(UnixNs{now.value - options_.gone_in_memory_ns}) > 0) {
    record.has_older = true;
    trimmed_.emplace_back(&told, key);
  }
  uint64_t lost = 0;
  if (!record.timeline.Tell(std::move(entity), now, &lost)) return;
  lost_states_.Add(lost);
  Changed(told, key, record);
  if (record.timeline.gone()) gone_.push_back({&told, key, now});
}

void MetadataStore::Changed(Told& told, const Key& key, Record& record) {
  size_t bytes = sizeof(Record) + key.second.size();
  for (const EntityTimeline::State& state : record.timeline.states()) bytes += EntityBytes(*state.entity);
  bytes_ += bytes - record.bytes;
  record.bytes = bytes;
  if (record.dirty) return;
  record.dirty = true;
  dirty_.emplace_back(&told, key);
}

void MetadataStore::EndSnapshot(Told& told, UnixNs now) {
  for (auto& [key, record] : told.records) {
    if (record->snapshot == told.snapshot || !record->timeline.End(UnixNs{0}, now)) continue;
    Changed(told, key, *record);
    gone_.push_back({&told, key, now});
  }
}

const MetadataStore::Told* MetadataStore::TellerOf(const MetadataTeller& teller) const {
  auto it = tellers_.find(teller);
  return it == tellers_.end() ? nullptr : it->second.get();
}

MetadataStore::Looked MetadataStore::Look(const Told* told, EntityKind kind, std::string_view id, UnixNs at) const {
  Looked looked;
  looked.ask_database = db_ != nullptr;
  if (told == nullptr) return looked;
  auto it = told->records.find(std::pair(kind, id));
  if (it == told->records.end()) return looked;
  const Record& record = *it->second;
  if (!record.used.load(std::memory_order_relaxed)) record.used.store(true, std::memory_order_relaxed);
  static_cast<FoundEntity&>(looked) = record.timeline.Find(at);
  looked.ask_database &= record.has_older && at < record.timeline.states().front().from;
  if (looked.ask_database) looked.until = record.timeline.states().front().from;
  return looked;
}

FoundEntity MetadataStore::Find(EntityKind kind, const MetadataTeller& teller, std::string_view id, UnixNs at) const {
  Looked looked;
  {
    std::shared_lock lock(mutex_);
    looked = Look(TellerOf(teller), kind, id, at);
  }
  return looked.ask_database ? FindCold(teller, kind, id, looked, at) : looked;
}

MetadataStore::FoundInCluster MetadataStore::FindInClusters(EntityKind kind, std::string_view id, UnixNs at,
                                                            absl::FunctionRef<bool(const Entity&)> accept) const {
  std::vector<std::pair<MetadataTeller, Looked>> unsure;
  {
    std::shared_lock lock(mutex_);
    for (const Told* told : clusters_) {
      Looked looked = Look(told, kind, id, at);
      if (looked.ask_database) {
        unsure.emplace_back(told->teller, std::move(looked));
      } else if (looked.entity != nullptr && accept(*looked.entity)) {
        return {std::move(looked), told->teller};
      }
    }
  }
  for (const auto& [teller, looked] : unsure) {
    FoundEntity found = FindCold(teller, kind, id, looked, at);
    if (found.entity != nullptr && accept(*found.entity)) return {std::move(found), teller};
  }
  return {};
}

// A loop that takes metadata never waits for this: mutex_ is not held.
FoundEntity MetadataStore::FindCold(const MetadataTeller& teller, EntityKind kind, std::string_view id,
                                    const Looked& looked, UnixNs at) const {
  ColdKey key(teller, Key(kind, id));
  std::lock_guard lock(cold_mutex_);
  if (auto it = cold_by_key_.find(key); it != cold_by_key_.end()) {
    cold_.splice(cold_.begin(), cold_, it->second);
  } else {
    absl::StatusOr<MetadataDb::Row> row = db_->Find(teller, kind, id);
    if (!row.ok()) {
      failures_.Add();
      return looked;
    }
    Cold& fresh = cold_.emplace_front();
    fresh.teller = teller;
    fresh.key = key.second;
    fresh.bytes = sizeof(Cold);
    for (EntityTimeline::State& state : row->states) {
      fresh.bytes += EntityBytes(*state.entity);
      fresh.timeline.Restore(std::move(state));
    }
    cold_bytes_ += fresh.bytes;
    cold_by_key_.emplace(std::move(key), cold_.begin());
    while (cold_.size() > 1 && (cold_.size() > options_.cold_entities_max || cold_bytes_ > options_.cold_bytes_max)) {
      cold_by_key_.erase(ColdKey(cold_.back().teller, cold_.back().key));
      cold_bytes_ -= cold_.back().bytes;
      cold_.pop_back();
    }
  }
  Cold& cold = cold_.front();
  if (cold.timeline.states().empty()) return looked;
  cold.used = true;
  FoundEntity found = cold.timeline.Find(at);
  if (looked.entity != nullptr) found.until = std::min(found.until, looked.until);
  return found;
}

void MetadataStore::ForgetCold(const MetadataTeller& teller, const Key& key) {
  std::lock_guard lock(cold_mutex_);
  auto it = cold_by_key_.find(ColdKey(teller, key));
  if (it == cold_by_key_.end()) return;
  cold_bytes_ -= it->second->bytes;
  cold_.erase(it->second);
  cold_by_key_.erase(it);
}

bool MetadataStore::ExpectsClusters() const {
  const int64_t since = clock_.Unix().value - kExpectedNs;
  std::shared_lock lock(mutex_);
  return std::any_of(clusters_.begin(), clusters_.end(),
                     [since](const Told* told) { return told->last_told.value >= since; });
}

bool MetadataStore::HearsSnapshot() const {
  std::shared_lock lock(mutex_);
  return std::any_of(clusters_.begin(), clusters_.end(), [](const Told* told) { return told->in_snapshot; });
}

bool MetadataStore::ExpectsContainers(std::string_view node_id) const {
  std::shared_lock lock(mutex_);
  const Told* told = TellerOf({false, std::string(node_id)});
  return told != nullptr && told->tells_containers;
}

std::vector<MetadataStore::Cluster> MetadataStore::Clusters() const {
  std::vector<Cluster> clusters;
  std::shared_lock lock(mutex_);
  for (const Told* told : clusters_)
    clusters.push_back({told->teller.id, told->connections > 0, told->records.size(), told->last_told});
  return clusters;
}

}  // namespace tributary
