#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "intake/spool/spool.h"
#include "intake/spool/spool_segment.h"

namespace tributary::intake {

// The state of one segment on disk, and how much of it was returned.
struct SpooledSegment {
  SegmentId id = 0;
  bool earlier = false;  // an earlier process wrote it
  uint64_t bytes = 0;
  SpoolTotals totals;    // of the readable batches
  SpoolTotals returned;  // of the batches that Next has returned
  FoundClaims claims;
  Accounting since_claim;     // sum over the returned batches since the newest claim that covers them
  size_t earlier_claims = 0;  // the number of `claims`, from the first on, that this process did not make with Claim
  // Set only if there are earlier claims: the writer of the segment, all known records, and the batches that cannot be
  // read. Next returns these batches last.
  SessionInfo writer;
  std::vector<SpoolRecord> records;
  std::deque<SpooledBatch> damaged;

  bool readable() const { return returned.batches < totals.batches; }
  bool unread() const { return readable() || !damaged.empty(); }
  // Returns true if no batch was claimed or returned: nothing reads the segment, so it may be dropped.
  bool droppable() const { return claims.claims.empty() && returned.batches == 0; }

  // Returns the claim of an earlier process on the batch that Next returns next, advanced to that batch.
  std::optional<SpoolClaim> ClaimOfNext() const;
  // Returns the batches from `from` on that an earlier process claimed, in the form in which Next returns batches that
  // cannot be read.
  std::deque<SpooledBatch> DamagedFrom(uint32_t from) const;
};

}  // namespace tributary::intake
