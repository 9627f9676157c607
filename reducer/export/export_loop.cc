#include "reducer/export/export_loop.h"

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
      counters_(metrics, options_.metric_label) {
  if (options_.events == nullptr) return;
  events_.emplace(options_.cursor_name, options_.sender, store_, *options_.events,
                  EventExport::Counters{counters_.events, counters_.refused_events, counters_.repeated_events});
}

void ExportLoop::AddFeeds() {
  for (auto shard = static_cast<uint32_t>(feeds_.size()); shard < store_.shard_count(); ++shard) {
    feeds_.emplace_back().shard = shard;
  }
  for (Feed& feed : feeds_) {
    absl::Status status = LoadPosition(feed);
    if (status.ok() && events_) status = events_->Load(feed.shard);
    if (!status.ok()) LogFailure("read its position", status);
  }
}

int64_t ExportLoop::RunOnce() {
  int64_t wait = not_before_.value - clock_.Monotonic().value;
  if (wait > 0) return wait;
  AddFeeds();
  if (!SaveAll()) return kPollNs;
  // The receiver may have got a part of this request, so nothing else may be sent before it.
  if (events_ && events_->interrupted()) {
    const Progress progress = AdvanceEvents(false);
    if (progress == Progress::kUnsent) return WaitForRetry();
    if (progress == Progress::kUnsaved) return kPollNs;
  }
  bool more = false, waits = false;
  for (size_t i = 0, first = FirstFeed(); i < feeds_.size(); ++i) {
    Progress progress = Advance(feeds_[(first + i) % feeds_.size()], false);
    // There is one receiver: if it does not take data of one shard now, it does not take data of another.
    if (progress == Progress::kUnsent) return WaitForRetry();
    if (progress == Progress::kUnsaved) return kPollNs;
    more |= progress == Progress::kMore;
    waits |= progress == Progress::kWaiting || progress == Progress::kUnreadable;
  }
  if (events_) {
    const Progress progress = AdvanceEvents(false);
    if (progress == Progress::kUnsent) return WaitForRetry();
    if (progress == Progress::kUnsaved) return kPollNs;
    more |= progress == Progress::kMore;
    waits |= progress == Progress::kUnreadable;
  }
  if (more) return 0;
  return waits ? std::min(kPollNs, options_.interval_ns) : options_.interval_ns;
}

// Returns the feed whose request was not accepted in this run, or else the one whose request was not accepted in the
// last run, or else the first feed. The receiver may have got a part of this request, so no other request may be sent
// before it. Both kinds occur if the shard of the last run's request could not be read for some time.
size_t ExportLoop::FirstFeed() const {
  auto feed = std::find_if(feeds_.begin(), feeds_.end(), [](const Feed& f) { return f.made.request != nullptr; });
  if (feed == feeds_.end()) {
    feed = std::find_if(feeds_.begin(), feeds_.end(), [](const Feed& f) { return f.last.has_value(); });
  }
  return feed == feeds_.end() ? 0 : static_cast<size_t>(feed - feeds_.begin());
}

// Saves the positions that could not be saved before.
bool ExportLoop::SaveAll() {
  for (Feed& feed : feeds_) {
    if (!SaveCursor(feed)) return false;
  }
  if (!events_) return true;
  const absl::Status saved = events_->SaveAll();
  if (!saved.ok()) LogFailure("save its position in the store", saved);
  return saved.ok();
}

// Reports samples that expire while the receiver takes none, and returns the time until the next attempt.
int64_t ExportLoop::WaitForRetry() {
  for (Feed& feed : feeds_) {
    if (absl::Status status = FindExpired(feed); !status.ok()) LogFailure("read", status);
    if (!SaveCursor(feed)) break;
  }
  return std::max<int64_t>(not_before_.value - clock_.Monotonic().value, 0);
}

bool ExportLoop::Flush(MonotonicNs deadline) {
  EndBy(deadline);
  AddFeeds();
  if (!SaveAll()) return false;
  const auto ends = [](Progress progress) { return progress == Progress::kUnsent || progress == Progress::kUnsaved; };
  if (events_ && events_->interrupted() && ends(AdvanceEvents(true))) return false;
  bool all = true;
  for (size_t i = 0, first = FirstFeed(); i < feeds_.size(); ++i) {
    Progress progress = Progress::kMore;
    while (progress == Progress::kMore) progress = Advance(feeds_[(first + i) % feeds_.size()], true);
    if (ends(progress)) return false;
    all &= progress == Progress::kIdle;
  }
  return (!events_ || AdvanceEvents(true) == Progress::kIdle) && all;
}

// Returns 0 if no request may begin now.
int64_t ExportLoop::SendTimeout() const {
  const int64_t left = deadline_ns_ - clock_.Monotonic().value;
  return left < kAnswerNs || cancelled_ ? 0 : std::min(left, options_.send_timeout_ns);
}

// Sends one request of process events for each shard, or all requests if `flush` is set. Begins with an interrupted
// request.
ExportLoop::Progress ExportLoop::AdvanceEvents(bool flush) {
  Progress progress = Progress::kIdle;
  const uint32_t first = events_->interrupted().value_or(0);
  for (size_t i = 0; i < feeds_.size(); ++i) {
    EventExport::Step step;
    do {
      const int64_t timeout_ns = SendTimeout();
      if (timeout_ns == 0) return Progress::kUnsent;
      step = events_->Advance(static_cast<uint32_t>((first + i) % feeds_.size()), timeout_ns);
    } while (flush && step.progress == EventExport::Progress::kMore);
    if (step.progress == EventExport::Progress::kUnsent) {
      if (!cancelled_) Delay(step.result);
      return Progress::kUnsent;
    }
    if (step.sent_request) {
      backoff_ns_.Reset();
      CountAnswer(step.result, step.events, step.refused, "process events");
    }
    if (step.progress == EventExport::Progress::kUnsaved) {
      LogFailure("save its position in the store", step.status);
      return Progress::kUnsaved;
    }
    if (step.progress == EventExport::Progress::kUnreadable) {
      LogFailure("read process events", step.status);
      progress = Progress::kUnreadable;
    } else if (step.progress == EventExport::Progress::kMore && progress == Progress::kIdle) {
      progress = Progress::kMore;
    }
  }
  return progress;
}

// Advances one scan of one shard as far as possible, from reading to the saved cursor.
ExportLoop::Progress ExportLoop::Advance(Feed& feed, bool flush) {
  if (feed.scan == nullptr) {
    if (absl::Status status = ReadNext(feed); !status.ok()) {
      LogFailure("read", status);
      return Progress::kUnreadable;
    }
    if (!SaveCursor(feed)) return Progress::kUnsaved;
    if (feed.scan == nullptr) return Progress::kIdle;
  }
  bool full = feed.scan->row_count() >= options_.scan_rows_max || feed.scan->is_cut();
  if (feed.maker == nullptr) {
    // A request of the last run is repeated at once: until then, no other request may be in doubt.
    if (!flush && !full && !feed.last) {
      // Call both functions, so that both waits start at once.
      const bool awaits_names = AwaitsNames(feed);
      if (AwaitsMetadata(feed) || awaits_names) return Progress::kWaiting;
    }
    feed.maker = std::make_unique<RequestMaker>(*feed.scan, symbols_, options_.joiner, options_.builder);
  }
  if (const Progress progress = SendScan(feed); progress != Progress::kIdle) return progress;
  feed.maker.reset();
  feed.scan.reset();
  return full || flush ? Progress::kMore : Progress::kIdle;
}

// Returns kIdle if all samples of the scan were sent and the cursor is saved.
ExportLoop::Progress ExportLoop::SendScan(Feed& feed) {
  for (;;) {
    if (!SaveCursor(feed)) return Progress::kUnsaved;
    if (feed.made.request == nullptr) MakeNext(feed);
    if (feed.made.request == nullptr) return Progress::kIdle;
    const int64_t timeout_ns = SendTimeout();
    if (timeout_ns == 0) return Progress::kUnsent;
    if (!SaveRequest(feed)) return Progress::kUnsaved;
    if (!Send(feed, timeout_ns)) return Progress::kUnsent;
    feed.unsaved = feed.made.next;
    feed.made = {};
  }
}

// Makes the next request and its identity. If the last run may have sent a request from the same position, the new one
// has the same samples and the same identity.
void ExportLoop::MakeNext(Feed& feed) {
  std::optional<store::ExportRequest> last = std::exchange(feed.last, std::nullopt);
  if (last && !feed.scan->begin().IsBefore(last->end)) last.reset();
  feed.made = feed.maker->Next(last ? std::optional(last->end) : std::nullopt);
  if (feed.made.request == nullptr) return;
  feed.in_doubt = feed.doubt_to && feed.made.begin.IsBefore(*feed.doubt_to);
  const uint64_t content = otlp::ContentOf(*feed.made.request);
  const bool is_same = last && feed.made.rows == last->count && content == last->content;
  feed.identity = is_same ? otlp::RequestIdentity{last->sender, last->session, last->first}
                          : otlp::RequestIdentity{options_.sender, feed.session, feed.next_number};
  feed.content = content;
  const uint64_t next = otlp::SetProfileIds(feed.identity, feed.made.request.get());
  if (!is_same) feed.next_number = next;
}

bool ExportLoop::SaveRequest(Feed& feed) {
  return Save(feed, {.cursor = feed.made.begin,
                     .request = store::ExportRequest{.end = feed.made.next,
                                                     .sender = feed.identity.sender,
                                                     .session = feed.identity.session,
                                                     .first = feed.identity.first,
                                                     .count = feed.made.rows,
                                                     .content = feed.content}});
}

// Returns false if a position must be saved before the next request, and cannot be saved.
bool ExportLoop::SaveCursor(Feed& feed) {
  if (!feed.unsaved) return true;
  if (!Save(feed, {.cursor = *feed.unsaved, .request = std::nullopt})) return false;
  feed.unsaved.reset();
  return true;
}

bool ExportLoop::Save(Feed& feed, const store::ExportPosition& position) {
  if (feed.saved == position) return true;
  const absl::Status saved = store_.positions().SavePosition(options_.cursor_name, feed.shard, position);
  if (!saved.ok()) {
    LogFailure("save its position in the store", saved);
    return false;
  }
  feed.saved = position;
  return true;
}

absl::Status ExportLoop::LoadPosition(Feed& feed) {
  if (feed.has_position) return absl::OkStatus();
  ASSIGN_OR_RETURN(feed.saved, store_.positions().LoadPosition(options_.cursor_name, feed.shard));
  feed.has_position = true;
  feed.is_new = !feed.saved;
  if (!feed.saved) return absl::OkStatus();
  feed.read_to = feed.saved->cursor;
  feed.last = feed.saved->request;
  if (feed.last) feed.doubt_to = feed.last->end;
  return absl::OkStatus();
}

absl::Status ExportLoop::ReadNext(Feed& feed) {
  RETURN_IF_ERROR(LoadPosition(feed));
  ASSIGN_OR_RETURN(std::unique_ptr<store::StoreReader> reader, store_.OpenReader(feed.shard));
  ASSIGN_OR_RETURN(std::unique_ptr<ShardScan> scan, ShardScan::Read(*reader, feed.read_to, options_.scan_rows_max));
  CountExpired(feed, scan->committed());
  StartAt(feed, scan->begin());
  if (scan->row_count() == 0) return absl::OkStatus();
  feed.scan = std::move(scan);
  feed.held_since = clock_.Monotonic();
  return absl::OkStatus();
}

absl::Status ExportLoop::FindExpired(Feed& feed) {
  RETURN_IF_ERROR(LoadPosition(feed));
  ASSIGN_OR_RETURN(std::unique_ptr<store::StoreReader> reader, store_.OpenReader(feed.shard));
  const auto none = [](const store::SampleColumns&, const store::Cursor&) { return absl::OkStatus(); };
  ASSIGN_OR_RETURN(const store::CommittedScan scan, reader->ScanCommitted(feed.read_to, 0, none));
  CountExpired(feed, scan);
  // Otherwise the samples of a scan must be sent first.
  if (feed.scan == nullptr) StartAt(feed, scan.next);
  return absl::OkStatus();
}

// Sets the position that must be saved before the samples behind it are sent. A new exporter saves its position even if
// it is the shard's first one: samples that expire from now on count, also if the process is killed. As long as the
// shard has had no samples, its file may be unreadable for a moment, so that other samples have expired before.
void ExportLoop::StartAt(Feed& feed, const store::Cursor& begin) {
  if (feed.saved ? begin == feed.saved->cursor : feed.is_new) return;
  feed.unsaved = begin;
  feed.last.reset();
}

void ExportLoop::CountExpired(Feed& feed, const store::CommittedScan& scan) {
  const bool starts_over =
      std::pair(scan.next.chunk, scan.next.rows) < std::pair(feed.read_to.chunk, feed.read_to.rows);
  if (starts_over) {
    feed.seen_to = scan.newest;
    feed.doubt_to.reset();
  }
  const bool counts = !feed.is_new && !starts_over && feed.read_to.chunk >= feed.seen_to;
  feed.read_to = scan.next;
  if (scan.newest > 0) feed.is_new = false;
  if ((scan.expired_chunks == 0 && scan.expired_samples == 0) || !counts) return;
  counters_.expired_chunks.Add(scan.expired_chunks);
  counters_.expired_samples.Add(scan.expired_samples);
  uint64_t held = 0;
  if (expired_log_.Allow(clock_.Monotonic(), &held)) {
    LogWarning(
        "samples expired before they were exported, the receiver is too slow or was away too long exporter={} shard={} "
        "chunks={} samples={} suppressed={}",
        options_.cursor_name, feed.shard, scan.expired_chunks, scan.expired_samples, held);
  }
}

bool ExportLoop::AwaitsNames(const Feed& feed) {
  MonotonicNs now = clock_.Monotonic();
  // The waits for all executables start at once, also for executables behind the first one that is awaited.
  bool wait = false;
  for (const ExecutableId& id : feed.scan->executables()) {
    if (symbols_(id) == nullptr) wait |= names_.ShouldWait(id, now);
  }
  return wait && now.value - feed.held_since.value < kNamesWaitNs;
}

bool ExportLoop::AwaitsMetadata(const Feed& feed) {
  if (options_.joiner == nullptr || options_.metadata_wait_ns == 0) return false;
  const MonotonicNs now = clock_.Monotonic();
  bool wait = false;
  ResourceCache resources(*options_.joiner, feed.scan->range());
  for (const auto& [no, process] : feed.scan->processes()) {
    const Resource& resource = *resources.Of(process)->back().resource;
    if (!resource.in_container) continue;
    const std::string key = process.node_id + '\0' + process.container_id + '\0' + process.cgroup_path;
    if (options_.joiner->IsAwaited(process, resource)) {
      wait |= containers_.ShouldWait(key, now);
    } else if (resource.is_complete) {
      containers_.Arrived(key);
    }
  }
  return wait && now.value - feed.held_since.value < options_.metadata_wait_ns;
}

// Returns true if this request needs no other attempt.
bool ExportLoop::Send(Feed& feed, int64_t timeout_ns) {
  const otlp::SendResult result = sender_->Send(*feed.made.request, feed.identity, timeout_ns);
  if (feed.in_doubt && (result.status.ok() || result.in_doubt)) counters_.repeated_samples.Add(feed.made.samples);
  feed.in_doubt |= result.in_doubt;
  if (!result.status.ok() && cancelled_) return false;  // the next run sends the rest
  if (!result.status.ok() && result.may_retry) {
    Delay(result);
    return false;
  }
  backoff_ns_.Reset();
  counters_.dropped_strings.Add(feed.made.dropped_strings + result.dropped_strings);
  counters_.left_out_samples.Add(result.left_out_samples);
  (result.status.ok() ? counters_.samples : counters_.refused_samples).Add(feed.made.samples);
  CountAnswer(result, feed.made.rows, result.status.ok() ? 0 : feed.made.samples, "samples");
  return true;
}

// Counts an accepted request, and reports what the receiver refused or rejected. `items_max`: the request has at most
// this many items, so the receiver cannot have rejected more. `refused`: samples or process events of the request that
// are not sent again.
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
