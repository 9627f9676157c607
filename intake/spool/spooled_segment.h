#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "intake/spool/spool.h"
#include "intake/spool/spool_segment.h"

namespace tributary::intake {

// The state of one segment on disk, and how many of its batches Next (Spool::Next) has returned.
struct SpooledSegment {
  SegmentId id = 0;
  bool earlier = false;  // an earlier process wrote it
  uint32_t version = kSegmentVersionSamples;
  uint64_t bytes = 0;
  SpoolTotals totals;    // of the readable batches
  SpoolTotals returned;  // of the batches that Next has returned
  FoundClaims claims;
  Accounting since_claim;     // sum over the returned batches that the claim of the last returned batch covers
  size_t earlier_claims = 0;  // number of leading claims in `claims` that this process did not make with Claim
  // These three members are set only if there are earlier claims: the session that wrote the segment, all known
  // records, and the claimed batches that cannot be read. Next returns the unreadable batches last, with
  // damaged_samples.
  SessionInfo writer;
  std::vector<SpoolRecord> records;
  std::deque<SpooledBatch> damaged;

  bool readable() const { return returned.batches < totals.batches; }
  bool unread() const { return readable() || !damaged.empty(); }
  // Returns true if the segment may be dropped, because no batch was claimed or returned.
  bool droppable() const { return claims.claims.empty() && returned.batches == 0; }

  // Returns the claim on the next batch of this segment, if an earlier process made it. The sequence number and totals
  // in the returned claim are for this batch.
  std::optional<SpoolClaim> ClaimOfNext() const;
  // Returns the batches with index `from` and higher that an earlier process claimed, as unreadable batches: without
  // samples, but with damaged_samples.
  std::deque<SpooledBatch> DamagedFrom(uint32_t from) const;
};

}  // namespace tributary::intake
