#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "intake/spool/spool.h"
#include "intake/spool/spool_segment.h"

namespace tributary::intake {

// What is known of one segment on disk, and how much of it was returned.
struct SpooledSegment {
  SegmentId id = 0;
  bool earlier = false;  // an earlier process wrote it
  uint64_t bytes = 0;
  SpoolTotals totals;    // of the batches that can be read
  SpoolTotals returned;  // of those that Next has returned
  FoundClaims claims;
  Accounting since_claim;     // added by the returned batches that the newest of their claims covers
  size_t earlier_claims = 0;  // of them, the first ones: not made by Claim in this process
  // Where there are earlier claims: who wrote it, all records that are known, and those of batches that cannot be read,
  // which Next returns last.
  SessionInfo writer;
  std::vector<SpoolRecord> records;
  std::deque<SpooledBatch> damaged;

  bool readable() const { return returned.batches < totals.batches; }
  bool unread() const { return readable() || !damaged.empty(); }
  // Nothing of it was returned, so nothing reads it either.
  bool droppable() const { return claims.claims.empty() && returned.batches == 0; }

  // The claim that an earlier process left on the batch that Next returns next, as it is from that batch on.
  std::optional<SpoolClaim> ClaimOfNext() const;
  // What an earlier process claimed of the segment from batch `from` on, as Next returns what cannot be read.
  std::deque<SpooledBatch> DamagedFrom(uint32_t from) const;
};

}  // namespace tributary::intake
