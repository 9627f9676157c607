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
// slots for claims. Then follow the records, one for each batch. A record begins with a checksummed prefix. The prefix
// contains the batch's number of samples and the amounts that it adds to the accounting, so that these can be read
// without decoding the rest. Then come the batch's intake frames (intake/wire/frame.h), which have their own checksums.
constexpr size_t kClaimSlotsOffset = 2048;
constexpr size_t kClaimSlotBytes = 3072;
constexpr size_t kClaimSlots = 2;
constexpr size_t kSegmentHeaderBytes = kClaimSlotsOffset + kClaimSlots * kClaimSlotBytes;
constexpr size_t kRecordPrefixBytes = 28;

std::string SegmentName(SegmentId id);                             // "segment-00000000000000a1.trs"
std::optional<SegmentId> ParseSegmentName(std::string_view name);  // nullopt: not a segment's name

struct SegmentHeader {
  SegmentId id = 0;
  SessionInfo session;  // of the process that wrote the segment; texts of at most kTextBytesMax bytes
  UnixNs created;
};

// Covers batch `index`, from 0, and all batches after it, up to the next claim.
struct SegmentClaim {
  uint32_t index = 0;
  SpoolClaim claim;
  friend bool operator==(const SegmentClaim&, const SegmentClaim&) = default;
};

// Writes the claims, if there are any, into both slots; they must fit into a slot.
std::string EncodeSegmentHeader(const SegmentHeader& header, const std::vector<SegmentClaim>& claims);
// InvalidArgument if damaged, or not a segment. FailedPrecondition if a newer release wrote it.
absl::StatusOr<SegmentHeader> DecodeSegmentHeader(std::string_view file);

// Encodes all claims of a segment as one slot. `serial` must increase with every change. ResourceExhausted if there are
// too many claims. InvalidArgument if a host is longer than kTextBytesMax.
absl::StatusOr<std::string> EncodeClaimSlot(const std::vector<SegmentClaim>& claims, uint32_t serial);
constexpr size_t ClaimSlotOffset(size_t slot) { return kClaimSlotsOffset + slot * kClaimSlotBytes; }

// The claims of a segment, from the newer one of its valid slots. A change of the claims is written to one slot, and
// when that is durable, to the other. If a slot is neither valid nor empty, the process stopped while it wrote the
// slot. No batch was sent under the claims in such a slot.
struct FoundClaims {
  std::vector<SegmentClaim> claims;
  uint32_t serial = 0;
  size_t slot = 0;
};
FoundClaims DecodeClaims(std::string_view file);

// The sums over the batches of a segment, or over a part of them.
struct SpoolTotals {
  uint32_t batches = 0;
  SampleCounts samples;
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
// Returns the record with a whole prefix at `offset`; its frames may be cut off by the end of the file. Returns nullopt
// if there is no record.
std::optional<SpoolRecord> RecordAt(std::string_view file, size_t offset, SegmentId segment);

// The records of a segment, from their prefixes alone. `whole`: the records that follow the header without a gap.
struct SegmentScan {
  SpoolTotals whole;
  uint64_t whole_bytes = kSegmentHeaderBytes;  // of the header and `whole`; after it: a half-written record, or damage
  SpoolTotals rest;                            // of records after a gap; their batches cannot be delivered
  std::vector<SpoolRecord> records;            // of `whole` and `rest`
};
SegmentScan ScanSegment(std::string_view file, SegmentId segment);

}  // namespace tributary::intake
