#include "reducer/export/sample_feed.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/saturate.h"
#include "base/status.h"
#include "profile/sample_types.h"

namespace tributary {
namespace {

constexpr uint64_t kSkippedAtOnceMax = 1'000'000;  // some 0.1 s

}  // namespace

absl::Status SampleFeed::Load() {
  if (has_position_) return absl::OkStatus();
  ASSIGN_OR_RETURN(saved_, shared_.store.positions().LoadPosition(shared_.exporter, shard_));
  has_position_ = true;
  is_new_ = !saved_;
  if (!saved_) return absl::OkStatus();
  read_to_ = saved_->cursor;
  last_ = saved_->request;
  if (last_) doubt_to_ = last_->end;
  return absl::OkStatus();
}

absl::Status SampleFeed::ReadNext() {
  RETURN_IF_ERROR(Load());
  ASSIGN_OR_RETURN(const std::unique_ptr<store::StoreReader> reader, shared_.store.OpenReader(shard_));
  RETURN_IF_ERROR(SkipLagging(*reader));
  ASSIGN_OR_RETURN(std::unique_ptr<ShardScan> scan, ShardScan::Read(*reader, read_to_, shared_.scan_rows_max));
  CountExpired(scan->committed());
  NoteNewest(scan->committed().newest);
  StartAt(scan->begin());
  if (scan->row_count() == 0) return absl::OkStatus();
  scan_ = std::move(scan);
  held_since_ = shared_.clock.Monotonic();
  return absl::OkStatus();
}

absl::Status SampleFeed::FindExpired() {
  RETURN_IF_ERROR(Load());
  ASSIGN_OR_RETURN(const std::unique_ptr<store::StoreReader> reader, shared_.store.OpenReader(shard_));
  const auto none = [](const store::SampleColumns&, const store::Cursor&) { return absl::OkStatus(); };
  ASSIGN_OR_RETURN(const store::CommittedScan scan, reader->ScanCommitted(read_to_, 0, none));
  CountExpired(scan);
  NoteNewest(scan.newest);
  const absl::Status skipped = SkipLagging(*reader);
  // Otherwise the samples of a scan must be sent first.
  if (scan_ == nullptr) StartAt(read_to_);
  return skipped;
}

// Sets the position that must be saved before the samples behind it are sent. A new exporter saves its position even if
// it is the shard's first one: samples that expire from now on count, also if the process is killed. As long as the
// shard has had no samples, its file may be unreadable for a moment, so that other samples have expired before.
void SampleFeed::StartAt(const store::Cursor& begin) {
  if (saved_ ? begin == saved_->cursor : is_new_) return;
  unsaved_ = begin;
  last_.reset();
}

void SampleFeed::CountExpired(const store::CommittedScan& scan) {
  const bool starts_over = std::pair(scan.next.chunk, scan.next.rows) < std::pair(read_to_.chunk, read_to_.rows);
  if (starts_over) {
    seen_to_ = scan.newest;
    doubt_to_.reset();
  }
  const bool counts = !is_new_ && !starts_over && read_to_.chunk >= seen_to_;
  read_to_ = scan.next;
  if (scan.newest > 0) is_new_ = false;
  if ((scan.expired_chunks == 0 && scan.expired_samples == 0) || !counts) return;
  shared_.counters.expired_chunks.Add(scan.expired_chunks);
  shared_.counters.expired_samples.Add(scan.expired_samples);
  uint64_t held = 0;
  if (shared_.expired_log.Allow(shared_.clock.Monotonic(), &held)) {
    LogWarning(
        "samples expired before they were exported, the receiver is too slow or was away too long exporter={} shard={} "
        "chunks={} samples={} suppressed={}",
        shared_.exporter, shard_, scan.expired_chunks, scan.expired_samples, held);
  }
}

// Remembers which chunks exist now. There are about kMarksMax marks, whatever the limit of the lag is.
void SampleFeed::NoteNewest(int64_t newest) {
  if (shared_.lag_max_ns == 0) return;
  const MonotonicNs now = shared_.clock.Monotonic();
  // A file that was replaced has other chunks.
  if (!marks_.empty() && newest < marks_.back().newest) marks_.clear();
  if (marks_.empty() || now.value - marks_.back().at.value >= LookEveryNs(shared_.lag_max_ns)) {
    marks_.push_back({now, newest});
  }
  // Of the marks that are old enough to skip to, only the latest one is needed.
  while (marks_.size() > 1 && now.value - marks_[1].at.value >= shared_.lag_max_ns) marks_.pop_front();
}

// Skips the chunks that have waited longer than the limit of the lag, and counts their samples. Stops after about
// kSkippedAtOnceMax samples: the next call goes on.
absl::Status SampleFeed::SkipLagging(store::StoreReader& reader) {
  const MonotonicNs now = shared_.clock.Monotonic();
  if (shared_.lag_max_ns == 0 || marks_.empty() || now.value - marks_.front().at.value < shared_.lag_max_ns) {
    return absl::OkStatus();
  }
  const int64_t skip_to = marks_.front().newest;
  if (read_to_.chunk >= skip_to) return absl::OkStatus();
  ASSIGN_OR_RETURN(const auto types, reader.SampleTypes());
  uint64_t samples = 0, cpu_ns = 0;
  bool stopped = false;
  // What was visited so far. The scan itself returns nothing if the visitor ends it.
  store::CommittedScan visited{.next = read_to_, .newest = skip_to};
  const auto count = [&](const store::SampleColumns& columns, const store::Cursor& begin) -> absl::Status {
    stopped = begin.chunk >= skip_to || begin.chunk < visited.next.chunk || shared_.is_cancelled();
    if (stopped) return absl::CancelledError("enough samples were skipped");
    const uint64_t in_chunk = std::accumulate(columns.counts.begin(), columns.counts.end(), uint64_t{0});
    samples += in_chunk;
    visited.MoveTo(begin.chunk + 1, begin.samples);
    visited.next = {.chunk = begin.chunk + 1, .samples = std::nullopt};
    if (begin.samples) visited.next.samples = *begin.samples + in_chunk;
    const auto type = types.find(columns.type);
    if (type == types.end() || type->second != InfoOf(*FindSampleType(SampleType::kCpu))) return absl::OkStatus();
    for (const uint64_t value : columns.values) AddSaturating(value, &cpu_ns);
    return absl::OkStatus();
  };
  const absl::StatusOr<store::CommittedScan> scan = reader.ScanCommitted(read_to_, kSkippedAtOnceMax, count);
  CountExpired(scan.ok() ? *scan : visited);
  shared_.counters.skipped_samples.Add(samples);
  shared_.counters.skipped_cpu_ns.Add(cpu_ns);
  uint64_t held = 0;
  if (samples > 0 && shared_.skipped_log.Allow(now, &held)) {
    LogWarning(
        "skips samples that waited longer than --export-lag-max, the receiver is too slow or was away too long "
        "exporter={} shard={} samples={} cpu_ns={} suppressed={}",
        shared_.exporter, shard_, samples, cpu_ns, held);
  }
  return stopped ? absl::OkStatus() : scan.status();
}

void SampleFeed::StartRequests(JoinedProcesses joined) {
  maker_ = std::make_unique<RequestMaker>(*scan_, shared_.symbols, shared_.joiner, std::move(joined), shared_.builder);
}

bool SampleFeed::MakeNext() {
  std::optional<store::ExportRequest> last = std::exchange(last_, std::nullopt);
  if (last && !scan_->begin().IsBefore(last->end)) last.reset();
  made_ = maker_->Next(last ? std::optional(last->end) : std::nullopt);
  if (made_.request == nullptr) return false;
  samples_in_doubt_ = SamplesOfLastRun();
  const bool is_same = last && made_.rows == last->count && made_.request->content() == last->content;
  identity_ = is_same ? otlp::RequestIdentity{last->sender, last->session, last->first}
                      : otlp::RequestIdentity{shared_.sender, session_, next_number_};
  const uint64_t next = made_.request->SetProfileIds(identity_);
  if (!is_same) next_number_ = next;
  return true;
}

// Returns how many samples of the new request the last run may have sent. If it is divided differently now, the last of
// its requests may go on with samples that were not sent.
uint64_t SampleFeed::SamplesOfLastRun() const {
  if (!doubt_to_ || !made_.begin.IsBefore(*doubt_to_)) return 0;
  if (!doubt_to_->samples || !made_.begin.samples || *doubt_to_->samples < *made_.begin.samples) return made_.samples;
  return std::min(made_.samples, *doubt_to_->samples - *made_.begin.samples);
}

void SampleFeed::FinishRequest() {
  unsaved_ = made_.next;
  made_ = {};
}

void SampleFeed::FinishScan() {
  maker_.reset();
  scan_.reset();
}

absl::Status SampleFeed::SaveRequest() {
  return Save({.cursor = made_.begin,
               .request = store::ExportRequest{.end = made_.next,
                                               .sender = identity_.sender,
                                               .session = identity_.session,
                                               .first = identity_.first,
                                               .count = made_.rows,
                                               .content = made_.request->content()}});
}

absl::Status SampleFeed::SaveCursor() {
  if (!unsaved_) return absl::OkStatus();
  RETURN_IF_ERROR(Save({.cursor = *unsaved_, .request = std::nullopt}));
  unsaved_.reset();
  return absl::OkStatus();
}

absl::Status SampleFeed::Save(const store::ExportPosition& position) {
  if (saved_ == position) return absl::OkStatus();
  RETURN_IF_ERROR(shared_.store.positions().SavePosition(shared_.exporter, shard_, position));
  saved_ = position;
  return absl::OkStatus();
}

}  // namespace tributary
