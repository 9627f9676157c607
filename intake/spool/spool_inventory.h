#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "intake/spool/spool.h"
#include "intake/spool/spool_metrics.h"
#include "intake/spool/spool_storage.h"
#include "intake/spool/spooled_segment.h"

namespace tributary::intake {

// The list of a spool's segments, with the number of bytes and samples in all of them. Reports lost samples. Finds the
// segments of an earlier process. SpoolAppender adds segments, and drops old segments if the spool is full.
// SpoolDelivery removes delivered segments.
class SpoolInventory {
 public:
  using Iterator = std::deque<SpooledSegment>::iterator;

  // `session` describes this process. All borrowed objects must outlive the inventory.
  SpoolInventory(SpoolStorage& storage, const SessionInfo& session, const Clock& clock, Metrics& metrics,
                 Spool::Dropped dropped)
      : storage_(storage), session_(session), clock_(clock), metrics_(metrics), dropped_(std::move(dropped)) {}

  // Finds the segments of an earlier process. Must be called once, before all other methods. FailedPrecondition if a
  // newer release wrote them.
  absl::Status Load();

  SegmentId TakeId() { return next_id_++; }
  std::deque<SpooledSegment>& segments() { return segments_; }  // in the order of Spool::Next
  const std::deque<SpooledSegment>& segments() const { return segments_; }
  Iterator Find(SegmentId id) {
    return std::find_if(segments_.begin(), segments_.end(), [id](const SpooledSegment& s) { return s.id == id; });
  }
  uint64_t bytes() const { return bytes_; }      // of all segments
  uint64_t samples() const { return samples_; }  // of all segments, returned by Next or not

  // Counts a record that was appended to the segment's file.
  void Grow(SpooledSegment& segment, uint64_t record_bytes, const SpoolTotals& record);
  // Subtracts from the segment's totals the batches that Next has not returned: they will not be read.
  void CutToReturned(SpooledSegment& segment);
  // Call it after the segment's file was cut to this length.
  void Shrink(SpooledSegment& segment, uint64_t bytes);
  // Removes the segment from the inventory, but not its file.
  void Forget(Iterator segment);
  // Removes the segment's file. If this fails, RemoveAgain tries again.
  void RemoveFile(SegmentId id);
  void RemoveAgain();

  // Counts and logs a failed operation of the storage.
  void Failed(SpoolOperation operation, const absl::Status& status);
  // Counts and logs that a segment is damaged and cannot be read to its end.
  void FoundDamage(SegmentId id, const absl::Status& why);
  // Counts the samples of damaged batches that are claimed. Do not call Report for these samples.
  void CountClaimedDamage(const SampleCounts& samples) { metrics_.damaged.Add(samples); }
  // Counts samples that will never be delivered, and calls `dropped`.
  void Report(LossReason reason, const SpoolTotals& lost, bool earlier);
  // Calls Report for the samples that Load found damaged. Does nothing when it is called again.
  void ReportFound();

 private:
  absl::Status LoadSegment(SegmentId id);
  void ShowSizes();

  SpoolStorage& storage_;
  const SessionInfo& session_;
  const Clock& clock_;
  SpoolMetrics metrics_;
  const Spool::Dropped dropped_;

  std::deque<SpooledSegment> segments_;
  uint64_t bytes_ = 0;
  uint64_t samples_ = 0;
  SegmentId next_id_ = 1;
  std::vector<SegmentId> unremoved_;  // not needed any more, but removing their files failed
  SpoolTotals found_damaged_;         // found by Load and not reported yet
  LogLimit log_limit_{kNsPerMinute};
};

}  // namespace tributary::intake
