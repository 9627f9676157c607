#include "intake/spool/spool_delivery.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <string>
#include <utility>

#include "base/status.h"

namespace tributary::intake {

std::optional<SpooledBatch> SpoolDelivery::Next() {
  while (true) {
    std::deque<SpooledSegment>& segments = inventory_.segments();
    auto segment = std::find_if(segments.begin(), segments.end(), [](const SpooledSegment& s) { return s.unread(); });
    if (segment == segments.end()) return std::nullopt;
    appender_.Close(segment->id);
    if (!segment->readable()) return NextDamaged(*segment);
    SpooledBatch out;
    out.segment = segment->id;
    if (absl::Status status = Position(*segment); !status.ok()) {
      LoseRest(segment->id, status);
      continue;
    }
    out.index = segment->returned.batches;
    out.claim = segment->ClaimOfNext();
    out.batch = *std::exchange(reading_->ahead, std::nullopt);
    out.batch.sequence = 0;
    for (const SegmentClaim& claim : segment->claims.claims) {
      if (claim.index == out.index) segment->since_claim = Accounting();
    }
    segment->since_claim += out.batch.accounting;
    out.session = reading_->reader->header().session;
    segment->returned = reading_->reader->read();
    if (segment->readable()) {
      if (absl::Status status = LookAhead(*segment); !status.ok()) LoseRest(segment->id, status);
    }
    // LoseRest may have cut the segment.
    out.last_of_segment = !inventory_.Find(out.segment)->unread();
    if (out.last_of_segment) reading_.reset();
    return out;
  }
}

SpooledBatch SpoolDelivery::NextDamaged(SpooledSegment& segment) {
  reading_.reset();
  SpooledBatch out = std::move(segment.damaged.front());
  segment.damaged.pop_front();
  out.last_of_segment = !segment.unread();
  return out;
}

// Makes `reading_->ahead` the segment's first batch that was not returned.
absl::Status SpoolDelivery::Position(const SpooledSegment& segment) {
  if (reading_ && reading_->id == segment.id) return absl::OkStatus();
  reading_.reset();
  auto file = storage_.Read(SegmentName(segment.id));
  if (!file.ok()) {
    inventory_.Failed(SpoolOperation::kRead, file.status());
    return file.status();
  }
  ASSIGN_OR_RETURN(auto reader, SegmentReader::Open(*std::move(file), segment.id));
  reading_.emplace(Reading{.id = segment.id, .reader = std::move(reader)});
  while (reading_->reader->read().batches <= segment.returned.batches) RETURN_IF_ERROR(LookAhead(segment));
  return absl::OkStatus();
}

absl::Status SpoolDelivery::LookAhead(const SpooledSegment& segment) {
  ASSIGN_OR_RETURN(reading_->ahead, reading_->reader->Next());
  if (!reading_->ahead) {
    return Error(absl::StatusCode::kInvalidArgument,
                 fmt::format("the segment ends after {} of its {} batches", reading_->reader->read().batches,
                             segment.totals.batches));
  }
  return absl::OkStatus();
}

// The batches that were not returned cannot be read.
void SpoolDelivery::LoseRest(SegmentId id, const absl::Status& why) {
  auto segment = inventory_.Find(id);
  inventory_.FoundDamage(id, why);
  SpoolTotals lost = segment->totals;
  lost -= segment->returned;
  segment->damaged = segment->DamagedFrom(segment->returned.batches);
  if (segment->damaged.empty()) return DropRest(segment, lost);
  // The file stays until the reducer of the claim has answered.
  inventory_.CutToReturned(*segment);
  inventory_.CountClaimedDamage(lost.samples);
  reading_.reset();
}

// Drops the rest of a segment. No reducer can have stored it.
void SpoolDelivery::DropRest(SpoolInventory::Iterator segment, const SpoolTotals& lost) {
  const SegmentId id = segment->id;
  const bool earlier = segment->earlier;
  if (segment->returned.batches == 0) {
    inventory_.Forget(segment);
    inventory_.RemoveFile(id);
  } else {
    inventory_.CutToReturned(*segment);
    if (reading_ && reading_->reader->read().batches == segment->returned.batches) {
      // So a later start does not find and report the same damage again.
      const uint64_t good_bytes = reading_->reader->read_bytes();
      absl::Status status = storage_.Truncate(SegmentName(id), good_bytes);
      if (status.ok()) status = storage_.Sync(SegmentName(id));
      if (!status.ok()) inventory_.Failed(SpoolOperation::kAppend, status);
      inventory_.Shrink(*segment, good_bytes);
    }
  }
  reading_.reset();
  inventory_.Report(LossReason::kSpoolDamaged, lost, earlier);
}

absl::Status SpoolDelivery::Claim(SegmentId id, uint32_t index, const SpoolClaim& claim) {
  auto segment = inventory_.Find(id);
  if (segment == inventory_.segments().end() || index >= segment->totals.batches) {
    return Error(absl::StatusCode::kNotFound, "spool: the batch does not exist");
  }
  appender_.Close(id);
  FoundClaims next = segment->claims;
  while (!next.claims.empty() && next.claims.back().index >= index) next.claims.pop_back();
  next.claims.push_back(SegmentClaim{index, claim});
  if (next.claims == segment->claims.claims) return absl::OkStatus();
  ++next.serial;
  RETURN_IF_ERROR(WriteClaims(*segment, std::move(next)));
  segment->earlier_claims = std::min(segment->earlier_claims, segment->claims.claims.size() - 1);
  return absl::OkStatus();
}

// Writes the new claims first to the slot that does not hold the newest claims, so that a torn write leaves the other
// slot intact. Then writes the second copy, so that the newest claims survive one damaged sector.
absl::Status SpoolDelivery::WriteClaims(SpooledSegment& segment, FoundClaims next) {
  const std::string name = SegmentName(segment.id);
  auto write = [&](size_t slot, const std::string& contents) -> absl::Status {
    RETURN_IF_ERROR(storage_.Overwrite(name, ClaimSlotOffset(slot), contents));
    return storage_.Sync(name);
  };
  const size_t old_slot = segment.claims.slot;
  next.slot = kClaimSlots - 1 - old_slot;
  ASSIGN_OR_RETURN(const std::string encoded, EncodeClaimSlot(next.claims, next.serial, segment.version));
  if (absl::Status status = write(next.slot, encoded); !status.ok()) {
    inventory_.Failed(SpoolOperation::kClaim, status);
    // The sequence numbers may go to other batches now: the disk must not assign them to this segment.
    absl::Status undone = write(next.slot, std::string(kClaimSlotBytes, '\0'));
    if (!undone.ok()) inventory_.Failed(SpoolOperation::kClaim, undone);
    return status;
  }
  segment.claims = std::move(next);
  if (absl::Status status = write(old_slot, encoded); !status.ok()) inventory_.Failed(SpoolOperation::kClaim, status);
  return absl::OkStatus();
}

void SpoolDelivery::Release(SegmentId id) {
  auto segment = inventory_.Find(id);
  if (segment == inventory_.segments().end()) return;
  appender_.Forget(id);
  if (reading_ && reading_->id == id) reading_.reset();
  inventory_.Forget(segment);
  inventory_.RemoveFile(id);
}

}  // namespace tributary::intake
