#include "reducer/metadata/rollout_log.h"

#include <algorithm>

#include "base/log.h"
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

// The inverse of KeyOf. Returns a row with only these two members.
RolloutStore::Row RowOf(const std::string& key) {
  const size_t zero = key.find('\0');
  return {.cluster = key.substr(0, zero), .id = key.substr(zero + 1)};
}

constexpr int64_t kNumbersMax = INT64_MAX / 2;  // a damaged store may contain any number

// Changes in one transaction: some milliseconds.
constexpr size_t kWrittenAtOnceMax = 1'024;

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
          "Failures to open, read or write rollouts.db, the file of the stored rollouts and versions of services")),
      retry_("rollouts", clock, metrics, failures_) {
  absl::Status opened = options.store.status();
  if (opened.ok()) {
    store_ = *std::move(options.store);
    opened = Load();
  }
  if (opened.ok()) return;
  failures_.Add();
  LogError("rollouts are kept in memory only, a restart loses them error=\"{}\"", Message(opened));
  store_.reset();
}

RolloutLog::~RolloutLog() {
  // The last attempt, even during a pause. An error was logged.
  const std::lock_guard one(store_mutex_);
  (void)Write();
}

absl::Status RolloutLog::Load() {
  if (store_ == nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(const int64_t highest, store_->HighestNumber());
  last_number_ = std::clamp<int64_t>(highest, 0, kNumbersMax);
  RETURN_IF_ERROR(store_->Load([this](const RolloutStore::Row& row) {
    (void)Put(row.cluster, row.id, row.at, DecodeAttributes(row.attributes),
              std::clamp<int64_t>(row.no, 1, kNumbersMax));
  }));
  is_stored_ = true;
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
  // Also higher than the numbers that were given before a restart, even if the rollouts are gone.
  const int64_t no = std::max(last_number_ + 1, clock_.Unix().value);
  if (!Put(cluster, entity.id, at, std::move(entity.attributes), no)) {
    refused_.Add();
    return false;
  }
  taken_.Add();
  return true;
}

bool RolloutLog::Put(const std::string& cluster, const std::string& id, UnixNs at, Attributes attributes, int64_t no) {
  Rollout rollout{.cluster = cluster, .at = at, .attributes = std::move(attributes), .no = no};
  if (at.value <= 0 || !(ParseServiceId(id, &rollout) || ParseId(id, &rollout))) return false;
  std::string key = KeyOf(cluster, id);
  if (!known_.insert(key).second) return false;
  by_cluster_[cluster].emplace(at, key);
  // A damaged store may have given a number twice. The next free number could be far away.
  if (by_number_.contains(rollout.no)) rollout.no = last_number_ + 1;
  by_number_.emplace(rollout.no, Key(at, key));
  last_number_ = std::max(last_number_, rollout.no);
  if (is_stored_) {
    unsaved_.emplace(at, key);
    unsaved_numbers_.insert(rollout.no);
  }
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
  // A rollout that is being written now is in neither set: it is removed after that write.
  if (is_stored_ && unsaved_.erase(rollout->first) == 0) unremoved_.insert(key);
  known_.erase(key);
  by_number_.erase(rollout->second.no);
  unsaved_numbers_.erase(rollout->second.no);
  const auto of_cluster = by_cluster_.find(rollout->second.cluster);
  of_cluster->second.erase(rollout->first);
  if (of_cluster->second.empty()) by_cluster_.erase(of_cluster);
  rollouts_.erase(rollout);
}

absl::Status RolloutLog::Flush() {
  const std::lock_guard one(store_mutex_);
  if (!retry_.MayTry()) return absl::UnavailableError("an earlier write of rollouts failed");
  return Write();
}

// The caller must hold store_mutex_.
absl::Status RolloutLog::Write() {
  for (;;) {
    Changes changes = TakeChanges();
    if (changes.empty() || store_ == nullptr) return absl::OkStatus();
    const absl::Status saved = store_->Save(changes.added, changes.removed);
    retry_.Record(saved);
    if (saved.ok()) {
      const std::lock_guard lock(mutex_);
      for (const RolloutStore::Row& row : changes.added) unsaved_numbers_.erase(row.no);
      continue;
    }
    GiveBack(std::move(changes));
    return saved;
  }
}

RolloutLog::Changes RolloutLog::TakeChanges() {
  const std::lock_guard lock(mutex_);
  Changes taken;
  while (!unremoved_.empty() && taken.removed.size() < kWrittenAtOnceMax) {
    taken.removed.push_back(RowOf(*unremoved_.begin()));
    unremoved_.erase(unremoved_.begin());
  }
  // All removals come first: a rollout may have been dropped and reported again.
  if (!unremoved_.empty()) return taken;
  while (!unsaved_.empty() && taken.added.size() < kWrittenAtOnceMax) {
    Key key = std::move(unsaved_.extract(unsaved_.begin()).value());
    RolloutStore::Row row = RowOf(key.second);
    row.at = key.first;
    const Rollout& rollout = rollouts_.find(key)->second;
    row.attributes = EncodeAttributes(rollout.attributes, kEntityBytesMax, nullptr);
    row.no = rollout.no;
    taken.added.push_back(std::move(row));
    taken.added_keys.push_back(std::move(key));
  }
  return taken;
}

void RolloutLog::GiveBack(Changes changes) {
  const std::lock_guard lock(mutex_);
  for (Key& key : changes.added_keys) {
    if (rollouts_.contains(key)) unsaved_.insert(std::move(key));
  }
  for (const RolloutStore::Row& row : changes.removed) unremoved_.insert(KeyOf(row.cluster, row.id));
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

RolloutLog::Numbered RolloutLog::ListBehind(int64_t no, size_t limit) const {
  const std::lock_guard lock(mutex_);
  if (no > last_number_ && last_number_ > 0) no = 0;
  Numbered out{.next = no};
  size_t bytes = 0;
  const int64_t end = unsaved_numbers_.empty() ? INT64_MAX : *unsaved_numbers_.begin();
  for (auto it = by_number_.upper_bound(no); it != by_number_.end() && it->first < end; ++it) {
    if (out.rollouts.size() == limit || bytes >= kListedBytesMax) {
      out.is_cut = true;
      break;
    }
    out.rollouts.push_back(rollouts_.find(it->second)->second);
    for (const auto& [name, value] : out.rollouts.back().attributes) bytes += name.size() + value.size();
    out.next = it->first;
  }
  return out;
}

}  // namespace tributary
