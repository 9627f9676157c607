#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "intake/spool/spool_impl.h"

namespace tributary::intake {
namespace {

// As it is from batch `index` on. `since`: what the batches from its first one up to there add.
SpoolClaim MovedOn(const SegmentClaim& from, uint32_t index, const Accounting& since) {
  SpoolClaim claim = from.claim;
  claim.first_sequence += index - from.index;
  claim.base += since;
  return claim;
}

// The claim that an earlier process left on the batch that Next returns next, as it is from that batch on.
std::optional<SpoolClaim> ClaimOf(const SpoolSegment& segment) {
  const SegmentClaim* covering = nullptr;
  size_t number = 0;
  for (const SegmentClaim& claim : segment.claims.claims) {
    if (claim.index > segment.returned.batches) break;
    covering = &claim;
    ++number;
  }
  if (covering == nullptr || number > segment.earlier_claims) return std::nullopt;
  const bool first = covering->index == segment.returned.batches;
  return MovedOn(*covering, segment.returned.batches, first ? Accounting() : segment.since_claim);
}

SpooledBatch Damaged(const SpoolSegment& segment, const SpoolRecord& record, SpoolClaim claim) {
  SpooledBatch out;
  out.batch.accounting = record.totals.accounting;
  out.batch.accounting.lost[static_cast<size_t>(LossReason::kSpoolDamaged)] += record.totals.samples;
  out.session = segment.writer;
  out.segment = segment.id;
  out.index = record.ordinal - 1;
  out.claim = std::move(claim);
  out.damaged_samples = record.totals.samples;
  return out;
}

}  // namespace

std::deque<SpooledBatch> DamagedFrom(const SpoolSegment& segment, uint32_t from) {
  std::deque<SpooledBatch> damaged;
  const auto claims = std::span(segment.claims.claims).first(segment.earlier_claims);
  size_t next = 0;
  Accounting since;  // of the newest claim's batches; without those whose records are not known
  for (const SpoolRecord& record : segment.records) {
    const uint32_t index = record.ordinal - 1;
    for (; next < claims.size() && claims[next].index <= index; ++next) since = Accounting();
    if (index >= from && next > 0) {
      damaged.push_back(Damaged(segment, record, MovedOn(claims[next - 1], index, since)));
    }
    since += record.totals.accounting;
  }
  return damaged;
}

std::optional<SpooledBatch> Spool::Impl::Next() {
  while (true) {
    auto segment = std::find_if(segments.begin(), segments.end(), [](const SpoolSegment& s) { return s.unread(); });
    if (segment == segments.end()) return std::nullopt;
    if (open && open->id == segment->id) Close();
    if (!segment->readable()) return NextDamaged(*segment);
    SpooledBatch out;
    out.segment = segment->id;
    if (absl::Status status = Position(*segment); !status.ok()) {
      LoseRest(segment->id, status);
      continue;
    }
    out.index = segment->returned.batches;
    out.claim = ClaimOf(*segment);
    out.batch = *std::exchange(reading->ahead, std::nullopt);
    out.batch.sequence = 0;
    for (const SegmentClaim& claim : segment->claims.claims) {
      if (claim.index == out.index) segment->since_claim = Accounting();
    }
    segment->since_claim += out.batch.accounting;
    out.session = reading->reader->header().session;
    segment->returned = reading->reader->read();
    if (segment->readable()) {
      if (absl::Status status = LookAhead(*segment); !status.ok()) LoseRest(segment->id, status);
    }
    // What LoseRest left of it.
    out.last_of_segment = !Find(out.segment)->unread();
    if (out.last_of_segment) reading.reset();
    return out;
  }
}

SpooledBatch Spool::Impl::NextDamaged(SpoolSegment& segment) {
  reading.reset();
  SpooledBatch out = std::move(segment.damaged.front());
  segment.damaged.pop_front();
  out.last_of_segment = !segment.unread();
  return out;
}

// Makes `reading->ahead` the segment's first batch that was not returned.
absl::Status Spool::Impl::Position(const SpoolSegment& segment) {
  if (reading && reading->id == segment.id) return absl::OkStatus();
  reading.reset();
  auto file = storage.Read(SegmentName(segment.id));
  if (!file.ok()) {
    Failed(SpoolOperation::kRead, file.status());
    return file.status();
  }
  ASSIGN_OR_RETURN(auto reader, SegmentReader::Open(*std::move(file), segment.id));
  reading.emplace(Reading{.id = segment.id, .reader = std::move(reader)});
  while (reading->reader->read().batches <= segment.returned.batches) RETURN_IF_ERROR(LookAhead(segment));
  return absl::OkStatus();
}

absl::Status Spool::Impl::LookAhead(const SpoolSegment& segment) {
  ASSIGN_OR_RETURN(reading->ahead, reading->reader->Next());
  if (!reading->ahead) {
    return Error(absl::StatusCode::kInvalidArgument,
                 fmt::format("ends after {} batches of {}", reading->reader->read().batches, segment.totals.batches));
  }
  return absl::OkStatus();
}

// What was not returned cannot be read.
void Spool::Impl::LoseRest(SegmentId id, const absl::Status& why) {
  auto segment = Find(id);
  if (uint64_t held = 0; log_limit.Allow(clock.Monotonic(), &held)) {
    LogWarning("spool segment={} damaged: {} suppressed={}", SegmentName(id), Message(why), held);
  }
  metrics.damaged_segments.Add();
  SpoolTotals lost = segment->totals;
  lost -= segment->returned;
  segment->damaged = DamagedFrom(*segment, segment->returned.batches);
  if (segment->damaged.empty()) return DropRest(segment, lost);
  // Its file stays until the reducer that it was claimed for has answered for it.
  segment->totals = segment->returned;
  samples -= lost.samples;
  reading.reset();
  ShowSizes();
  metrics.dropped_damaged.Add(lost.samples);
}

// Of what nobody can have stored.
void Spool::Impl::DropRest(std::deque<SpoolSegment>::iterator segment, const SpoolTotals& lost) {
  const SegmentId id = segment->id;
  const bool earlier = segment->earlier;
  if (segment->returned.batches == 0) {
    Forget(segment);
    RemoveFile(id);
  } else {
    segment->totals = segment->returned;
    samples -= lost.samples;
    if (reading && reading->reader->read().batches == segment->returned.batches) {
      // A later start does not find, and tell, the same damage again.
      const uint64_t good_bytes = reading->reader->read_bytes();
      absl::Status status = storage.Truncate(SegmentName(id), good_bytes);
      if (status.ok()) status = storage.Sync(SegmentName(id));
      if (!status.ok()) Failed(SpoolOperation::kAppend, status);
      bytes -= segment->bytes - good_bytes;
      segment->bytes = good_bytes;
    }
  }
  reading.reset();
  ShowSizes();
  Report(LossReason::kSpoolDamaged, lost, earlier);
}

absl::Status Spool::Impl::Claim(SegmentId id, uint32_t index, const SpoolClaim& claim) {
  auto segment = Find(id);
  if (segment == segments.end() || index >= segment->totals.batches) {
    return Error(absl::StatusCode::kNotFound, "spool: no such batch");
  }
  if (open && open->id == id) Close();
  FoundClaims next = segment->claims;
  while (!next.claims.empty() && next.claims.back().index >= index) next.claims.pop_back();
  next.claims.push_back(SegmentClaim{index, claim});
  if (next.claims == segment->claims.claims) return absl::OkStatus();
  ++next.serial;
  RETURN_IF_ERROR(WriteClaims(*segment, std::move(next)));
  segment->earlier_claims = std::min(segment->earlier_claims, segment->claims.claims.size() - 1);
  return absl::OkStatus();
}

// The slot that does not hold the newest claims takes the new ones first, so that a torn write leaves the others; then
// the second copy is made, so that one damaged sector leaves the newest.
absl::Status Spool::Impl::WriteClaims(SpoolSegment& segment, FoundClaims next) {
  const std::string name = SegmentName(segment.id);
  auto write = [&](size_t slot, const std::string& what) -> absl::Status {
    RETURN_IF_ERROR(storage.Overwrite(name, ClaimSlotOffset(slot), what));
    return storage.Sync(name);
  };
  const size_t old_slot = segment.claims.slot;
  next.slot = kClaimSlots - 1 - old_slot;
  ASSIGN_OR_RETURN(const std::string encoded, EncodeClaimSlot(next.claims, next.serial));
  if (absl::Status status = write(next.slot, encoded); !status.ok()) {
    Failed(SpoolOperation::kClaim, status);
    // The sequence numbers may go to other batches now: what is on disk must not say that they are this segment's.
    absl::Status undone = write(next.slot, std::string(kClaimSlotBytes, '\0'));
    if (!undone.ok()) Failed(SpoolOperation::kClaim, undone);
    return status;
  }
  segment.claims = std::move(next);
  if (absl::Status status = write(old_slot, encoded); !status.ok()) Failed(SpoolOperation::kClaim, status);
  return absl::OkStatus();
}

void Spool::Impl::Release(SegmentId id) {
  auto segment = Find(id);
  if (segment == segments.end()) return;
  if (open && open->id == id) open.reset();
  if (reading && reading->id == id) reading.reset();
  Forget(segment);
  RemoveFile(id);
}

}  // namespace tributary::intake
