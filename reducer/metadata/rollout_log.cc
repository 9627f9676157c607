#include "reducer/metadata/rollout_log.h"

#include <algorithm>

#include "base/status.h"
#include "reducer/metadata/labels.h"

namespace tributary {
namespace {

// Names of services may contain any character, so they are not in the id. Clusters' watchers do not report this kind.
constexpr std::string_view kServicePrefix = "service/";
bool ParseServiceId(std::string_view id, Rollout* out) {
  if (!out->cluster.empty() || !id.starts_with(kServicePrefix)) return false;
  out->kind = kServiceKind;
  out->name_space = FindAttribute(out->attributes, "service.namespace");
  out->name = FindAttribute(out->attributes, "service.name");
  return !out->name.empty();
}

// Parses "KIND/NAMESPACE/NAME/HASH", as clusters' watchers write it. Returns false if `id` has another form.
bool ParseId(std::string_view id, Rollout* out) {
  for (std::string* part : {&out->kind, &out->name_space, &out->name}) {
    const size_t slash = id.find('/');
    if (slash == 0 || slash == std::string_view::npos) return false;
    *part = id.substr(0, slash);
    id.remove_prefix(slash + 1);
  }
  return !id.empty() && IsWorkloadKind(out->kind);
}

std::string KeyOf(const std::string& cluster, const std::string& id) { return cluster + '\0' + id; }

}  // namespace

RolloutLog::RolloutLog(Options options, MetadataSink& rest, const Clock& clock, Metrics& metrics)
    : keep_ns_(options.keep_ns),
      rest_(rest),
      clock_(clock),
      taken_(metrics.AddCounter(
          "tributary_metadata_rollouts_total",
          "Rollouts that k8s-collectors reported, or that the reducer detected because a service's version changed")),
      refused_(metrics.AddCounter("tributary_metadata_rollouts_refused_total",
                                  "Rollouts that were refused because their data were invalid")),
      dropped_(
          metrics.AddCounter("tributary_metadata_rollouts_dropped_total",
                             "Rollouts that were removed earlier than --retention says, because there were too many")),
      failures_(metrics.AddCounter(
          "tributary_metadata_rollouts_failures_total",
          "Failures to open, read or write rollouts.db, the file of the stored rollouts and versions of services")) {
  absl::Status opened = options.store.status();
  if (opened.ok()) {
    store_ = *std::move(options.store);
    opened = Load();
  }
  if (opened.ok()) return;
  Fail("open", opened);
  store_.reset();
}

absl::Status RolloutLog::Load() {
  if (store_ == nullptr) return absl::OkStatus();
  RETURN_IF_ERROR(store_->Load([this](const RolloutStore::Row& row) {
    (void)Put(row.cluster, row.id, row.at, DecodeAttributes(row.attributes));
  }));
  DropOld();
  return absl::OkStatus();
}

void RolloutLog::Take(const MetadataSender& sender, MetadataUpdate update) {
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(update.entities, [&](Entity& entity) {
      if (!sender.is_cluster || entity.kind != EntityKind::kRollout) return false;
      // `gone` only means that the watcher does not report the rollout any more. It has still happened.
      if (!entity.gone) Add(sender.id, std::move(entity));
      return true;
    });
    DropOld();
  }
  rest_.Take(sender, std::move(update));
}

bool RolloutLog::AddService(const std::string& id, UnixNs at, Attributes attributes) {
  const std::lock_guard lock(mutex_);
  const bool added = Add("", {.kind = EntityKind::kRollout,
                              .id = std::string(kServicePrefix) + id,
                              .from = at,
                              .attributes = std::move(attributes)});
  DropOld();
  return added;
}

bool RolloutLog::Add(const std::string& cluster, Entity entity) {
  if (known_.contains(KeyOf(cluster, entity.id))) return false;
  // A cluster's clock may be ahead. A rollout in the future would never become old.
  const UnixNs at = std::min(entity.from, clock_.Unix());
  const std::string attributes = EncodeAttributes(entity.attributes, kEntityBytesMax, nullptr);
  if (!Put(cluster, entity.id, at, std::move(entity.attributes))) {
    refused_.Add();
    return false;
  }
  taken_.Add();
  if (store_ == nullptr) return true;
  const absl::Status saved = store_->Add({cluster, entity.id, at, attributes});
  if (!saved.ok()) Fail("write", saved);
  return true;
}

bool RolloutLog::Put(const std::string& cluster, const std::string& id, UnixNs at, Attributes attributes) {
  Rollout rollout{.cluster = cluster, .at = at, .attributes = std::move(attributes)};
  if (at.value <= 0 || !(ParseServiceId(id, &rollout) || ParseId(id, &rollout))) return false;
  std::string key = KeyOf(cluster, id);
  if (!known_.insert(key).second) return false;
  by_cluster_[cluster].emplace(at, key);
  rollouts_.emplace(Key(at, std::move(key)), std::move(rollout));
  return true;
}

void RolloutLog::DropOld() {
  const int64_t oldest = clock_.Unix().value - keep_ns_;
  while (!rollouts_.empty()) {
    const bool too_many = rollouts_.size() > kRolloutsMax;
    if (!too_many && rollouts_.begin()->first.first.value >= oldest) return;
    if (too_many) dropped_.Add();
    Forget(too_many ? OldestOfMost() : rollouts_.begin());
  }
}

std::map<RolloutLog::Key, Rollout>::iterator RolloutLog::OldestOfMost() {
  const auto most = std::max_element(by_cluster_.begin(), by_cluster_.end(),
                                     [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  return rollouts_.find(*most->second.begin());
}

void RolloutLog::Forget(std::map<Key, Rollout>::iterator rollout) {
  const std::string& key = rollout->first.second;
  if (store_ != nullptr) {
    const std::string_view id = std::string_view(key).substr(key.find('\0') + 1);
    const absl::Status removed = store_->Remove(rollout->second.cluster, id);
    if (!removed.ok()) Fail("write", removed);
  }
  known_.erase(key);
  const auto of_cluster = by_cluster_.find(rollout->second.cluster);
  of_cluster->second.erase(rollout->first);
  if (of_cluster->second.empty()) by_cluster_.erase(of_cluster);
  rollouts_.erase(rollout);
}

std::vector<Rollout> RolloutLog::List(store::TimeRange range, size_t limit,
                                      absl::FunctionRef<bool(const Rollout&)> accept) const {
  const std::lock_guard lock(mutex_);
  std::vector<Rollout> out;
  if (range.from >= range.to) return out;
  const auto begin = rollouts_.lower_bound(Key(range.from, ""));
  for (auto it = rollouts_.lower_bound(Key(range.to, "")); it != begin && out.size() < limit;) {
    --it;
    if (accept(it->second)) out.push_back(it->second);
  }
  return out;
}

void RolloutLog::Fail(std::string_view operation, const absl::Status& status) {
  failures_.Add();
  uint64_t suppressed = 0;
  if (!failure_log_.Allow(clock_.Monotonic(), &suppressed)) return;
  LogWarning("rollouts cannot be stored, a restart may lose them operation={} error=\"{}\" suppressed={}", operation,
             Message(status), suppressed);
}

}  // namespace tributary
