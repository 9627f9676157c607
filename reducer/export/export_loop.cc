#include "reducer/export/export_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "reducer/export/export_counters.h"

namespace tributary {

ExportLoop::ExportLoop(Options options, store::Store& store, SymbolLookup symbols,
                       std::unique_ptr<otlp::ProfilesSender> sender, const Clock& clock, Metrics& metrics)
    : options_(std::move(options)),
      store_(store),
      symbols_(std::move(symbols)),
      sender_(std::move(sender)),
      clock_(clock),
      containers_(options_.metadata_wait_ns),
      random_(static_cast<uint64_t>(clock.Unix().value)),
      counters_(metrics, options_.metric_label),
      samples_{.exporter = options_.cursor_name,
               .sender = options_.sender,
               .builder = options_.builder,
               .scan_rows_max = options_.scan_rows_max,
               .joiner = options_.joiner,
               .store = store_,
               .symbols = symbols_,
               .clock = clock_,
               .counters = counters_,
               .lag_max_ns = options_.lag_max_ns,
               .is_cancelled = [this] { return SendTimeout() == 0; }} {
  if (options_.records == nullptr) return;
  const auto add = [this](std::unique_ptr<RecordSource> source, const RecordCounters& counters) {
    records_.push_back(std::make_unique<RecordExport>(options_.cursor_name, options_.sender, store_.positions(),
                                                      std::move(source), counters, clock_));
  };
  const bool joins = options_.records->joins_events();
  const EventFacts facts{.are_sent = joins, .hold_ns = joins ? options_.metadata_wait_ns : 0, .is_cancelled = [this] {
                           return SendTimeout() == 0;
                         }};
  add(MakeEventSource(store_, *options_.records, facts), counters_.events);
  add(MakeLossSource(store_, *options_.records), counters_.losses);
  if (options_.rollouts != nullptr) {
    add(MakeRolloutSource(*options_.rollouts, *options_.records), counters_.rollouts);
  }
}

void ExportLoop::AddFeeds() {
  for (auto shard = static_cast<uint32_t>(feeds_.size()); shard < store_.shard_count(); ++shard) {
    feeds_.emplace_back(shard, samples_);
  }
  for (uint32_t shard = 0; shard < feeds_.size(); ++shard) {
    absl::Status status = feeds_[shard].Load();
    for (const auto& records : records_) {
      if (status.ok()) status = records->Load(shard);
    }
    if (!status.ok()) LogFailure("read its position", status);
  }
}

int64_t ExportLoop::RunOnce() {
  const int64_t wait = not_before_.value - clock_.Monotonic().value;
  if (wait > 0) return options_.lag_max_ns == 0 ? wait : WaitForRetry();
  AddFeeds();
  if (!SaveAll()) return kPollNs;
  // The receiver may have got a part of this request, so nothing else may be sent before it.
  const Progress interrupted = AdvanceRecords(false, /*only_interrupted=*/true);
  if (interrupted == Progress::kUnsent) return WaitForRetry();
  if (interrupted == Progress::kUnsaved) return kPollNs;
  const bool is_due = clock_.Monotonic().value >= next_samples_.value;
  const Progress samples = is_due ? AdvanceFeeds() : Progress::kIdle;
  if (samples == Progress::kUnsent) return WaitForRetry();
  if (samples == Progress::kUnsaved) return kPollNs;
  const Progress records = AdvanceRecords(false);
  if (records == Progress::kUnsent) return WaitForRetry();
  if (records == Progress::kUnsaved) return kPollNs;
  // The passes that only records need do not send samples.
  const MonotonicNs now = clock_.Monotonic();
  const bool only_records = samples == Progress::kIdle && records != Progress::kIdle;
  if (is_due) next_samples_ = MonotonicNs{only_records ? now.value + options_.interval_ns : 0};
  const Progress all = std::max(samples, records);
  if (all == Progress::kMore) return 0;
  if (all != Progress::kIdle) return std::min(kPollNs, options_.interval_ns);
  return is_due ? options_.interval_ns : std::max<int64_t>(next_samples_.value - now.value, 0);
}

// Advances the samples of all shards.
ExportLoop::Progress ExportLoop::AdvanceFeeds() {
  Progress all = Progress::kIdle;
  for (size_t i = 0, first = FirstFeed(); i < feeds_.size(); ++i) {
    const Progress progress = Advance(feeds_[(first + i) % feeds_.size()], false);
    // There is one receiver: if it does not take data of one shard now, it does not take data of another.
    if (progress == Progress::kUnsent || progress == Progress::kUnsaved) return progress;
    all = std::max(all, progress);
  }
  return all;
}

// Returns the feed whose request was not accepted in this run, or else the one whose request was not accepted in the
// last run, or else the first feed. The receiver may have got a part of this request, so no other request may be sent
// before it. Both kinds occur if the shard of the last run's request could not be read for some time.
size_t ExportLoop::FirstFeed() const {
  auto feed = std::find_if(feeds_.begin(), feeds_.end(), [](const SampleFeed& f) { return f.has_request(); });
  if (feed == feeds_.end()) {
    feed = std::find_if(feeds_.begin(), feeds_.end(), [](const SampleFeed& f) { return f.has_last_request(); });
  }
  return feed == feeds_.end() ? 0 : static_cast<size_t>(feed - feeds_.begin());
}

// Saves the positions that could not be saved before.
bool ExportLoop::SaveAll() {
  for (SampleFeed& feed : feeds_) {
    if (!IsSaved(feed.SaveCursor())) return false;
  }
  return std::all_of(records_.begin(), records_.end(),
                     [this](const auto& records) { return IsSaved(records->SaveAll()); });
}

// Reports samples that expire or wait too long while the receiver takes none. Returns the time until the next attempt,
// or until it must look for such samples again.
int64_t ExportLoop::WaitForRetry() {
  for (SampleFeed& feed : feeds_) {
    if (absl::Status status = feed.FindExpired(); !status.ok()) LogFailure("read", status);
    if (!IsSaved(feed.SaveCursor())) break;
  }
  const int64_t wait = std::max<int64_t>(not_before_.value - clock_.Monotonic().value, 0);
  return options_.lag_max_ns == 0 ? wait : std::min(wait, SampleFeed::LookEveryNs(options_.lag_max_ns));
}

bool ExportLoop::Flush(MonotonicNs deadline) {
  EndBy(deadline);
  AddFeeds();
  if (!SaveAll()) return false;
  const auto ends = [](Progress progress) { return progress == Progress::kUnsent || progress == Progress::kUnsaved; };
  if (ends(AdvanceRecords(true, /*only_interrupted=*/true))) return false;
  bool all = true;
  for (size_t i = 0, first = FirstFeed(); i < feeds_.size(); ++i) {
    Progress progress = Progress::kMore;
    while (progress == Progress::kMore) progress = Advance(feeds_[(first + i) % feeds_.size()], true);
    if (ends(progress)) return false;
    all &= progress == Progress::kIdle;
  }
  return AdvanceRecords(true) == Progress::kIdle && all;
}

// Returns 0 if no request may begin now.
int64_t ExportLoop::SendTimeout() const {
  const int64_t left = deadline_ns_ - clock_.Monotonic().value;
  return left < kAnswerNs || cancelled_ ? 0 : std::min(left, options_.send_timeout_ns);
}

// Sends one request of each kind of records for each shard, or all requests if `flush` is set. With `only_interrupted`,
// only for the kinds with an interrupted request.
ExportLoop::Progress ExportLoop::AdvanceRecords(bool flush, bool only_interrupted) {
  Progress all = Progress::kIdle;
  for (const auto& records : records_) {
    if (only_interrupted && !records->interrupted()) continue;
    const Progress progress = AdvanceRecords(*records, flush);
    if (progress == Progress::kUnsent || progress == Progress::kUnsaved) return progress;
    all = std::max(all, progress);
  }
  return all;
}

// Begins with an interrupted request.
ExportLoop::Progress ExportLoop::AdvanceRecords(RecordExport& records, bool flush) {
  Progress all = Progress::kIdle;
  const uint32_t first = records.interrupted().value_or(0);
  for (size_t i = 0; i < feeds_.size(); ++i) {
    Progress progress = Progress::kMore;
    do {
      progress = SendRecords(records, static_cast<uint32_t>((first + i) % feeds_.size()), flush);
    } while (flush && progress == Progress::kMore);
    if (progress == Progress::kUnsent || progress == Progress::kUnsaved) return progress;
    all = std::max(all, progress);
  }
  return all;
}

// Sends one request of records.
ExportLoop::Progress ExportLoop::SendRecords(RecordExport& records, uint32_t shard, bool flush) {
  const int64_t timeout_ns = SendTimeout();
  if (timeout_ns == 0) return Progress::kUnsent;
  const RecordExport::Step step = records.Advance(shard, timeout_ns, flush);
  if (step.sent_request) {
    backoff_ns_.Reset();
    CountAnswer(step.result, step.records, step.refused, records.noun());
  }
  switch (step.progress) {
    case RecordExport::Progress::kIdle:
      return Progress::kIdle;
    case RecordExport::Progress::kMore:
      return Progress::kMore;
    case RecordExport::Progress::kWaiting:
      return Progress::kWaiting;
    case RecordExport::Progress::kUnreadable:
      LogFailure(fmt::format("read {}", records.noun()), step.status);
      return Progress::kUnreadable;
    case RecordExport::Progress::kBlocked:
      LogFailure(fmt::format("read {}", records.noun()), step.status);
      return Progress::kUnsaved;
    case RecordExport::Progress::kUnsaved:
      (void)IsSaved(step.status);
      return Progress::kUnsaved;
    case RecordExport::Progress::kUnsent:
      if (!cancelled_) Delay(step.result);
      return Progress::kUnsent;
  }
  return Progress::kIdle;
}

// Advances one scan of one shard as far as possible, from reading to the saved cursor.
ExportLoop::Progress ExportLoop::Advance(SampleFeed& feed, bool flush) {
  if (feed.scan() == nullptr) {
    if (absl::Status status = feed.ReadNext(); !status.ok()) {
      LogFailure("read", status);
      return Progress::kUnreadable;
    }
    if (!IsSaved(feed.SaveCursor())) return Progress::kUnsaved;
    if (feed.scan() == nullptr) return Progress::kIdle;
  }
  const bool full = feed.is_full();
  if (!feed.has_started()) {
    JoinedProcesses joined;
    // A request of the last run is repeated at once: until then, no other request may be in doubt.
    if (!flush && !full && !feed.has_last_request()) {
      // Call both functions, so that both waits start at once.
      const bool awaits_names = AwaitsNames(feed);
      if (AwaitsMetadata(feed, &joined) || awaits_names) return Progress::kWaiting;
    }
    feed.StartRequests(std::move(joined));
  }
  if (const Progress progress = SendScan(feed); progress != Progress::kIdle) return progress;
  feed.FinishScan();
  return full || flush ? Progress::kMore : Progress::kIdle;
}

// Returns kIdle if all samples of the scan were sent and the cursor is saved.
ExportLoop::Progress ExportLoop::SendScan(SampleFeed& feed) {
  for (;;) {
    if (!IsSaved(feed.SaveCursor())) return Progress::kUnsaved;
    if (!feed.has_request() && !feed.MakeNext()) return Progress::kIdle;
    const int64_t timeout_ns = SendTimeout();
    if (timeout_ns == 0) return Progress::kUnsent;
    if (!IsSaved(feed.SaveRequest())) return Progress::kUnsaved;
    if (!Send(feed, timeout_ns)) return Progress::kUnsent;
    feed.FinishRequest();
    if (!LookAtWaiting()) return Progress::kUnsaved;
  }
}

// The requests of one scan may take longer than the limit of the lag. Looks meanwhile at the samples that wait behind
// it, and at those of other shards. Returns false if a position could not be saved.
bool ExportLoop::LookAtWaiting() {
  if (options_.lag_max_ns == 0) return true;
  const MonotonicNs now = clock_.Monotonic();
  if (now.value < next_look_.value) return true;
  next_look_ = MonotonicNs{now.value + SampleFeed::LookEveryNs(options_.lag_max_ns)};
  for (SampleFeed& feed : feeds_) {
    if (absl::Status status = feed.FindExpired(); !status.ok()) LogFailure("read", status);
    if (!IsSaved(feed.SaveCursor())) return false;
  }
  return true;
}

// Logs an error of saving a position. Returns false if there is one: the position must be saved before the next
// request.
bool ExportLoop::IsSaved(const absl::Status& saved) {
  if (!saved.ok()) LogFailure("save its position in the store", saved);
  return saved.ok();
}

bool ExportLoop::AwaitsNames(const SampleFeed& feed) {
  MonotonicNs now = clock_.Monotonic();
  // The waits for all executables start at once, also for executables behind the first one that is awaited.
  bool wait = false;
  for (const ExecutableId& id : feed.scan()->executables()) {
    if (symbols_(id) == nullptr) wait |= names_.ShouldWait(id, now);
  }
  return wait && now.value - feed.held_since().value < kNamesWaitNs;
}

// Writes the resources of the scan's processes to `joined`, if it must look at them.
bool ExportLoop::AwaitsMetadata(const SampleFeed& feed, JoinedProcesses* joined) {
  if (options_.joiner == nullptr || options_.metadata_wait_ns == 0) return false;
  const MonotonicNs now = clock_.Monotonic();
  bool wait = false;
  ResourceCache resources(*options_.joiner, feed.scan()->range());
  for (const std::optional<store::ProcessRow>& process : feed.scan()->processes()) {
    const std::shared_ptr<const ResourceStates> states = process ? resources.Of(*process) : nullptr;
    if (resources.generation() == 0) joined->push_back(states);
    if (!process) continue;
    const Resource& resource = *states->back().resource;
    if (!resource.in_container) continue;
    const std::string key = process->node_id + '\0' + process->container_id + '\0' + process->cgroup_path;
    if (options_.joiner->IsAwaited(*process, resource)) {
      wait |= containers_.ShouldWait(key, now);
    } else if (resource.is_complete) {
      containers_.Arrived(key);
    }
  }
  // The cache has become too large and was emptied. Then the requests join again, piece by piece.
  if (resources.generation() > 0) joined->clear();
  return wait && now.value - feed.held_since().value < options_.metadata_wait_ns;
}

// Returns true if this request needs no other attempt.
bool ExportLoop::Send(SampleFeed& feed, int64_t timeout_ns) {
  const otlp::SendResult result = sender_->SendBuilt(*feed.request().request, feed.identity(), timeout_ns);
  if (result.status.ok() || result.in_doubt) counters_.repeated_samples.Add(feed.samples_in_doubt());
  if (result.in_doubt) feed.SetInDoubt();
  if (!result.status.ok() && cancelled_) return false;  // the next run sends the rest
  if (!result.status.ok() && result.may_retry) {
    Delay(result);
    return false;
  }
  backoff_ns_.Reset();
  counters_.dropped_strings.Add(feed.request().dropped_strings + result.dropped_strings);
  counters_.left_out_samples.Add(result.left_out_samples);
  (result.status.ok() ? counters_.samples : counters_.refused_samples).Add(feed.request().samples);
  CountAnswer(result, feed.request().rows, result.status.ok() ? 0 : feed.request().samples, "samples");
  return true;
}

// Counts an accepted request, and reports what the receiver refused or rejected. `items_max`: the request has at most
// this many items, so the receiver cannot have rejected more. `refused`: samples or records of the request that are not
// sent again.
void ExportLoop::CountAnswer(const otlp::SendResult& result, uint64_t items_max, uint64_t refused,
                             std::string_view noun) {
  if (result.status.ok()) counters_.requests.Add();
  counters_.rejected_items.Add(
      std::min<uint64_t>(static_cast<uint64_t>(std::max<int64_t>(result.rejected_items, 0)), items_max));
  uint64_t held = 0;
  if (refused > 0) {
    if (!rejection_log_.Allow(clock_.Monotonic(), &held)) return;
    LogError("export refused, {} are not sent again exporter={} refused={} error=\"{}\" suppressed={}", noun,
             options_.cursor_name, refused, result.status.ok() ? result.message : result.status.ToString(), held);
  } else if (result.rejected_items > 0 || !result.message.empty()) {
    if (!rejection_log_.Allow(clock_.Monotonic(), &held)) return;
    LogWarning(
        "the receiver of the export rejected items or sent a warning exporter={} rejected_items={} "
        "message=\"{}\" suppressed={}",
        options_.cursor_name, result.rejected_items, result.message, held);
  }
}

// Sets the time of the next attempt.
void ExportLoop::Delay(const otlp::SendResult& failure) {
  counters_.failures.Add();
  LogFailure("send", failure.status);
  const MonotonicNs now = clock_.Monotonic();
  not_before_ =
      MonotonicNs{now.value + std::max(backoff_ns_.NextJittered(random_), failure.retry_after_ns.value_or(0))};
}

void ExportLoop::LogFailure(std::string_view operation, const absl::Status& status) {
  uint64_t held = 0;
  if (failure_log_.Allow(clock_.Monotonic(), &held)) {
    LogWarning("export cannot {}, will try again exporter={} error=\"{}\" suppressed={}", operation,
               options_.cursor_name, status.ToString(), held);
  }
}

}  // namespace tributary
