#include "reducer/export/record_export.h"

#include <algorithm>
#include <utility>

#include "base/status.h"

namespace tributary {
namespace {

using Progress = RecordExport::Progress;

// Returns the result of a step that has sent nothing.
RecordExport::Step Stopped(Progress progress, absl::Status status) {
  RecordExport::Step step;
  step.progress = progress;
  step.status = std::move(status);
  return step;
}

}  // namespace

RecordExport::RecordExport(const std::string& exporter, std::string sender, store::PositionStore& positions,
                           std::unique_ptr<RecordSource> source, const RecordCounters& counters, const Clock& clock)
    : source_(std::move(source)),
      position_name_(exporter + std::string(source_->position_suffix())),
      sender_(std::move(sender)),
      positions_(positions),
      counters_(counters),
      clock_(clock) {}

absl::Status RecordExport::Load(uint32_t shard) {
  if (feeds_.size() <= shard) feeds_.resize(size_t{shard} + 1);
  Feed& feed = feeds_[shard];
  if (feed.has_position || (shard != 0 && source_->is_in_first_shard())) return absl::OkStatus();
  ASSIGN_OR_RETURN(std::optional<store::ExportPosition> saved, positions_.LoadPosition(position_name_, shard));
  if (saved) {
    feed.last = saved->request;
    feed.saved = *std::move(saved);
  }
  feed.next = feed.saved.cursor;
  feed.has_position = true;
  return absl::OkStatus();
}

std::optional<uint32_t> RecordExport::interrupted() const {
  if (interrupted_) return interrupted_;
  const auto feed = std::find_if(feeds_.begin(), feeds_.end(), [](const Feed& f) { return f.last.has_value(); });
  if (feed == feeds_.end()) return std::nullopt;
  return static_cast<uint32_t>(feed - feeds_.begin());
}

absl::Status RecordExport::Read(Feed& feed, uint32_t shard) {
  ASSIGN_OR_RETURN(RecordSource::Read read, source_->ReadBehind(shard, feed.saved.cursor, kRecordsMax));
  feed.begin = read.begin;
  if (read.next.chunk < read.begin.chunk) {
    // The data were replaced, so the scan has started over. The next run must not continue at the old position.
    feed.last.reset();
    feed.next = feed.begin = {.samples = std::nullopt};
    RETURN_IF_ERROR(SaveCursor(feed, shard));
  } else {
    // The position says how many have expired. Saved first, because a number that was counted must not count again.
    RETURN_IF_ERROR(Save(feed, shard, {.cursor = feed.begin, .request = feed.last}));
    CountExpired(read.expired);
  }
  feed.next = read.next;
  feed.records = std::move(read.records);
  feed.read_at = clock_.Monotonic();
  feed.is_complete = false;
  feed.is_cut = read.is_cut;
  const size_t size = feed.records->size();
  Identify(feed);
  // Otherwise the next read goes back, and meets the damaged records again.
  if (feed.records->size() == size) CountExpired(read.damaged);
  if (feed.records->size() == 0) feed.records.reset();
  return absl::OkStatus();
}

// Gives the records that were read an identity. If the last run may have sent the first of them in a request, they are
// sent in the same request again. If the first records are others, because some have expired or their chunks were
// joined, all of them get new numbers.
void RecordExport::Identify(Feed& feed) {
  const std::optional<store::ExportRequest> last = std::exchange(feed.last, std::nullopt);
  const size_t size = feed.records->size();
  feed.in_doubt = last.has_value() && size > 0;
  if (last && last->count > 0 && size >= last->count && feed.records->ContentOf(last->count) == last->content) {
    if (size > last->count) {
      feed.is_cut = true;
      feed.next = {.chunk = last->end.chunk, .samples = feed.begin.samples};
      if (feed.next.samples) *feed.next.samples += last->count;
    }
    feed.records->Cut(last->count);
    feed.identity = {last->sender, last->session, last->first};
    return;
  }
  feed.identity = {sender_, feed.session, feed.next_number};
  feed.next_number += size;
}

void RecordExport::CountExpired(uint64_t records) {
  if (counters_.expired != nullptr) counters_.expired->Add(records);
}

absl::Status RecordExport::Save(Feed& feed, uint32_t shard, const store::ExportPosition& position) {
  if (position == feed.saved) return absl::OkStatus();
  RETURN_IF_ERROR(positions_.SavePosition(position_name_, shard, position));
  feed.saved = position;
  return absl::OkStatus();
}

absl::Status RecordExport::SaveCursor(Feed& feed, uint32_t shard) {
  return Save(feed, shard, {.cursor = feed.next, .request = std::nullopt});
}

absl::Status RecordExport::SaveAll() {
  for (size_t shard = 0; shard < feeds_.size(); ++shard) {
    Feed& feed = feeds_[shard];
    if (feed.has_position && feed.records == nullptr && !feed.last) {
      RETURN_IF_ERROR(SaveCursor(feed, static_cast<uint32_t>(shard)));
    }
  }
  return absl::OkStatus();
}

// A request of the last run is repeated at once: until then, no other request may be in doubt. If many records wait,
// none are held back.
bool RecordExport::IsHeld(const Feed& feed) const {
  return !feed.is_complete && !feed.in_doubt && feed.records->size() < kRecordsMax &&
         clock_.Monotonic().value - feed.read_at.value < source_->hold_ns();
}

// Without an end of the attempts, a damaged table of processes would end the export.
absl::Status RecordExport::Complete(Feed& feed) {
  if (feed.is_complete) return absl::OkStatus();
  absl::StatusOr<uint64_t> incomplete = feed.records->Complete();
  if (!incomplete.ok()) {
    const int64_t tried_ns = clock_.Monotonic().value - feed.read_at.value;
    if (absl::IsDeadlineExceeded(incomplete.status()) || tried_ns < source_->hold_ns() + kLookUpNs) {
      return incomplete.status();
    }
    incomplete = feed.records->size();
  }
  if (counters_.incomplete != nullptr) counters_.incomplete->Add(*incomplete);
  feed.is_complete = true;
  return absl::OkStatus();
}

RecordExport::Step RecordExport::Advance(uint32_t shard, int64_t timeout_ns, bool flush) {
  if (absl::Status status = Load(shard); !status.ok()) return Stopped(Progress::kUnreadable, std::move(status));
  Feed& feed = feeds_[shard];
  if (!feed.has_position) return {};  // the records are in the first shard
  const bool was_read_before = feed.records != nullptr;
  if (!was_read_before) {
    // If the cursor of the last request could not be saved, reading would return the same records again.
    if (!feed.last) {
      if (absl::Status status = SaveCursor(feed, shard); !status.ok()) {
        return Stopped(Progress::kUnsaved, std::move(status));
      }
    }
    if (absl::Status status = Read(feed, shard); !status.ok()) {
      return Stopped(Progress::kUnreadable, std::move(status));
    }
    if (feed.records == nullptr && feed.next == feed.saved.cursor) return {};
  }
  Step step;
  if (feed.records != nullptr) {
    if (!flush && IsHeld(feed)) return Stopped(Progress::kWaiting, absl::OkStatus());
    if (absl::Status status = Complete(feed); !status.ok()) {
      if (feed.in_doubt) interrupted_ = shard;
      return Stopped(feed.in_doubt ? Progress::kBlocked : Progress::kUnreadable, std::move(status));
    }
    step = Send(feed, shard, timeout_ns);
    if (!step.sent_request) return step;
    // Records that were committed since then are not read yet.
    if (was_read_before) step.progress = Progress::kMore;
  }
  if (absl::Status status = SaveCursor(feed, shard); !status.ok()) {
    step.progress = Progress::kUnsaved;
    step.status = std::move(status);
  }
  return step;
}

RecordExport::Step RecordExport::Send(Feed& feed, uint32_t shard, int64_t timeout_ns) {
  const uint64_t size = feed.records->size();
  const store::ExportRequest request{.end = feed.next,
                                     .sender = feed.identity.sender,
                                     .session = feed.identity.session,
                                     .first = feed.identity.first,
                                     .count = size,
                                     .content = feed.records->ContentOf(size)};
  if (absl::Status status = Save(feed, shard, {.cursor = feed.begin, .request = request}); !status.ok()) {
    return Stopped(Progress::kUnsaved, std::move(status));
  }
  Step step{.progress = size >= kRecordsMax || feed.is_cut ? Progress::kMore : Progress::kIdle};
  step.result = feed.records->Send(feed.identity, timeout_ns);
  if (feed.in_doubt && (step.result.status.ok() || step.result.in_doubt)) counters_.repeated.Add(size);
  feed.in_doubt |= step.result.in_doubt;
  interrupted_.reset();
  if (!step.result.status.ok() && step.result.may_retry) {
    interrupted_ = shard;
    step.progress = Progress::kUnsent;
    // The next records may expire while these ones wait.
    if (const absl::StatusOr<uint64_t> expired = source_->FindExpired(shard, &feed.next);
        expired.ok() && *expired > 0) {
      CountExpired(*expired);
      // The next run starts at the same position, and must not count them again. If this cannot be saved, the next
      // attempt saves it.
      if (feed.begin.samples) *feed.begin.samples += *expired;
      (void)Save(feed, shard, {.cursor = feed.begin, .request = request});
    }
    return step;
  }
  step.sent_request = true;
  step.records = size;
  step.refused = step.result.status.ok() ? step.result.refused_records : size;
  counters_.sent.Add(size - std::min<uint64_t>(step.refused, size));
  counters_.refused.Add(step.refused);
  feed.records.reset();
  return step;
}

}  // namespace tributary
