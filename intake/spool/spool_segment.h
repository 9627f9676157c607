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

// The format of a segment file (docs/spool.md): a header of 8 KiB that tells the writer and has two slots for claims,
// then records, one a batch: a checksummed prefix that tells the samples and what they add to the accounting without
// decoding anything, then the batch's intake frames (intake/wire/frame.h), which carry checksums of their own.
constexpr size_t kClaimSlotsOffset = 2048;
constexpr size_t kClaimSlotBytes = 3072;
constexpr size_t kClaimSlots = 2;
constexpr size_t kSegmentHeaderBytes = kClaimSlotsOffset + kClaimSlots * kClaimSlotBytes;
constexpr size_t kRecordPrefixBytes = 28;

std::string SegmentName(SegmentId id);                             // "segment-00000000000000a1.trs"
std::optional<SegmentId> ParseSegmentName(std::string_view name);  // nullopt: not a segment's name

struct SegmentHeader {
  SegmentId id = 0;
  SessionInfo session;  // of the process that wrote it; texts of at most kTextBytesMax bytes
  UnixNs created;
};

// Batch `index`, from 0, and those behind it, up to the next claim, are the claim's.
struct SegmentClaim {
  uint32_t index = 0;
  SpoolClaim claim;
  friend bool operator==(const SegmentClaim&, const SegmentClaim&) = default;
};

// Both slots hold the claims, if there are any; they must fit.
std::string EncodeSegmentHeader(const SegmentHeader& header, const std::vector<SegmentClaim>& claims);
// InvalidArgument: damaged, or not a segment. FailedPrecondition: a newer release wrote it.
absl::StatusOr<SegmentHeader> DecodeSegmentHeader(std::string_view file);

// All of a segment's claims as one slot holds them; `serial` goes up with every change. ResourceExhausted: too many.
// InvalidArgument: a host longer than kTextBytesMax.
absl::StatusOr<std::string> EncodeClaimSlot(const std::vector<SegmentClaim>& claims, uint32_t serial);
constexpr size_t ClaimSlotOffset(size_t slot) { return kClaimSlotsOffset + slot * kClaimSlotBytes; }

// The newer of the whole slots. A change goes to the other slot first and to this one when that is durable: a slot that
// is neither whole nor empty was being written, and nothing was sent on the strength of it.
struct FoundClaims {
  std::vector<SegmentClaim> claims;
  uint32_t serial = 0;
  size_t slot = 0;
};
FoundClaims DecodeClaims(std::string_view file);

// What the batches of a segment, or a part of them, amount to.
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
// The record whose prefix is whole at `offset`; its frames may be cut off by the file's end. nullopt: none is there.
std::optional<SpoolRecord> RecordAt(std::string_view file, size_t offset, SegmentId segment);

// The records that follow each other without a hole from the header on, by their prefixes alone.
struct SegmentScan {
  SpoolTotals whole;
  uint64_t whole_bytes = kSegmentHeaderBytes;  // the header's included; behind it is a torn tail, or damage
  SpoolTotals rest;                            // records known of behind that, whose batches nobody gets
  std::vector<SpoolRecord> records;            // both
};
SegmentScan ScanSegment(std::string_view file, SegmentId segment);

}  // namespace tributary::intake
