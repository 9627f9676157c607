#include "intake/spool/spool_segment.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "base/little_endian.h"
#include "base/number.h"
#include "base/status.h"
#include "base/varint.h"
#include "intake/codec/batch_encoder.h"
#include "intake/spool/spool_accounting.h"
#include "intake/wire/messages.h"

namespace tributary::intake {
namespace {

constexpr uint32_t kSegmentMagic = 0x53425254;     // "TRBS"
constexpr uint32_t kClaimMagic = 0x43425254;       // "TRBC"
constexpr uint32_t kTypedClaimMagic = 0x44425254;  // "TRBD"
constexpr uint32_t kRecordMagic = 0x52425254;      // "TRBR"
constexpr size_t kHeaderFixedBytes = 20;           // magic, version, length, checksum
constexpr size_t kClaimFixedBytes = 20;            // magic, serial, length, checksum
// All types together, and 65 types, take 10 KB at most. The rest is for counts that later releases append.
constexpr size_t kAccountingBytesMax = 16'384;
constexpr uint64_t kEventsOfBatchMax = kProcessEventsPerBatchMax * uint64_t{UINT32_MAX};

// Above version 1 the version is the seed: a damaged version is not taken for the version of a newer release.
uint64_t WriterChecksum(std::string_view body, uint32_t version) {
  return XXH3_64bits_withSeed(body.data(), body.size(), version > 1 ? version : 0);
}

void AppendText(std::string& out, std::string_view text) {
  text = text.substr(0, kTextBytesMax);
  AppendVarint(out, text.size());
  out.append(text);
}

bool ReadText(VarintReader& reader, std::string* text) {
  uint64_t size = 0;
  std::string_view bytes;
  if (!reader.Read(&size) || size > kTextBytesMax || !reader.ReadBytes(size, &bytes)) return false;
  text->assign(bytes);
  return true;
}

// Covers the prefix without its checksum, and the accounting after it. The segment's id is the seed, so that a record
// of another file is not accepted. A file system may bring such a record back into a block of this file.
uint64_t RecordChecksum(std::string_view prefix, std::string_view accounting, SegmentId segment) {
  std::string covered(prefix.substr(0, kRecordPrefixBytes - sizeof(uint64_t)));
  covered.append(accounting);
  return XXH3_64bits_withSeed(covered.data(), covered.size(), segment);
}

// Returns the claim's base totals as a segment of this version contains them.
Accounting BaseIn(uint32_t version, const SpoolClaim& claim) {
  if (version >= kSegmentVersionEvents) return claim.base;
  Batch batch;
  batch.accounting = claim.base;
  return WithoutEvents(std::move(batch)).accounting;
}

bool ReadClaim(VarintReader& reader, bool with_types, SegmentClaim* out) {
  uint64_t index = 0, port = 0;
  std::string_view session_id;
  SpoolClaim& claim = out->claim;
  if (!reader.Read(&index) || index > UINT32_MAX || !ReadText(reader, &claim.host) || !reader.Read(&port) ||
      port > UINT16_MAX || !reader.ReadBytes(claim.session_id.size(), &session_id) ||
      !reader.Read(&claim.first_sequence) || !ReadAccounting(reader, &claim.base)) {
    return false;
  }
  SampleCounts none;
  if (with_types && !ReadTypes(reader, &claim.base, &none)) return false;
  out->index = static_cast<uint32_t>(index);
  claim.port = static_cast<uint16_t>(port);
  std::memcpy(claim.session_id.data(), session_id.data(), session_id.size());
  return true;
}

std::optional<FoundClaims> DecodeSlot(std::string_view slot) {
  const auto magic = LoadLittleEndian<uint32_t>(&slot[0]);
  if (magic != kClaimMagic && magic != kTypedClaimMagic) return std::nullopt;
  const size_t size = LoadLittleEndian<uint32_t>(&slot[8]);
  if (size > kClaimSlotBytes - kClaimFixedBytes) return std::nullopt;
  FoundClaims found;
  found.serial = LoadLittleEndian<uint32_t>(&slot[4]);
  const std::string_view body = slot.substr(kClaimFixedBytes, size);
  if (XXH3_64bits_withSeed(body.data(), size, found.serial) != LoadLittleEndian<uint64_t>(&slot[12]))
    return std::nullopt;
  VarintReader reader(body);
  while (!reader.AtEnd()) {
    SegmentClaim claim;
    if (!ReadClaim(reader, magic == kTypedClaimMagic, &claim)) return std::nullopt;
    if (!found.claims.empty() && claim.index <= found.claims.back().index) return std::nullopt;
    found.claims.push_back(std::move(claim));
  }
  return found;
}

}  // namespace

std::string SegmentName(SegmentId id) { return fmt::format("segment-{:016x}.trs", id); }

std::optional<SegmentId> ParseSegmentName(std::string_view name) {
  constexpr size_t kDigitsOffset = 8, kDigits = 16;
  if (name.size() != kDigitsOffset + kDigits + 4) return std::nullopt;
  const std::optional<SegmentId> id = ParseNumber<SegmentId>(name.substr(kDigitsOffset, kDigits), 16);
  // The name must be exactly as SegmentName writes it: no capital letters.
  return id && name == SegmentName(*id) ? id : std::nullopt;
}

std::string EncodeSegmentHeader(const SegmentHeader& header, const std::vector<SegmentClaim>& claims) {
  const SessionInfo& session = header.session;
  std::string body;
  AppendVarint(body, header.id);
  AppendSignedVarint(body, header.created.value);
  body.append(reinterpret_cast<const char*>(session.session_id.data()), session.session_id.size());
  for (const std::string* text : {&session.node_id, &session.boot_id, &session.host_name, &session.kernel_release,
                                  &session.architecture, &session.agent_version}) {
    AppendText(body, *text);
  }
  AppendVarint(body, session.cpu_count);
  AppendVarint(body, session.sample_rate_hz);
  TRIBUTARY_CHECK(kHeaderFixedBytes + body.size() <= kClaimSlotsOffset);
  std::string out(kSegmentHeaderBytes, '\0');
  StoreLittleEndian<uint32_t>(&out[0], kSegmentMagic);
  StoreLittleEndian<uint32_t>(&out[4], header.version);
  StoreLittleEndian<uint32_t>(&out[8], static_cast<uint32_t>(body.size()));
  StoreLittleEndian<uint64_t>(&out[12], WriterChecksum(body, header.version));
  out.replace(kHeaderFixedBytes, body.size(), body);
  if (!claims.empty()) {
    const std::string slot = EncodeClaimSlot(claims, 1, header.version).value();
    for (size_t i = 0; i < kClaimSlots; ++i) out.replace(ClaimSlotOffset(i), kClaimSlotBytes, slot);
  }
  return out;
}

absl::StatusOr<SegmentHeader> DecodeSegmentHeader(std::string_view file) {
  auto damaged = [](std::string_view what) { return Error(absl::StatusCode::kInvalidArgument, what); };
  if (file.size() < kSegmentHeaderBytes) return damaged("the file is shorter than a segment header");
  if (LoadLittleEndian<uint32_t>(&file[0]) != kSegmentMagic) return damaged("the file is not a spool segment");
  const uint32_t version = LoadLittleEndian<uint32_t>(&file[4]);
  const size_t size = LoadLittleEndian<uint32_t>(&file[8]);
  if (size > kClaimSlotsOffset - kHeaderFixedBytes) return damaged("the segment header is too long");
  const std::string_view body = file.substr(kHeaderFixedBytes, size);
  const bool intact = WriterChecksum(body, version) == LoadLittleEndian<uint64_t>(&file[12]);
  if (intact && version > kSegmentVersionEvents) {
    return Error(
        absl::StatusCode::kFailedPrecondition,
        fmt::format("a newer release wrote this file (format version {}, but this release reads version {}): run the "
                    "newer release until it has delivered the spool, or move the file away and lose its samples",
                    version, kSegmentVersionEvents));
  }
  if (!intact || version == 0) return damaged("the segment header is damaged");
  VarintReader reader(body);
  SegmentHeader header;
  header.version = version;
  SessionInfo& session = header.session;
  std::string_view session_id;
  uint64_t cpus = 0, rate = 0;
  bool ok = reader.Read(&header.id) && reader.ReadSigned(&header.created.value) &&
            reader.ReadBytes(session.session_id.size(), &session_id);
  for (std::string* text : {&session.node_id, &session.boot_id, &session.host_name, &session.kernel_release,
                            &session.architecture, &session.agent_version}) {
    ok = ok && ReadText(reader, text);
  }
  ok = ok && reader.Read(&cpus) && reader.Read(&rate) && cpus <= UINT32_MAX && rate <= UINT32_MAX && reader.AtEnd();
  if (!ok) return damaged("the segment header is malformed");
  std::memcpy(session.session_id.data(), session_id.data(), session_id.size());
  session.cpu_count = static_cast<uint32_t>(cpus);
  session.sample_rate_hz = static_cast<uint32_t>(rate);
  return header;
}

bool HasEvents(const Batch& batch, const std::optional<SpoolClaim>& claim) {
  const auto counts_events = [](const Accounting& accounting) { return accounting.Counted().events() > 0; };
  return !batch.events.empty() || counts_events(batch.accounting) || (claim && counts_events(claim->base)) ||
         std::any_of(batch.closes.begin(), batch.closes.end(),
                     [](const ClosedSession& closed) { return closed.captured.events() > 0; });
}

absl::StatusOr<std::string> EncodeClaimSlot(const std::vector<SegmentClaim>& claims, uint32_t serial,
                                            uint32_t version) {
  std::string body;
  const bool with_types = std::any_of(claims.begin(), claims.end(), [version](const SegmentClaim& claim) {
    return HasTypes(BaseIn(version, claim.claim), {});
  });
  for (const auto& [index, claim] : claims) {
    if (claim.host.size() > kTextBytesMax) {
      return Error(absl::StatusCode::kInvalidArgument, "spool: the host name of a reducer is too long");
    }
    AppendVarint(body, index);
    AppendText(body, claim.host);
    AppendVarint(body, claim.port);
    body.append(reinterpret_cast<const char*>(claim.session_id.data()), claim.session_id.size());
    AppendVarint(body, claim.first_sequence);
    const Accounting base = BaseIn(version, claim);
    AppendAccounting(body, base);
    if (with_types) AppendTypes(body, base, {});
  }
  if (kClaimFixedBytes + body.size() > kClaimSlotBytes) {
    return Error(absl::StatusCode::kResourceExhausted,
                 fmt::format("spool: a segment has no room to record {} deliveries", claims.size()));
  }
  std::string out(kClaimSlotBytes, '\0');
  StoreLittleEndian<uint32_t>(&out[0], with_types ? kTypedClaimMagic : kClaimMagic);
  StoreLittleEndian<uint32_t>(&out[4], serial);
  StoreLittleEndian<uint32_t>(&out[8], static_cast<uint32_t>(body.size()));
  StoreLittleEndian<uint64_t>(&out[12], XXH3_64bits_withSeed(body.data(), body.size(), serial));
  out.replace(kClaimFixedBytes, body.size(), body);
  return out;
}

FoundClaims DecodeClaims(std::string_view file) {
  FoundClaims newest;
  if (file.size() < kSegmentHeaderBytes) return newest;
  for (size_t i = 0; i < kClaimSlots; ++i) {
    auto found = DecodeSlot(file.substr(ClaimSlotOffset(i), kClaimSlotBytes));
    if (!found || found->serial <= newest.serial) continue;
    newest = *std::move(found);
    newest.slot = i;
  }
  return newest;
}

SpoolTotals& SpoolTotals::operator+=(const SpoolTotals& other) {
  batches += other.batches;
  samples += other.samples;
  accounting += other.accounting;
  return *this;
}

SpoolTotals& SpoolTotals::operator-=(const SpoolTotals& other) {
  batches -= other.batches;
  samples -= other.samples;
  accounting -= other.accounting;
  return *this;
}

std::string EncodeRecord(SegmentId segment, uint32_t ordinal, const Batch& batch,
                         const std::vector<std::string>& frames) {
  std::string accounting;
  AppendAccounting(accounting, batch.accounting);
  const SampleCounts samples = CountRecords(batch);
  if (HasTypes(batch.accounting, samples)) AppendTypes(accounting, batch.accounting, samples);
  size_t bytes = 0;
  for (const std::string& frame : frames) bytes += frame.size();
  std::string out(kRecordPrefixBytes, '\0');
  out.reserve(kRecordPrefixBytes + accounting.size() + bytes);
  StoreLittleEndian<uint32_t>(&out[0], kRecordMagic);
  StoreLittleEndian<uint32_t>(&out[4], ordinal);
  StoreLittleEndian<uint32_t>(&out[8], static_cast<uint32_t>(batch.samples.size()));
  StoreLittleEndian<uint32_t>(&out[12], static_cast<uint32_t>(bytes));
  StoreLittleEndian<uint32_t>(&out[16], static_cast<uint32_t>(accounting.size()));
  StoreLittleEndian<uint64_t>(&out[20], RecordChecksum(out, accounting, segment));
  out.append(accounting);
  for (const std::string& frame : frames) out.append(frame);
  return out;
}

std::optional<SpoolRecord> RecordAt(std::string_view file, size_t offset, SegmentId segment) {
  if (offset > file.size() || file.size() - offset < kRecordPrefixBytes) return std::nullopt;
  const std::string_view prefix = file.substr(offset, kRecordPrefixBytes);
  if (LoadLittleEndian<uint32_t>(&prefix[0]) != kRecordMagic) return std::nullopt;
  const size_t accounting_bytes = LoadLittleEndian<uint32_t>(&prefix[16]);
  if (accounting_bytes > kAccountingBytesMax || accounting_bytes > file.size() - offset - kRecordPrefixBytes) {
    return std::nullopt;
  }
  const std::string_view accounting = file.substr(offset + kRecordPrefixBytes, accounting_bytes);
  if (RecordChecksum(prefix, accounting, segment) != LoadLittleEndian<uint64_t>(&prefix[20])) return std::nullopt;
  SpoolRecord record;
  record.ordinal = LoadLittleEndian<uint32_t>(&prefix[4]);
  record.totals.batches = 1;
  record.totals.samples = LoadLittleEndian<uint32_t>(&prefix[8]);
  record.frames_bytes = LoadLittleEndian<uint32_t>(&prefix[12]);
  record.frames_offset = offset + kRecordPrefixBytes + accounting_bytes;
  if (record.totals.samples.total() > BatchEncoder::kSamplesPerBatchMax) return std::nullopt;
  VarintReader reader(accounting);
  if (!ReadAccounting(reader, &record.totals.accounting)) return std::nullopt;
  if (!reader.AtEnd() && !ReadTypes(reader, &record.totals.accounting, &record.totals.samples)) return std::nullopt;
  if (record.totals.samples.events() > kEventsOfBatchMax) return std::nullopt;
  return record;
}

SegmentScan ScanSegment(std::string_view file, SegmentId segment) {
  SegmentScan scan;
  while (auto record = RecordAt(file, scan.whole_bytes, segment)) {
    if (record->ordinal != scan.whole.batches + 1 || record->end() > file.size()) break;
    scan.whole += record->totals;
    scan.whole_bytes = record->end();
    scan.records.push_back(*record);
  }
  // After a torn record there is nothing. After a damaged record there are whole records, which at least show what is
  // lost.
  uint32_t last = scan.whole.batches;
  char magic[sizeof(kRecordMagic)];
  StoreLittleEndian<uint32_t>(magic, kRecordMagic);
  for (size_t at = scan.whole_bytes;;) {
    at = file.find(std::string_view(magic, sizeof(magic)), at);
    if (at == std::string_view::npos) break;
    auto record = RecordAt(file, at, segment);
    if (record && record->ordinal > last) {
      last = record->ordinal;
      scan.rest += record->totals;
      scan.records.push_back(*record);
      at = std::min(record->end(), file.size());
    } else {
      ++at;
    }
  }
  return scan;
}

}  // namespace tributary::intake
