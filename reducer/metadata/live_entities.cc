#include "reducer/metadata/live_entities.h"

#include <algorithm>
#include <iterator>
#include <mutex>

#include "absl/container/flat_hash_set.h"

namespace tributary {

LiveEntities::LiveEntities(const Options& options, Counter& refused, Metrics& metrics)
    : options_(options),
      refused_(refused),
      lost_states_(metrics.AddCounter("tributary_metadata_lost_states_total",
                                      "States of metadata entities (hosts, containers, pods and others) that were "
                                      "dropped, because the entity changed too often.")),
      entities_gauge_(metrics.AddGauge("tributary_metadata_entities",
                                       "Metadata entities (hosts, containers, pods and others) in memory.")),
      bytes_gauge_(
          metrics.AddGauge("tributary_metadata_bytes", "Approximate memory of the metadata entities, in bytes.")),
      senders_gauge_(metrics.AddGauge("tributary_metadata_tellers",
                                      "Nodes and k8s-collectors that the reducer has in memory as senders of metadata, "
                                      "connected or not.")) {}

LiveEntities::~LiveEntities() = default;

// ---- Changes

void LiveEntities::Connected(const MetadataSender& sender, UnixNs now) {
  std::unique_lock lock(mutex_);
  if (Source* source = FindOrAddSource(sender, now)) ++source->connections;
}

void LiveEntities::Disconnected(const MetadataSender& sender, UnixNs now) {
  std::unique_lock lock(mutex_);
  auto it = sources_.find(sender);
  if (it == sources_.end() || it->second->connections == 0) return;
  Source& source = *it->second;
  source.last_contact = now;
  if (--source.connections == 0) source.in_snapshot = false;
}

void LiveEntities::Take(const MetadataSender& sender, MetadataUpdate update, UnixNs now) {
  std::unique_lock lock(mutex_);
  Source* source = FindOrAddSource(sender, now);
  if (source == nullptr) {
    refused_.Add(update.entities.size());
    return;
  }
  source->last_update = now;
  if (update.begins_snapshot) ++source->snapshot;
  source->in_snapshot = (source->in_snapshot || update.begins_snapshot) && !update.ends_snapshot;
  for (Entity& entity : update.entities) TakeEntity(*source, std::move(entity), now);
  if (update.ends_snapshot) EndSnapshot(*source, now);
  SetGauges();
}

// Returns nullptr if there are too many senders. Updates the last_contact of the sender.
LiveEntities::Source* LiveEntities::FindOrAddSource(const MetadataSender& sender, UnixNs now) {
  auto it = sources_.find(sender);
  if (it == sources_.end()) {
    const bool full = sender.is_cluster ? clusters_.size() >= options_.clusters_max
                                        : sources_.size() - clusters_.size() >= options_.nodes_max;
    if (full) return nullptr;
    it = sources_.emplace(sender, std::make_unique<Source>()).first;
    it->second->sender = sender;
    if (sender.is_cluster) clusters_.push_back(it->second.get());
    senders_gauge_.Set(static_cast<int64_t>(sources_.size()));
  }
  it->second->last_contact = now;
  return it->second.get();
}

bool LiveEntities::IsFull() const { return entities_ >= options_.entities_max || bytes_ >= options_.bytes_max; }

void LiveEntities::TakeEntity(Source& source, Entity entity, UnixNs now) {
  Key key(entity.kind, entity.id);
  auto it = source.records.find(key);
  if (it == source.records.end()) {
    // A workload only consists of its chosen labels. Most workloads have none.
    if (entity.kind == EntityKind::kWorkload && entity.attributes.empty()) return;
    if (IsFull() || (!source.sender.is_cluster && source.records.size() >= options_.node_entities_max)) {
      refused_.Add();
      return;
    }
    it = source.records.emplace(key, std::make_unique<Record>()).first;
    // The entity may have been in memory before, and dropped.
    it->second->has_older = options_.has_database;
    it->second->ended_unseen = entity.gone;
    ++entities_;
  }
  source.sent_containers |= entity.kind == EntityKind::kContainer;
  Record& record = *it->second;
  record.snapshot = source.snapshot;
  record.ended_unseen &= entity.gone;
  // Drops saved states that ended a while ago: look-ups find them in the database.
  if (options_.has_database && !record.dirty &&
      record.timeline.DropBefore(UnixNs{now.value - options_.gone_kept_ns}) > 0) {
    record.has_older = true;
    trimmed_.push_back(Ref(&source, key));
  }
  uint64_t lost = 0;
  if (!record.timeline.Report(std::move(entity), now, &lost)) return;
  lost_states_.Add(lost);
  Changed(source, key, record);
  if (record.timeline.gone()) gone_.push_back({Ref(&source, key), now});
}

void LiveEntities::Changed(Source& source, const Key& key, Record& record) {
  size_t bytes = sizeof(Record) + key.second.size();
  for (const EntityTimeline::State& state : record.timeline.states()) bytes += EntityBytes(*state.entity);
  bytes_ += bytes - record.bytes;
  record.bytes = bytes;
  Observe(source, record);
  if (record.dirty) return;
  record.dirty = true;
  dirty_.push_back(Ref(&source, key));
}

void LiveEntities::Observe(const Source& source, const Record& record) const {
  if (options_.observer == nullptr || record.timeline.states().empty()) return;
  options_.observer->OnState(source.sender, *record.timeline.states().back().entity, record.timeline.gone());
}

void LiveEntities::EndSnapshot(Source& source, UnixNs now) {
  for (auto& [key, record] : source.records) {
    if (record->snapshot == source.snapshot || !record->timeline.End(UnixNs{0}, now)) continue;
    Changed(source, key, *record);
    gone_.push_back({Ref(&source, key), now});
  }
}

void LiveEntities::SetGauges() {
  entities_gauge_.Set(static_cast<int64_t>(entities_));
  bytes_gauge_.Set(static_cast<int64_t>(bytes_));
}

// ---- Look-ups

const LiveEntities::Source* LiveEntities::FindSource(const MetadataSender& sender) const {
  auto it = sources_.find(sender);
  return it == sources_.end() ? nullptr : it->second.get();
}

LiveEntity LiveEntities::Look(const Source* source, EntityKind kind, std::string_view id, UnixNs at) const {
  LiveEntity found;
  found.ask_database = options_.has_database;
  if (source == nullptr) return found;
  auto it = source->records.find(std::pair(kind, id));
  if (it == source->records.end()) return found;
  const Record& record = *it->second;
  if (!record.used.load(std::memory_order_relaxed)) record.used.store(true, std::memory_order_relaxed);
  static_cast<FoundEntity&>(found) = record.timeline.Find(at);
  found.ask_database &= record.has_older && at < record.timeline.states().front().from;
  if (found.ask_database) found.until = record.timeline.states().front().from;
  return found;
}

LiveEntity LiveEntities::Find(EntityKind kind, const MetadataSender& sender, std::string_view id, UnixNs at) const {
  std::shared_lock lock(mutex_);
  return Look(FindSource(sender), kind, id, at);
}

std::optional<FoundInCluster> LiveEntities::FindInClusters(
    EntityKind kind, std::string_view id, UnixNs at, absl::FunctionRef<bool(const Entity&)> accept,
    std::vector<std::pair<MetadataSender, LiveEntity>>* unsure) const {
  std::shared_lock lock(mutex_);
  for (const Source* source : clusters_) {
    LiveEntity found = Look(source, kind, id, at);
    if (found.ask_database) {
      unsure->emplace_back(source->sender, std::move(found));
    } else if (found.entity != nullptr && accept(*found.entity)) {
      return FoundInCluster{std::move(found), source->sender};
    }
  }
  return std::nullopt;
}

bool LiveEntities::AnyClusterSentSince(UnixNs since) const {
  std::shared_lock lock(mutex_);
  return std::any_of(clusters_.begin(), clusters_.end(),
                     [since](const Source* source) { return source->last_update >= since; });
}

bool LiveEntities::IsReceivingSnapshot() const {
  std::shared_lock lock(mutex_);
  return std::any_of(clusters_.begin(), clusters_.end(), [](const Source* source) { return source->in_snapshot; });
}

bool LiveEntities::ExpectsContainers(std::string_view node_id) const {
  std::shared_lock lock(mutex_);
  const Source* source = FindSource({false, std::string(node_id)});
  return source != nullptr && source->sent_containers;
}

std::vector<LiveEntities::Cluster> LiveEntities::Clusters() const {
  std::vector<Cluster> clusters;
  std::shared_lock lock(mutex_);
  for (const Source* source : clusters_) {
    clusters.push_back({source->sender.id, source->connections > 0, source->records.size(), source->last_update});
  }
  return clusters;
}

LiveEntities::Totals LiveEntities::totals() const {
  std::shared_lock lock(mutex_);
  return {entities_, bytes_};
}

// ---- For MetadataUpkeep

bool LiveEntities::Restore(const EntityStore::Row& row, UnixNs now) {
  std::unique_lock lock(mutex_);
  Source* source = FindOrAddSource(row.sender, now);
  if (source == nullptr || IsFull()) return false;
  auto record = std::make_unique<Record>();
  for (const EntityTimeline::State& state : row.states) {
    record->bytes += EntityBytes(*state.entity);
    record->timeline.Restore(state);
  }
  record->used = record->used_saved = row.used;
  record->has_older = true;
  bytes_ += record->bytes;
  ++entities_;
  source->sent_containers |= row.kind == EntityKind::kContainer;
  Key key(row.kind, row.id);
  if (record->timeline.gone()) {
    gone_.push_back({Ref(source, key), now});
  } else {
    Observe(*source, *record);
  }
  source->records.emplace(std::move(key), std::move(record));
  return true;
}

void LiveEntities::ObserveEnd(const EntityStore::Row& row) {
  std::unique_lock lock(mutex_);
  options_.observer->OnStoredEnd(row.sender, *row.states.back().entity, row.states.back().to);
}

void LiveEntities::ObserveLoaded() {
  std::unique_lock lock(mutex_);
  options_.observer->OnLoaded();
}

void LiveEntities::AddSender(const MetadataSender& sender, UnixNs now) {
  std::unique_lock lock(mutex_);
  FindOrAddSource(sender, now);
}

std::vector<EntityStore::Row> LiveEntities::TakeChanges(size_t count_max, std::vector<Ref>* taken) {
  std::vector<EntityStore::Row> rows;
  std::unique_lock lock(mutex_);
  const auto end = dirty_.begin() + static_cast<ptrdiff_t>(std::min(dirty_.size(), count_max));
  taken->assign(std::make_move_iterator(dirty_.begin()), std::make_move_iterator(end));
  dirty_.erase(dirty_.begin(), end);
  for (const Ref& ref : *taken) {
    auto it = ref.source_->records.find(ref.key_);
    if (it == ref.source_->records.end()) continue;
    Record& record = *it->second;
    record.dirty = false;
    record.used_saved = record.used;
    rows.push_back({ref.sender(), ref.key_.first, ref.key_.second, record.used_saved, record.ended_unseen,
                    record.timeline.states()});
  }
  return rows;
}

void LiveEntities::GiveBack(std::vector<Ref> taken) {
  std::unique_lock lock(mutex_);
  for (Ref& ref : taken) {
    auto it = ref.source_->records.find(ref.key_);
    if (it == ref.source_->records.end() || it->second->dirty) continue;
    it->second->dirty = true;
    dirty_.push_back(std::move(ref));
  }
}

void LiveEntities::DiscardChanges() {
  std::unique_lock lock(mutex_);
  for (const Ref& ref : dirty_) {
    if (auto it = ref.source_->records.find(ref.key_); it != ref.source_->records.end()) it->second->dirty = false;
  }
  dirty_.clear();
}

std::vector<LiveEntities::Ref> LiveEntities::TakeTrimmed() {
  std::unique_lock lock(mutex_);
  return std::exchange(trimmed_, {});
}

void LiveEntities::TakeUsed(std::vector<EntityStore::Row>* rows) {
  std::unique_lock lock(mutex_);
  for (const auto& [sender, source] : sources_) {
    for (auto& [key, record] : source->records) {
      if (record->dirty || record->used_saved || !record->used) continue;
      record->used_saved = true;
      rows->push_back({sender, key.first, key.second, true, false, {}});
    }
  }
}

bool LiveEntities::IsAway(const Source& source, UnixNs now) const {
  return source.connections == 0 && source.last_contact.value < now.value - options_.away_ns;
}

std::vector<MetadataSender> LiveEntities::EndAway(UnixNs now) {
  std::vector<MetadataSender> empty;
  std::unique_lock lock(mutex_);
  for (const auto& [sender, source] : sources_) {
    if (!IsAway(*source, now)) continue;
    if (source->records.empty()) empty.push_back(sender);
    for (auto& [key, record] : source->records) {
      if (!record->timeline.End(source->last_contact, now)) continue;
      Changed(*source, key, *record);
      gone_.push_back({Ref(source.get(), key), now});
    }
  }
  return empty;
}

void LiveEntities::ForgetSenders(const std::vector<MetadataSender>& leaving, UnixNs now) {
  absl::flat_hash_set<const Source*> left;
  std::unique_lock lock(mutex_);
  for (const MetadataSender& sender : leaving) {
    const auto it = sources_.find(sender);
    if (it != sources_.end() && IsAway(*it->second, now) && it->second->records.empty()) left.insert(it->second.get());
  }
  std::erase_if(gone_, [&left](const Gone& gone) { return left.contains(gone.entity.source_); });
  for (auto* refs : {&dirty_, &trimmed_}) {
    std::erase_if(*refs, [&left](const Ref& ref) { return left.contains(ref.source_); });
  }
  std::erase_if(clusters_, [&left](const Source* source) { return left.contains(source); });
  absl::erase_if(sources_, [&left](const auto& source) { return left.contains(source.second.get()); });
  senders_gauge_.Set(static_cast<int64_t>(sources_.size()));
}

std::vector<LiveEntities::Ref> LiveEntities::TakeGone(UnixNs now) {
  std::vector<Ref> leaving;
  std::unique_lock lock(mutex_);
  while (!gone_.empty() && gone_.front().added_at.value < now.value - options_.gone_kept_ns) {
    Ref& front = gone_.front().entity;
    auto it = front.source_->records.find(front.key_);
    const bool is_gone = it != front.source_->records.end() && it->second->timeline.gone();
    if (is_gone && it->second->dirty) break;  // not saved yet: the disk is full or slow
    if (is_gone) leaving.push_back(std::move(front));
    gone_.pop_front();
  }
  return leaving;
}

void LiveEntities::DropGone(std::vector<Ref> leaving, UnixNs now) {
  std::vector<std::unique_ptr<Record>> left;  // destroyed after the lock is released
  std::unique_lock lock(mutex_);
  for (Ref& ref : leaving) {
    Records& records = ref.source_->records;
    auto it = records.find(ref.key_);
    if (it == records.end()) continue;
    if (!it->second->timeline.gone() || it->second->dirty) continue;  // it came back meanwhile
    if (options_.has_database && it->second->used && !it->second->used_saved) {
      gone_.push_back({std::move(ref), now});
      continue;
    }
    bytes_ -= it->second->bytes;
    --entities_;
    left.push_back(std::move(it->second));
    records.erase(it);
  }
  SetGauges();
}

}  // namespace tributary
