#include "intake/spool/spool_appender.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <vector>

#include "base/status.h"
#include "intake/codec/batch_encoder.h"

namespace tributary::intake {
namespace {

// A segment that is not full yet, plus one more record, must make a file that can be read.
constexpr uint64_t kSpoolRecordBytesMax = kSpoolFileBytesMax / 2;

}  // namespace

SpoolAppender::SpoolAppender(const SpoolOptions& options, SpoolInventory& inventory, SpoolStorage& storage,
                             const SessionInfo& session, const Clock& clock)
    : options_(options), inventory_(inventory), storage_(storage), session_(session), clock_(clock) {
  // To drop the oldest segment should drop only a part of the spool.
  options_.segment_bytes = std::min({options_.segment_bytes, options_.bytes_max / 4, kSpoolRecordBytesMax});
}

SpoolAppender::~SpoolAppender() {
  if (open_) Close();
}

bool SpoolAppender::Open::Continues(const std::optional<SpoolClaim>& next, uint32_t next_version) const {
  if (version != next_version) return false;
  if (!claim || !next) return !claim && !next;
  return claim->host == next->host && claim->port == next->port && claim->session_id == next->session_id &&
         claim->first_sequence + batches == next->first_sequence && totals == next->base;
}

bool SpoolAppender::CanHold(uint64_t more) const {
  const uint64_t bytes = inventory_.bytes();
  return more <= kSpoolRecordBytesMax &&
         (bytes + more <= options_.bytes_max || bytes - DroppableBytes() + more <= options_.bytes_max);
}

absl::Status SpoolAppender::Append(const Batch& batch, const std::optional<SpoolClaim>& claim) {
  TRIBUTARY_CHECK(batch.dictionary != nullptr);
  if (!BatchEncoder::Fits(batch)) {
    return Error(absl::StatusCode::kInvalidArgument,
                 fmt::format("spool: a batch of {} samples and {} process events is too large", batch.samples.size(),
                             batch.events.size()));
  }
  if (HasEvents(batch, claim)) version_ = kSegmentVersionEvents;
  if (claim) RETURN_IF_ERROR(EncodeClaimSlot({{0, *claim}}, 1, version_).status());
  if (open_ && (!open_->Continues(claim, version_) || IsOld())) Close();
  std::string record = Encode(batch, claim);
  if (open_->batches > 0 && !CanHold(record.size())) {
    // To make room, the segment that this batch would have joined must be dropped.
    Close();
    record = Encode(batch, claim);
  }
  absl::Status status = MakeRoom(record.size());
  if (!status.ok()) {
    if (open_->batches > 0) {
      Close();
    } else {
      open_.reset();
    }
    return status;
  }
  return Write(record, batch);
}

// Returns the bytes to append to the open segment. Opens a segment if none is open, or if the open one is full.
std::string SpoolAppender::Encode(const Batch& batch, const std::optional<SpoolClaim>& claim) {
  if (open_) {
    if (auto record = open_->writer.Encode(batch)) return *std::move(record);
    Close();
  }
  const SegmentId id = inventory_.TakeId();
  open_.emplace(
      Open{.id = id, .claim = claim, .version = version_, .writer = SegmentWriter(id), .since = clock_.Monotonic()});
  std::vector<SegmentClaim> claims;
  if (claim) {
    open_->totals = claim->base;
    claims.push_back({0, *claim});
  }
  return EncodeSegmentHeader({.id = id, .session = session_, .created = clock_.Unix(), .version = version_}, claims) +
         open_->writer.Encode(batch).value();
}

absl::Status SpoolAppender::Write(const std::string& record, const Batch& batch) {
  const absl::Status status = storage_.Append(SegmentName(open_->id), record);
  if (!status.ok()) {
    inventory_.Failed(SpoolOperation::kAppend, status);
    Abandon();
    return status;
  }
  if (open_->batches++ == 0) {
    SpooledSegment& added = inventory_.segments().emplace_back();
    added.id = open_->id;
    added.version = open_->version;
    if (open_->claim) {
      added.claims = {.claims = {{0, *open_->claim}}, .serial = 1};
      added.earlier_claims = 1;
      added.writer = session_;
    }
  }
  open_->totals += batch.accounting;
  SpooledSegment& segment = inventory_.segments().back();
  const SpoolTotals record_totals{1, CountRecords(batch), batch.accounting};
  if (open_->claim) segment.records.push_back({.ordinal = open_->batches, .totals = record_totals});
  inventory_.Grow(segment, record.size(), record_totals);
  if (segment.bytes >= options_.segment_bytes) Close();
  return absl::OkStatus();
}

uint64_t SpoolAppender::DroppableBytes() const {
  uint64_t sum = 0;
  for (const SpooledSegment& segment : inventory_.segments()) {
    if (segment.droppable() && !IsOpen(segment.id)) sum += segment.bytes;
  }
  return sum;
}

absl::Status SpoolAppender::MakeRoom(uint64_t bytes_needed) {
  if (!CanHold(bytes_needed)) {
    return Error(absl::StatusCode::kResourceExhausted,
                 fmt::format("spool: no room for a batch of {} bytes: the batch is too large, or too many bytes ({} of "
                             "{}) are used by files that are being sent or written",
                             bytes_needed, inventory_.bytes() - DroppableBytes(), options_.bytes_max));
  }
  std::deque<SpooledSegment>& segments = inventory_.segments();
  for (auto segment = segments.begin(); inventory_.bytes() + bytes_needed > options_.bytes_max;) {
    if (!segment->droppable() || IsOpen(segment->id)) {
      ++segment;
      continue;
    }
    // The samples are reported as lost only after the removal, when they cannot come back.
    if (absl::Status status = storage_.Remove(SegmentName(segment->id)); !status.ok()) {
      inventory_.Failed(SpoolOperation::kRemove, status);
      return status;
    }
    const SpoolTotals lost = segment->totals;
    const bool earlier = segment->earlier;
    inventory_.Forget(segment);
    segment = segments.begin();
    inventory_.Report(LossReason::kSpoolOverflow, lost, earlier);
  }
  return absl::OkStatus();
}

void SpoolAppender::Close(SegmentId id) {
  if (IsOpen(id)) Close();
}

void SpoolAppender::Forget(SegmentId id) {
  if (IsOpen(id)) open_.reset();
}

void SpoolAppender::CloseOld() {
  if (open_ && IsOld()) Close();
}

void SpoolAppender::Close() {
  if (open_->batches > 0) {
    if (absl::Status status = storage_.Sync(SegmentName(open_->id)); !status.ok())
      inventory_.Failed(SpoolOperation::kSync, status);
  }
  open_.reset();
}

// Call it after a failed write: removes the bytes of that write, and no longer relies on its definitions.
void SpoolAppender::Abandon() {
  if (open_->batches == 0) {
    inventory_.RemoveFile(open_->id);
    open_.reset();
    return;
  }
  if (absl::Status status = storage_.Truncate(SegmentName(open_->id), inventory_.segments().back().bytes);
      !status.ok()) {
    inventory_.Failed(SpoolOperation::kAppend, status);
  }
  Close();
}

}  // namespace tributary::intake
