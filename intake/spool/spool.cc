#include "intake/spool/spool.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/status.h"
#include "intake/codec/batch_encoder.h"
#include "intake/spool/spool_impl.h"

namespace tributary::intake {

absl::Status Spool::Impl::Load() {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, storage.List());
  std::vector<SegmentId> ids;
  for (const std::string& name : names) {
    if (auto id = ParseSegmentName(name)) ids.push_back(*id);
  }
  std::sort(ids.begin(), ids.end());
  for (SegmentId id : ids) LoadSegment(id);
  if (!ids.empty()) next_id = ids.back() + 1;
  std::stable_partition(segments.begin(), segments.end(), [](const SpoolSegment& s) { return !s.droppable(); });
  ShowSizes();
  return absl::OkStatus();
}

void Spool::Impl::LoadSegment(SegmentId id) {
  const std::string name = SegmentName(id);
  auto file = storage.Read(name);
  if (!file.ok()) {  // left alone: the next start may be able to read it
    Failed(SpoolOperation::kRead, file.status());
    return;
  }
  SegmentScan scan = ScanSegment(*file, id);
  const auto header = DecodeSegmentHeader(*file);
  const bool header_whole = header.ok() && header->id == id;
  if (!header_whole) {
    scan.rest += scan.whole;
    scan.whole = SpoolTotals();
  }
  SpoolSegment segment;
  segment.id = id;
  segment.earlier = true;
  segment.totals = scan.whole;
  segment.claims = DecodeClaims(*file);
  segment.earlier_claims = segment.claims.claims.size();
  if (segment.earlier_claims > 0) {
    segment.writer = header_whole ? header->session : session;
    segment.records = std::move(scan.records);
    segment.damaged = DamagedFrom(segment, scan.whole.batches);
  }
  if (scan.whole.batches == 0 || scan.rest.batches > 0) metrics.damaged_segments.Add();
  const bool damage_claimed = !segment.damaged.empty();
  if (damage_claimed) {
    metrics.dropped_damaged.Add(scan.rest.samples);
  } else {
    found_damaged += scan.rest;
  }
  if (!segment.unread()) {
    RemoveFile(id);
    return;
  }
  // What was claimed stays until its reducer has answered for it: another start then finds the same.
  segment.bytes = damage_claimed ? file->size() : scan.whole_bytes;
  if (segment.bytes < file->size()) {
    if (absl::Status status = storage.Truncate(name, segment.bytes); !status.ok()) {
      Failed(SpoolOperation::kAppend, status);
    }
  }
  // A killed process left bytes that only the kernel has. What is delivered on the strength of a claim among them must
  // not be found without it after a power loss.
  if (absl::Status status = storage.Sync(name); !status.ok()) Failed(SpoolOperation::kSync, status);
  bytes += segment.bytes;
  samples += scan.whole.samples;
  segments.push_back(std::move(segment));
}

absl::Status Spool::Impl::Append(const Batch& batch, const std::optional<SpoolClaim>& claim) {
  TRIBUTARY_CHECK(batch.dictionary != nullptr);
  if (batch.samples.size() > BatchEncoder::kSamplesPerBatchMax) {
    return Error(absl::StatusCode::kInvalidArgument, fmt::format("batch of {} samples", batch.samples.size()));
  }
  if (claim) RETURN_IF_ERROR(EncodeClaimSlot({{0, *claim}}, 1).status());
  if (open && (!open->Continues(claim) || clock.Monotonic().value - open->since.value >= options.segment_age_ns))
    Close();
  std::string record = Encode(batch, claim);
  if (open->batches > 0 && !CanHold(record.size())) {
    // The segment that this batch would have joined is what has to go for it.
    Close();
    record = Encode(batch, claim);
  }
  absl::Status status = MakeRoom(record.size());
  if (!status.ok()) {
    if (open->batches > 0) {
      Close();
    } else {
      open.reset();
    }
    return status;
  }
  return Write(record, batch);
}

// What is to be appended to the open segment; opens one if there is none, or none with room.
std::string Spool::Impl::Encode(const Batch& batch, const std::optional<SpoolClaim>& claim) {
  if (open) {
    if (auto record = open->writer.Encode(batch)) return *std::move(record);
    Close();
  }
  const SegmentId id = next_id++;
  open.emplace(Open{.id = id, .claim = claim, .writer = SegmentWriter(id), .since = clock.Monotonic()});
  std::vector<SegmentClaim> claims;
  if (claim) {
    open->totals = claim->base;
    claims.push_back({0, *claim});
  }
  return EncodeSegmentHeader({.id = id, .session = session, .created = clock.Unix()}, claims) +
         open->writer.Encode(batch).value();
}

absl::Status Spool::Impl::Write(const std::string& record, const Batch& batch) {
  const absl::Status status = storage.Append(SegmentName(open->id), record);
  if (!status.ok()) {
    Failed(SpoolOperation::kAppend, status);
    Abandon();
    return status;
  }
  if (open->batches++ == 0) {
    SpoolSegment& added = segments.emplace_back();
    added.id = open->id;
    if (open->claim) {
      added.claims = {.claims = {{0, *open->claim}}, .serial = 1};
      added.earlier_claims = 1;
      added.writer = session;
    }
  }
  open->totals += batch.accounting;
  SpoolSegment& segment = segments.back();
  const SpoolTotals record_totals{1, batch.samples.size(), batch.accounting};
  if (open->claim) segment.records.push_back({.ordinal = open->batches, .totals = record_totals});
  segment.bytes += record.size();
  segment.totals += record_totals;
  bytes += record.size();
  samples += batch.samples.size();
  if (segment.bytes >= options.segment_bytes) Close();
  ShowSizes();
  return absl::OkStatus();
}

uint64_t Spool::Impl::DroppableBytes() const {
  uint64_t sum = 0;
  for (const SpoolSegment& segment : segments) {
    if (segment.droppable() && !(open && open->id == segment.id)) sum += segment.bytes;
  }
  return sum;
}

absl::Status Spool::Impl::MakeRoom(uint64_t bytes_needed) {
  if (!CanHold(bytes_needed)) {
    return Error(absl::StatusCode::kResourceExhausted,
                 fmt::format("spool: no room for {} bytes where {} of {} are on their way to a reducer", bytes_needed,
                             bytes - DroppableBytes(), options.bytes_max));
  }
  for (auto segment = segments.begin(); bytes + bytes_needed > options.bytes_max;) {
    if (!segment->droppable() || (open && open->id == segment->id)) {
      ++segment;
      continue;
    }
    // Told as lost only when it cannot come back.
    if (absl::Status status = storage.Remove(SegmentName(segment->id)); !status.ok()) {
      Failed(SpoolOperation::kRemove, status);
      return status;
    }
    const SpoolTotals lost = segment->totals;
    const SegmentId id = segment->id;
    const bool earlier = segment->earlier;
    Forget(segment);
    segment = segments.begin();
    if (reading && reading->id == id) reading.reset();
    Report(LossReason::kSpoolOverflow, lost, earlier);
  }
  return absl::OkStatus();
}

void Spool::Impl::Close() {
  if (open->batches > 0) {
    if (absl::Status status = storage.Sync(SegmentName(open->id)); !status.ok()) Failed(SpoolOperation::kSync, status);
  }
  open.reset();
}

// After a write that failed: nothing of it stays, and its definitions are not relied on.
void Spool::Impl::Abandon() {
  if (open->batches == 0) {
    RemoveFile(open->id);
    open.reset();
    return;
  }
  if (absl::Status status = storage.Truncate(SegmentName(open->id), segments.back().bytes); !status.ok()) {
    Failed(SpoolOperation::kAppend, status);
  }
  Close();
}

void Spool::Impl::Tick() {
  if (open && clock.Monotonic().value - open->since.value >= options.segment_age_ns) Close();
  for (SegmentId id : std::exchange(unremoved, {})) RemoveFile(id);
}

void Spool::Impl::Forget(std::deque<SpoolSegment>::iterator segment) {
  bytes -= segment->bytes;
  samples -= segment->totals.samples;
  segments.erase(segment);
  ShowSizes();
}

void Spool::Impl::RemoveFile(SegmentId id) {
  absl::Status status = storage.Remove(SegmentName(id));
  if (status.ok()) return;
  Failed(SpoolOperation::kRemove, status);
  unremoved.push_back(id);
}

void Spool::Impl::Failed(SpoolOperation operation, const absl::Status& status) {
  metrics.failures[static_cast<size_t>(operation)]->Add();
  if (uint64_t held = 0; log_limit.Allow(clock.Monotonic(), &held)) {
    LogWarning("spool failed: {} suppressed={}", Message(status), held);
  }
}

void Spool::Impl::Report(LossReason reason, const SpoolTotals& lost, bool earlier) {
  (reason == LossReason::kSpoolOverflow ? metrics.dropped_overflow : metrics.dropped_damaged).Add(lost.samples);
  if (dropped) dropped(reason, lost.samples, lost.accounting, earlier);
}

void Spool::Impl::ReportFound() {
  if (found_damaged.batches == 0) return;
  Report(LossReason::kSpoolDamaged, std::exchange(found_damaged, SpoolTotals()), /*earlier=*/true);
}

void Spool::Impl::ShowSizes() {
  metrics.segments.Set(static_cast<int64_t>(segments.size()));
  metrics.bytes.Set(static_cast<int64_t>(bytes));
  metrics.samples.Set(static_cast<int64_t>(samples));
}

Spool::Spool(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Spool::~Spool() {
  if (impl_->open) impl_->Close();
}

absl::StatusOr<std::unique_ptr<Spool>> Spool::Open(SpoolOptions options, SpoolStorage& storage,
                                                   const SessionInfo& session, const Clock& clock, Metrics& metrics,
                                                   Dropped dropped) {
  auto impl = std::make_unique<Impl>(options, storage, session, clock, metrics, std::move(dropped));
  RETURN_IF_ERROR(impl->Load());
  return std::unique_ptr<Spool>(new Spool(std::move(impl)));
}

absl::Status Spool::Append(const Batch& batch, const std::optional<SpoolClaim>& claim) {
  impl_->ReportFound();
  return impl_->Append(batch, claim);
}

std::optional<SpooledBatch> Spool::Next() {
  impl_->ReportFound();
  return impl_->Next();
}

absl::Status Spool::Claim(SegmentId segment, uint32_t index, const SpoolClaim& claim) {
  return impl_->Claim(segment, index, claim);
}
void Spool::Release(SegmentId segment) { impl_->Release(segment); }

void Spool::Tick() {
  impl_->ReportFound();
  impl_->Tick();
}

bool Spool::empty() const {
  return std::none_of(impl_->segments.begin(), impl_->segments.end(), [](const SpoolSegment& s) { return s.unread(); });
}
uint64_t Spool::samples() const { return impl_->samples; }
uint64_t Spool::bytes() const { return impl_->bytes; }
size_t Spool::segments() const { return impl_->segments.size(); }

}  // namespace tributary::intake
