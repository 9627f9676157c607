#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "intake/spool/spool.h"
#include "intake/spool/spool_appender.h"
#include "intake/spool/spool_inventory.h"
#include "intake/spool/spool_reader.h"
#include "intake/spool/spool_storage.h"

namespace tributary::intake {

// Reads batches from segments, oldest first, claims them for a session, and removes delivered segments.
class SpoolDelivery {
 public:
  // All borrowed objects must outlive the delivery.
  SpoolDelivery(SpoolInventory& inventory, SpoolAppender& appender, SpoolStorage& storage)
      : inventory_(inventory), appender_(appender), storage_(storage) {}

  // See the methods of Spool with the same names.
  std::optional<SpooledBatch> Next();
  absl::Status Claim(SegmentId id, uint32_t index, const SpoolClaim& claim);
  void Release(SegmentId id);

 private:
  struct Reading {
    SegmentId id = 0;
    std::unique_ptr<SegmentReader> reader;
    // The batch that the next call of Next will return. It is decoded one call early, because Next must set
    // `last_of_segment` of each batch that it returns: if the batch ahead is damaged and not claimed, the batch before
    // it is the last one.
    std::optional<Batch> ahead;
  };

  absl::Status Position(const SpooledSegment& segment);
  absl::Status LookAhead(const SpooledSegment& segment);
  SpooledBatch NextDamaged(SpooledSegment& segment);
  void LoseRest(SegmentId id, const absl::Status& why);
  void DropRest(SpoolInventory::Iterator segment, const SpoolTotals& lost);
  absl::Status WriteClaims(SpooledSegment& segment, FoundClaims next);

  SpoolInventory& inventory_;
  SpoolAppender& appender_;
  SpoolStorage& storage_;
  std::optional<Reading> reading_;
};

}  // namespace tributary::intake
