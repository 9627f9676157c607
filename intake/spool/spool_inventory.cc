#include "intake/spool/spool_inventory.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/status.h"

namespace tributary::intake {
namespace {

absl::Status WhyDamaged(const absl::StatusOr<SegmentHeader>& header, SegmentId id, const SegmentScan& scan) {
  if (!header.ok()) return header.status();
  if (header->id != id) return Error(absl::StatusCode::kInvalidArgument, "the header belongs to another segment");
  return Error(absl::StatusCode::kInvalidArgument,
               fmt::format("{} batches before the damage are whole, {} batches were found after the damage",
                           scan.whole.batches, scan.rest.batches));
}

}  // namespace

absl::Status SpoolInventory::Load() {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, storage_.List());
  std::vector<SegmentId> ids;
  for (const std::string& name : names) {
    if (auto id = ParseSegmentName(name)) ids.push_back(*id);
  }
  std::sort(ids.begin(), ids.end());
  for (SegmentId id : ids) RETURN_IF_ERROR(WithContext(LoadSegment(id), "spool segment " + SegmentName(id)));
  if (!ids.empty()) next_id_ = ids.back() + 1;
  std::stable_partition(segments_.begin(), segments_.end(), [](const SpooledSegment& s) { return !s.droppable(); });
  ShowSizes();
  return absl::OkStatus();
}

absl::Status SpoolInventory::LoadSegment(SegmentId id) {
  const std::string name = SegmentName(id);
  auto file = storage_.Read(name);
  if (!file.ok()) {  // the file stays: the next start may be able to read it
    Failed(SpoolOperation::kRead, file.status());
    return absl::OkStatus();
  }
  const auto header = DecodeSegmentHeader(*file);
  if (absl::IsFailedPrecondition(header.status())) return header.status();
  SegmentScan scan = ScanSegment(*file, id);
  const bool header_whole = header.ok() && header->id == id;
  if (!header_whole) {
    scan.rest += scan.whole;
    scan.whole = SpoolTotals();
  }
  SpooledSegment segment;
  segment.id = id;
  segment.earlier = true;
  segment.totals = scan.whole;
  if (header_whole) segment.version = header->version;
  segment.claims = DecodeClaims(*file);
  segment.earlier_claims = segment.claims.claims.size();
  if (segment.earlier_claims > 0) {
    segment.writer = header_whole ? header->session : session_;
    segment.records = std::move(scan.records);
    segment.damaged = segment.DamagedFrom(scan.whole.batches);
  }
  if (scan.whole.batches == 0 || scan.rest.batches > 0) FoundDamage(id, WhyDamaged(header, id, scan));
  const bool damage_claimed = !segment.damaged.empty();
  if (damage_claimed) {
    metrics_.damaged.Add(scan.rest.samples);
  } else {
    found_damaged_ += scan.rest;
  }
  if (!segment.unread()) {
    RemoveFile(id);
    return absl::OkStatus();
  }
  // A claimed segment stays whole until its reducer has answered: another start then finds the same batches.
  segment.bytes = damage_claimed ? file->size() : scan.whole_bytes;
  if (segment.bytes < file->size()) {
    if (absl::Status status = storage_.Truncate(name, segment.bytes); !status.ok()) {
      Failed(SpoolOperation::kAppend, status);
    }
  }
  // The bytes that a killed process left may be only in the kernel's memory. A claim among them may decide where
  // batches are delivered. After a power loss, these batches must not be found without the claim.
  if (absl::Status status = storage_.Sync(name); !status.ok()) Failed(SpoolOperation::kSync, status);
  bytes_ += segment.bytes;
  samples_ += scan.whole.samples.total();
  segments_.push_back(std::move(segment));
  return absl::OkStatus();
}

void SpoolInventory::Grow(SpooledSegment& segment, uint64_t record_bytes, const SpoolTotals& record) {
  segment.bytes += record_bytes;
  segment.totals += record;
  bytes_ += record_bytes;
  samples_ += record.samples.total();
  ShowSizes();
}

void SpoolInventory::CutToReturned(SpooledSegment& segment) {
  samples_ -= segment.totals.samples.total() - segment.returned.samples.total();
  segment.totals = segment.returned;
  ShowSizes();
}

void SpoolInventory::Shrink(SpooledSegment& segment, uint64_t bytes) {
  bytes_ -= segment.bytes - bytes;
  segment.bytes = bytes;
  ShowSizes();
}

void SpoolInventory::Forget(Iterator segment) {
  bytes_ -= segment->bytes;
  samples_ -= segment->totals.samples.total();
  segments_.erase(segment);
  ShowSizes();
}

void SpoolInventory::RemoveFile(SegmentId id) {
  absl::Status status = storage_.Remove(SegmentName(id));
  if (status.ok()) return;
  Failed(SpoolOperation::kRemove, status);
  unremoved_.push_back(id);
}

void SpoolInventory::RemoveAgain() {
  for (SegmentId id : std::exchange(unremoved_, {})) RemoveFile(id);
}

void SpoolInventory::Failed(SpoolOperation operation, const absl::Status& status) {
  metrics_.failures[static_cast<size_t>(operation)]->Add();
  if (uint64_t held = 0; log_limit_.Allow(clock_.Monotonic(), &held)) {
    LogWarning("spool operation failed: {} suppressed={}", Message(status), held);
  }
}

void SpoolInventory::FoundDamage(SegmentId id, const absl::Status& why) {
  if (uint64_t held = 0; log_limit_.Allow(clock_.Monotonic(), &held)) {
    LogWarning(
        "spool segment is damaged segment={} error=\"{}\" suppressed={}: samples that cannot be read count as lost "
        "(spool_damaged)",
        SegmentName(id), Message(why), held);
  }
  metrics_.damaged_segments.Add();
}

void SpoolInventory::Report(LossReason reason, const SpoolTotals& lost, bool earlier) {
  (reason == LossReason::kSpoolOverflow ? metrics_.overflow : metrics_.damaged).Add(lost.samples);
  if (dropped_) dropped_(reason, lost.samples, lost.accounting, earlier);
}

void SpoolInventory::ReportFound() {
  if (found_damaged_.batches == 0) return;
  Report(LossReason::kSpoolDamaged, std::exchange(found_damaged_, SpoolTotals()), /*earlier=*/true);
}

void SpoolInventory::ShowSizes() {
  metrics_.segments.Set(static_cast<int64_t>(segments_.size()));
  metrics_.bytes.Set(static_cast<int64_t>(bytes_));
  metrics_.samples.Set(static_cast<int64_t>(samples_));
}

}  // namespace tributary::intake
