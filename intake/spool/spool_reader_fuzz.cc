#include <xxhash.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/status.h"
#include "intake/codec/event_columns.h"
#include "intake/spool/spool.h"
#include "intake/spool/spool_segment.h"
#include "intake/testing/fake_spool_storage_testing.h"
#include "intake/testing/message_mutator_testing.h"
#include "intake/wire/frame.h"

// Tests a segment file that is found at start and delivered: the scan, the claims, the reader. An input is the file
// without the zeros of its header. It is a byte, three lengths of two bytes, then the writer, the claim slots, and the
// records. The high bit of the first byte leaves checksums as they are. Otherwise they are corrected first, because no
// changed input would ever pass them.

namespace {

using namespace tributary;
using namespace tributary::intake;

constexpr SegmentId kSegment = 1;

constexpr size_t kLengthsBytes = 6;

template <typename T>
T Load(const std::string& bytes, size_t at) {
  T value = 0;
  std::memcpy(&value, &bytes[at], sizeof(value));
  return value;
}

void Mend(std::string& file, size_t at, const std::string& covered, uint64_t seed) {
  const uint64_t checksum = XXH3_64bits_withSeed(covered.data(), covered.size(), seed);
  std::memcpy(&file[at], &checksum, sizeof(checksum));
}

void MendHeader(std::string& file) {
  if (const uint32_t size = Load<uint32_t>(file, 8); size <= kClaimSlotsOffset - 20) {
    // The seed is the version: only version 2 is accepted, so that no input looks like a file of a newer release.
    Mend(file, 12, file.substr(20, size), Load<uint32_t>(file, 4) == kSegmentVersionEvents ? kSegmentVersionEvents : 0);
  }
  for (size_t i = 0; i < kClaimSlots; ++i) {
    const size_t slot = ClaimSlotOffset(i);
    const uint32_t size = Load<uint32_t>(file, slot + 8);
    if (size <= kClaimSlotBytes - 20)
      Mend(file, slot + 12, file.substr(slot + 20, size), Load<uint32_t>(file, slot + 4));
  }
}

void MendFrames(std::string& file, size_t at, size_t end) {
  while (at <= end && end - at >= kHeaderBytes) {
    const uint32_t stored = Load<uint32_t>(file, at + 20);
    if (stored > end - at - kHeaderBytes) return;
    Mend(file, at + 24, file.substr(at, 24) + file.substr(at + kHeaderBytes, stored), 0);
    at += kHeaderBytes + stored;
  }
}

void MendRecords(std::string& file) {
  for (size_t at = kSegmentHeaderBytes; file.size() - at >= kRecordPrefixBytes;) {
    const uint32_t frames = Load<uint32_t>(file, at + 12), accounting = Load<uint32_t>(file, at + 16);
    const size_t rest = file.size() - at - kRecordPrefixBytes;
    if (accounting > rest) return;
    Mend(file, at + 20, file.substr(at, 20) + file.substr(at + kRecordPrefixBytes, accounting), kSegment);
    const size_t begin = at + kRecordPrefixBytes + accounting;
    if (frames > file.size() - begin) return;
    MendFrames(file, begin, begin + frames);
    at = begin + frames;
  }
}

std::string Expand(const std::string& input) {
  std::string file(kSegmentHeaderBytes, '\0');
  const size_t offsets[] = {0, ClaimSlotOffset(0), ClaimSlotOffset(1), kSegmentHeaderBytes};
  size_t at = kLengthsBytes;
  for (size_t i = 0; i < 3; ++i) {
    const size_t size =
        std::min<size_t>({Load<uint16_t>(input, 2 * i), offsets[i + 1] - offsets[i], input.size() - at});
    file.replace(offsets[i], size, input, at, size);
    at += size;
  }
  return file + input.substr(at);
}

// The three parts of the header as an input contains them, and the records.
struct Parts {
  std::string header[3];
  std::vector<std::string> records;  // the last entry: the bytes that are no whole record
};

Parts PartsOf(std::string_view input) {
  Parts parts;
  std::string_view rest = input.substr(kLengthsBytes);
  for (size_t i = 0; i < 3; ++i) {
    uint16_t size = 0;
    std::memcpy(&size, &input[2 * i], sizeof(size));
    parts.header[i] = rest.substr(0, size);
    rest.remove_prefix(parts.header[i].size());
  }
  while (rest.size() >= kRecordPrefixBytes) {
    const std::string prefix(rest.substr(0, kRecordPrefixBytes));
    const size_t size = size_t{Load<uint32_t>(prefix, 12)} + Load<uint32_t>(prefix, 16);
    if (size > rest.size() - kRecordPrefixBytes) break;
    parts.records.emplace_back(rest.substr(0, kRecordPrefixBytes + size));
    rest.remove_prefix(parts.records.back().size());
  }
  parts.records.emplace_back(rest);
  return parts;
}

std::string InputOf(const Parts& parts) {
  std::string input;
  for (const std::string& part : parts.header) {
    input.push_back(static_cast<char>(part.size()));
    input.push_back(static_cast<char>(part.size() >> 8));
  }
  for (const std::string& part : parts.header) input += part;
  for (const std::string& record : parts.records) input += record;
  return input;
}

void StoreSize(std::string& bytes, size_t at, size_t size) {
  const auto stored = static_cast<uint32_t>(size);
  std::memcpy(&bytes[at], &stored, sizeof(stored));
}

// Changes a writer or a claim slot: a fixed part of 20 bytes, with the length of the rest at offset 8.
void ChangeHeader(MessageMutator& mutator, std::string& part) {
  constexpr size_t kFixed = 20;
  if (part.size() < kFixed || mutator.OneIn(8)) {
    part = mutator.Bytes(part, kClaimSlotBytes);
    return;
  }
  const std::string body = part.substr(kFixed);
  part.resize(kFixed);
  part += mutator.OneIn(2) ? mutator.Varints(body, kClaimSlotBytes - kFixed)
                           : mutator.Bytes(body, kClaimSlotBytes - kFixed);
  StoreSize(part, 8, part.size() - kFixed);
}

void ChangeRecord(MessageMutator& mutator, std::string& record, size_t bytes_max) {
  if (record.size() < kRecordPrefixBytes || mutator.OneIn(8)) {
    record = mutator.Bytes(record, bytes_max);
    return;
  }
  std::string prefix = record.substr(0, kRecordPrefixBytes);
  const size_t behind = kRecordPrefixBytes + std::min<size_t>(Load<uint32_t>(prefix, 16), record.size());
  std::string accounting = record.substr(kRecordPrefixBytes, behind - kRecordPrefixBytes);
  std::string frames = behind < record.size() ? record.substr(behind) : std::string();
  if (mutator.OneIn(4)) {
    accounting = mutator.Varints(accounting, bytes_max);
  } else {
    frames = mutator.Frames(frames, bytes_max);
  }
  StoreSize(prefix, 12, frames.size());
  StoreSize(prefix, 16, accounting.size());
  record = prefix + accounting + frames;
}

void Change(MessageMutator& mutator, Parts& parts, size_t bytes_max) {
  const size_t at = mutator.Below(parts.records.size());
  switch (mutator.Below(16)) {
    case 0:
      parts.records.insert(parts.records.begin() + static_cast<ptrdiff_t>(at), std::string(parts.records[at]));
      break;
    case 1:
      parts.records.erase(parts.records.begin() + static_cast<ptrdiff_t>(at));
      break;
    default:
      if (mutator.OneIn(2)) {
        ChangeHeader(mutator, parts.header[mutator.Below(3)]);
      } else {
        ChangeRecord(mutator, parts.records[at], bytes_max);
      }
  }
}

// A batch that the spool returns refers only to defined ids.
void CheckBatch(const SpooledBatch& next) {
  if (next.batch.dictionary == nullptr) {  // claimed, and not readable
    if (!next.claim || !next.batch.samples.empty() || !next.batch.events.empty()) abort();
    return;
  }
  const Dictionary& dictionary = *next.batch.dictionary;
  for (const Sample& sample : next.batch.samples) {
    if (sample.node.value >= dictionary.node_count() || sample.thread.value >= dictionary.thread_count()) abort();
  }
  for (const ProcessEvent& event : next.batch.events) {
    ForEachString(event, [&dictionary](StringRef ref) {
      if (ref.value >= dictionary.string_count()) abort();
    });
  }
#ifdef TRIBUTARY_PLANT_CRASH
  // Only a whole segment with a batch that decodes and a claim that is not in the corpus reaches this line.
  if (next.claim && !next.batch.samples.empty()) {
    for (uint8_t byte : next.claim->session_id) {
      if (byte != 8) abort();
    }
  }
#endif
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1 + kLengthsBytes) return 0;
  std::string file = Expand(std::string(reinterpret_cast<const char*>(data) + 1, size - 1));
  if ((data[0] & 0x80) == 0) {
    MendHeader(file);
    MendRecords(file);
  }
  FakeSpoolStorage storage(1);
  if (!storage.Append(SegmentName(kSegment), file).ok()) abort();
  FakeClock clock;
  Metrics metrics;
  auto spool = Spool::Open({}, storage, SessionInfo(), clock, metrics, nullptr);
  if (!spool.ok()) abort();
  while (auto next = (*spool)->Next()) {
    CheckBatch(*next);
    if (next->last_of_segment) (*spool)->Release(next->segment);
  }
  // Everything was delivered or dropped.
  if ((*spool)->segments() != 0 || (*spool)->bytes() != 0 || (*spool)->samples() != 0) abort();
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t size_max, unsigned seed) {
  MessageMutator mutator(seed);
  if (size < 1 + kLengthsBytes || mutator.OneIn(16)) return LLVMFuzzerMutate(data, size, size_max);
  Parts parts = PartsOf({reinterpret_cast<const char*>(data) + 1, size - 1});
  for (uint64_t i = mutator.Below(4); i < 4 && !parts.records.empty(); ++i) Change(mutator, parts, size_max);
  const std::string changed = InputOf(parts).substr(0, size_max - 1);
  std::memcpy(data + 1, changed.data(), changed.size());
  return 1 + changed.size();
}
