#include "reducer/metadata/service_watch.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/log.h"
#include "base/status.h"

namespace tributary {
namespace {

constexpr size_t kShownDigits = 16;  // a few less for "go:…"

const std::string& HashOf(const ServiceVersion& version) {
  return version.digest.empty() ? version.build_id : version.digest;
}

void Describe(Attributes& attributes, const ServiceVersion& version, std::string_view prefix,
              std::string_view version_key) {
  const auto set = [&](std::string_view key, const std::string& value) {
    if (!value.empty()) SetAttribute(attributes, key, value);
  };
  set(fmt::format("{}.hash", prefix), HashOf(version));
  set(fmt::format("{}.images", prefix), version.image);
  set(version_key, version.version);
}

Attributes AttributesOf(const ServiceTracker::Change& change) {
  Attributes attributes;
  const ServiceProgram& program = change.program;
  SetAttribute(attributes, "service.name", program.name);
  if (!program.name_space.empty()) SetAttribute(attributes, "service.namespace", program.name_space);
  if (!program.environment.empty()) SetAttribute(attributes, "deployment.environment.name", program.environment);
  SetAttribute(attributes, "process.executable.name", program.executable);
  Describe(attributes, change.now, "rollout", "service.version");
  Describe(attributes, change.previous, "rollout.previous", "rollout.previous.service.version");
  return attributes;
}

std::string IdOf(const ServiceTracker::Change& change) {
  std::string text;
  for (const std::string* part : {&change.program.name_space, &change.program.name, &change.program.environment,
                                  &change.now.version, &change.now.image, &change.now.digest, &change.now.build_id}) {
    text += *part;
    text += '\0';
  }
  // The id is the same after a restart, and in every build.
  return fmt::format("{:016x}@{}", XXH3_64bits(text.data(), text.size()), change.at.value / kNsPerSecond);
}

bool IsOnlyBuild(const ServiceVersion& version) {
  return version.version.empty() && version.image.empty() && version.digest.empty();
}

}  // namespace

ServiceWatch::ServiceWatch(Options options, store::Store& store, const ResourceJoiner& joiner, RolloutLog& log,
                           const Clock& clock, Metrics& metrics)
    : keep_ns_(options.keep_ns),
      store_(store),
      joiner_(joiner),
      log_(log),
      clock_(clock),
      programs_(metrics.AddGauge("tributary_metadata_service_programs",
                                 "Programs of services whose versions the reducer knows")),
      turned_away_(metrics.AddCounter(
          "tributary_metadata_service_programs_refused_total",
          "Times that the version of a sampled program was ignored, because there were too many programs")),
      muted_(metrics.AddCounter(
          "tributary_metadata_rollouts_muted_total",
          "Version changes of services that were not counted as rollouts, because the service changes too often")),
      failures_(metrics.AddCounter(
          "tributary_metadata_rollouts_failures_total",
          "Failures to open, read or write rollouts.db, the file of the stored rollouts and versions of services")),
      retry_("service versions", clock, metrics, failures_) {
  absl::Status status = options.states.status();
  if (status.ok()) states_ = *std::move(options.states);
  if (states_ != nullptr) {
    status = states_->Load(
        [this](const ServiceProgram& program, std::string_view state) { tracker_.Restore(program, state); });
  }
  if (status.ok()) return;
  failures_.Add();
  LogError("versions of services are kept in memory only, a restart loses them error=\"{}\"", Message(status));
  states_.reset();
}

void ServiceWatch::Start() {
  thread_ = std::thread([this] { Run(); });
}

void ServiceWatch::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void ServiceWatch::Run() {
  int64_t next = clock_.Monotonic().value + kPeriodNs;
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, std::chrono::nanoseconds(kFlushNs), [this] { return stopping_.load(); })) {
    lock.unlock();
    (void)log_.Flush();  // after an error, the log tries again later
    if (const int64_t begun = clock_.Monotonic().value; begun >= next) {
      Look();
      const int64_t ended = clock_.Monotonic().value;
      next = ended + std::max(kPeriodNs, (ended - begun) * kPauseFactor);
    }
    lock.lock();
  }
}

void ServiceWatch::Look() {
  const UnixNs now = clock_.Unix();
  ServiceSightings sightings;
  for (uint32_t shard = 0; shard < store_.shard_count(); ++shard) {
    // If one shard is missing, do not judge: versions that run there would seem to be gone.
    if (!LookAt(shard, now, &sightings).ok()) return;
  }
  const uint64_t turned_away = tracker_.turned_away(), muted = tracker_.muted();
  for (const ServiceTracker::Change& change : tracker_.See(sightings.Take(), now)) Report(change);
  turned_away_.Add(tracker_.turned_away() - turned_away + sightings.turned_away());
  muted_.Add(tracker_.muted() - muted);
  Save(now);
  programs_.Set(static_cast<int64_t>(tracker_.programs().size()));
}

absl::Status ServiceWatch::LookAt(uint32_t shard, UnixNs now, ServiceSightings* sightings) {
  ASSIGN_OR_RETURN(const std::unique_ptr<store::StoreReader> reader, store_.OpenReader(shard));
  absl::flat_hash_map<std::string, UnixNs> booted;
  ASSIGN_OR_RETURN(const std::vector<store::NodeStatus> nodes, reader->Nodes());
  for (const store::NodeStatus& node : nodes) booted[node.node_id] = node.booted;

  // Build-ids of the executables that run, by number. Another reader may have other numbers.
  absl::flat_hash_map<uint32_t, std::string> running;
  std::optional<std::vector<store::ExecutableRow>> executables;
  const auto build_id_of = [&](uint32_t executable) -> absl::StatusOr<std::string> {
    const auto [entry, added] = running.try_emplace(executable);
    if (!added) return entry->second;
    if (!executables) {
      ASSIGN_OR_RETURN(executables, reader->Executables());
    }
    if (executable < executables->size() && (*executables)[executable].id.known()) {
      entry->second = (*executables)[executable].id.ToString().substr(0, kShownDigits);
    }
    return entry->second;
  };

  const store::TimeRange range{UnixNs{now.value - kLookBackNs}, UnixNs{now.value + 1}};
  ResourceCache resources(joiner_, range);
  return reader->ScanProcesses(range, [&](const store::ProcessRow& process) -> absl::Status {
    if (stopping_) return absl::CancelledError("stops");
    ASSIGN_OR_RETURN(const std::string build_id, build_id_of(process.executable.value));
    const std::shared_ptr<const ResourceStates> states = resources.Of(process);
    std::optional<ServiceSighting> sighting =
        SightingOf(process, states->back().resource->attributes, build_id, booted[process.node_id], now);
    if (sighting) sightings->Add(*std::move(sighting));
    return absl::OkStatus();
  });
}

// Returns true if the log already has the rollout: the programs of one service change to a version one after the other,
// and the tracker reports each of them.
bool ServiceWatch::IsReported(const ServiceTracker::Change& change) const {
  const Attributes attributes = AttributesOf(change);
  const auto same = [&](const Rollout& rollout, std::string_view key) {
    return FindAttribute(rollout.attributes, key) == FindAttribute(attributes, key);
  };
  const std::vector<Rollout> last = log_.List({kTimeBegin, kTimeEnd}, 1, [&](const Rollout& rollout) {
    return rollout.kind == kServiceKind && rollout.name == change.program.name &&
           rollout.name_space == change.program.name_space && same(rollout, "deployment.environment.name");
  });
  if (last.empty()) return false;
  const bool same_program = same(last[0], "process.executable.name");
  if (IsOnlyBuild(change.now)) return !same_program && std::abs(change.at.value - last[0].at.value) < kTogetherNs;
  return !same_program && same(last[0], "service.version") && same(last[0], "rollout.images") &&
         same(last[0], "rollout.hash");
}

void ServiceWatch::Report(const ServiceTracker::Change& change) {
  if (IsReported(change)) return;
  if (!log_.AddService(IdOf(change), change.at, AttributesOf(change))) return;
  LogInfo("rollout service={} namespace={} environment={} executable={} version={} image={} hash={}",
          EscapeForDisplay(change.program.name), EscapeForDisplay(change.program.name_space),
          EscapeForDisplay(change.program.environment), EscapeForDisplay(change.program.executable),
          EscapeForDisplay(change.now.version), EscapeForDisplay(change.now.image),
          EscapeForDisplay(HashOf(change.now)));
}

void ServiceWatch::Save(UnixNs now) {
  // A stored version whose rollout is not stored would hide the rollout after a restart.
  if (!log_.Flush().ok() || !retry_.MayTry()) return;
  std::vector<ServiceStateStore::Row> rows;
  for (ServiceProgram& program : tracker_.Forget(now, keep_ns_)) {
    rows.push_back({std::move(program), std::nullopt});
  }
  for (auto& [name, program] : tracker_.programs()) {
    if (std::exchange(program.is_dirty, false)) rows.push_back({name, ServiceTracker::Encode(program)});
  }
  if (states_ == nullptr || rows.empty()) return;
  const absl::Status saved = states_->Save(rows);
  retry_.Record(saved);
  if (saved.ok()) return;
  for (const ServiceStateStore::Row& row : rows) {
    if (auto it = tracker_.programs().find(row.program); it != tracker_.programs().end()) it->second.is_dirty = true;
  }
}

}  // namespace tributary
