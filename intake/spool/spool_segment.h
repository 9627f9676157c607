#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "intake/spool/spool.h"
#include "profile/batch.h"

namespace tributary::intake {

// The format of a segment file (docs/spool.md). First comes a header of 8 KiB that describes the writer and has two
// slots for claims. Then follow the records, one for each batch. A record begins with a prefix of 28 bytes, which
// contains the batch's number of samples. Then comes an accounting: the amounts that the batch adds to the totals. A
// checksum in the prefix covers both. So a reader need not decode the batch to get these numbers. At the end come the
// batch's intake frames (intake/wire/frame.h), which have their own checksums.
constexpr size_t kClaimSlotsOffset = 2048;
constexpr size_t kClaimSlotBytes = 3072;
constexpr size_t kClaimSlots = 2;
constexpr size_t kSegmentHeaderBytes = kClaimSlotsOffset + kClaimSlots * kClaimSlotBytes;
constexpr size_t kRecordPrefixBytes = 28;

// Version 2 has process events: in batches, or in the numbers of an accounting. A release that reads only version 1
// would drop the events silently, or misread the numbers.
constexpr uint32_t kSegmentVersionSamples = 1, kSegmentVersionEvents = 2;

std::string SegmentName(SegmentId id);                             // "segment-00000000000000a1.trs"
std::optional<SegmentId> ParseSegmentName(std::string_view name);  // nullopt if `name` is not the name of a segment

struct SegmentHeader {
  SegmentId id = 0;
  SessionInfo session;  // of the process that wrote the segment; texts of at most kTextBytesMax bytes
  UnixNs created;
  uint32_t version = kSegmentVersionSamples;
};

// Returns true if only a segment of version 2 can contain the batch, or the batch with this claim.
bool HasEvents(const Batch& batch, const std::optional<SpoolClaim>& claim);

// A claim of a segment. It covers batch `index` (from 0) and the batches after it, up to the next claim.
struct SegmentClaim {
  uint32_t index = 0;
  SpoolClaim claim;
  friend bool operator==(const SegmentClaim&, const SegmentClaim&) = default;
};

// Returns the header. Both slots contain `claims`, which must fit into one slot. If there are no claims, both slots are
// empty.
std::string EncodeSegmentHeader(const SegmentHeader& header, const std::vector<SegmentClaim>& claims);
// InvalidArgument if the header is damaged, or if `file` is not a segment. FailedPrecondition if a newer release wrote
// it.
absl::StatusOr<SegmentHeader> DecodeSegmentHeader(std::string_view file);

// Returns the content of a slot with all claims of a segment of this version. `serial` must increase with every change.
// Version 1 has no numbers of process events, so the claims' base totals are written without them: an earlier release
// must be able to read the claims, or else it would send their batches twice. ResourceExhausted if there are too many
// claims. InvalidArgument if a host is longer than kTextBytesMax.
absl::StatusOr<std::string> EncodeClaimSlot(const std::vector<SegmentClaim>& claims, uint32_t serial, uint32_t version);
constexpr size_t ClaimSlotOffset(size_t slot) { return kClaimSlotsOffset + slot * kClaimSlotBytes; }

// The claims of a segment, from the newer one of its valid slots. Changed claims are first written to one slot, and to
// the other slot after the first slot is on disk. If a slot is neither valid nor empty, the process stopped while it
// wrote this slot, or the disk is damaged. In the first case, no batch was sent under new claims that only this slot
// has.
struct FoundClaims {
  std::vector<SegmentClaim> claims;
  uint32_t serial = 0;
  size_t slot = 0;
};
FoundClaims DecodeClaims(std::string_view file);

// Sums over some or all batches of a segment.
struct SpoolTotals {
  uint32_t batches = 0;
  SampleCounts samples;  // and process events
  Accounting accounting;

  SpoolTotals& operator+=(const SpoolTotals& other);
  SpoolTotals& operator-=(const SpoolTotals& other);
};

struct SpoolRecord {
  uint32_t ordinal = 0;  // from 1
  SpoolTotals totals;
  size_t frames_offset = 0;
  size_t frames_bytes = 0;
  size_t end() const { return frames_offset + frames_bytes; }
};

std::string EncodeRecord(SegmentId segment, uint32_t ordinal, const Batch& batch,
                         const std::vector<std::string>& frames);
// Returns the record at `offset`. Its frames may extend beyond the end of the file. Returns nullopt if there is no
// record with a valid prefix and accounting at `offset`.
std::optional<SpoolRecord> RecordAt(std::string_view file, size_t offset, SegmentId segment);

// The records of a segment, found by their prefixes. The frames are not decoded.
struct SegmentScan {
  SpoolTotals whole;                           // of the records that follow the header without a gap
  uint64_t whole_bytes = kSegmentHeaderBytes;  // header and `whole`; an incomplete or damaged record may follow
  SpoolTotals rest;                            // of the other records that were found; they cannot be delivered
  std::vector<SpoolRecord> records;            // the records that `whole` and `rest` count
};
SegmentScan ScanSegment(std::string_view file, SegmentId segment);

}  // namespace tributary::intake
