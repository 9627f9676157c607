#include "intake/spool/spooled_segment.h"

#include <span>
#include <utility>

namespace tributary::intake {
namespace {

// Advances a claim to batch `index`. `since`: what the batches from the claim's first one up to `index` add.
SpoolClaim MovedOn(const SegmentClaim& from, uint32_t index, const Accounting& since) {
  SpoolClaim claim = from.claim;
  claim.first_sequence += index - from.index;
  claim.base += since;
  return claim;
}

SpooledBatch Damaged(const SpooledSegment& segment, const SpoolRecord& record, SpoolClaim claim) {
  SpooledBatch out;
  out.batch.accounting = record.totals.accounting;
  out.batch.accounting.LostFor(LossReason::kSpoolDamaged) += record.totals.samples;
  out.session = segment.writer;
  out.segment = segment.id;
  out.index = record.ordinal - 1;
  out.claim = std::move(claim);
  out.damaged_samples = record.totals.samples;
  return out;
}

}  // namespace

std::optional<SpoolClaim> SpooledSegment::ClaimOfNext() const {
  const SegmentClaim* covering = nullptr;
  size_t number = 0;
  for (const SegmentClaim& claim : claims.claims) {
    if (claim.index > returned.batches) break;
    covering = &claim;
    ++number;
  }
  if (covering == nullptr || number > earlier_claims) return std::nullopt;
  const bool first = covering->index == returned.batches;
  return MovedOn(*covering, returned.batches, first ? Accounting() : since_claim);
}

std::deque<SpooledBatch> SpooledSegment::DamagedFrom(uint32_t from) const {
  std::deque<SpooledBatch> out;
  const auto earlier_ones = std::span(claims.claims).first(earlier_claims);
  size_t next = 0;
  Accounting since;  // of the batches since the newest claim; without batches that have no known record
  for (const SpoolRecord& record : records) {
    const uint32_t index = record.ordinal - 1;
    for (; next < earlier_ones.size() && earlier_ones[next].index <= index; ++next) since = Accounting();
    if (index >= from && next > 0) {
      out.push_back(Damaged(*this, record, MovedOn(earlier_ones[next - 1], index, since)));
    }
    since += record.totals.accounting;
  }
  return out;
}

}  // namespace tributary::intake
