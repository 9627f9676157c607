#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "intake/spool/spool.h"
#include "intake/spool/spool_metrics.h"
#include "intake/spool/spool_reader.h"
#include "intake/spool/spool_segment.h"
#include "intake/spool/spool_writer.h"

// The inside of Spool: spool.cc finds, writes and drops segments, spool_delivery.cc reads, claims and releases them.

namespace tributary::intake {

// A segment that is not full yet and one more record make a file that can be read.
constexpr uint64_t kSpoolRecordBytesMax = kSpoolFileBytesMax / 2;

struct SpoolSegment {
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
  bool droppable() const { return claims.claims.empty() && returned.batches == 0; }
};

// What an earlier process claimed of the segment from batch `from` on, as Next returns what cannot be read.
std::deque<SpooledBatch> DamagedFrom(const SpoolSegment& segment, uint32_t from);

struct Spool::Impl {
  // The segment being written: the last of `segments` once its first batch is on disk.
  struct Open {
    SegmentId id = 0;
    std::optional<SpoolClaim> claim;
    SegmentWriter writer;
    MonotonicNs since;
    uint32_t batches = 0;
    Accounting totals;  // the claim's base and what the batches added

    // Whether a batch with this claim may be the next one.
    bool Continues(const std::optional<SpoolClaim>& next) const {
      if (!claim || !next) return !claim && !next;
      return claim->host == next->host && claim->port == next->port && claim->session_id == next->session_id &&
             claim->first_sequence + batches == next->first_sequence && totals == next->base;
    }
  };
  struct Reading {
    SegmentId id = 0;
    std::unique_ptr<SegmentReader> reader;
    // The batch that Next returns next. It is decoded before the one in front of it is returned, which would else not
    // be known to be the segment's last when this one is damaged.
    std::optional<Batch> ahead;
  };

  Impl(SpoolOptions given, SpoolStorage& files, SessionInfo writer, const Clock& time, Metrics& registry,
       Dropped callback)
      : options(given),
        storage(files),
        session(std::move(writer)),
        clock(time),
        metrics(registry),
        dropped(std::move(callback)) {
    // Dropping the oldest segment should drop a part of what there is.
    options.segment_bytes = std::min({options.segment_bytes, options.bytes_max / 4, kSpoolRecordBytesMax});
  }

  absl::Status Load();
  void LoadSegment(SegmentId id);

  absl::Status Append(const Batch& batch, const std::optional<SpoolClaim>& claim);
  std::string Encode(const Batch& batch, const std::optional<SpoolClaim>& claim);
  absl::Status Write(const std::string& bytes, const Batch& batch);
  absl::Status MakeRoom(uint64_t bytes_needed);
  uint64_t DroppableBytes() const;
  bool CanHold(uint64_t more) const {
    return more <= kSpoolRecordBytesMax &&
           (bytes + more <= options.bytes_max || bytes - DroppableBytes() + more <= options.bytes_max);
  }
  void Close();
  void Abandon();

  std::optional<SpooledBatch> Next();
  absl::Status Position(const SpoolSegment& segment);
  absl::Status LookAhead(const SpoolSegment& segment);
  void LoseRest(SegmentId id, const absl::Status& why);
  SpooledBatch NextDamaged(SpoolSegment& segment);
  void DropRest(std::deque<SpoolSegment>::iterator segment, const SpoolTotals& lost);

  absl::Status Claim(SegmentId id, uint32_t index, const SpoolClaim& claim);
  absl::Status WriteClaims(SpoolSegment& segment, FoundClaims next);
  void Release(SegmentId id);
  void Tick();

  std::deque<SpoolSegment>::iterator Find(SegmentId id) {
    return std::find_if(segments.begin(), segments.end(), [id](const SpoolSegment& s) { return s.id == id; });
  }
  void Forget(std::deque<SpoolSegment>::iterator segment);
  void RemoveFile(SegmentId id);
  void Failed(SpoolOperation operation, const absl::Status& status);
  void Report(LossReason reason, const SpoolTotals& lost, bool earlier);
  void ReportFound();
  void ShowSizes();

  SpoolOptions options;
  SpoolStorage& storage;
  const SessionInfo session;
  const Clock& clock;
  SpoolMetrics metrics;
  Dropped dropped;

  std::deque<SpoolSegment> segments;  // in the order of Next
  uint64_t bytes = 0;                 // of all segments
  uint64_t samples = 0;
  std::optional<Open> open;
  std::optional<Reading> reading;
  SegmentId next_id = 1;
  std::vector<SegmentId> unremoved;  // not wanted any more, and still on disk
  SpoolTotals found_damaged;         // by Load, not yet reported
  LogLimit log_limit{kNsPerMinute};
};

}  // namespace tributary::intake
