#include "intake/spool/spool_segment.h"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <memory>

#include "base/little_endian.h"
#include "intake/codec/batch_encoder.h"
#include "intake/codec/event_columns.h"
#include "intake/spool/spool_reader.h"
#include "intake/spool/spool_writer.h"
#include "intake/testing/batch_generator_testing.h"

namespace tributary::intake {
namespace {

SessionInfo Session() {
  SessionInfo session;
  session.session_id.fill(7);
  session.node_id = "machine";
  session.boot_id = "0b1c";
  session.host_name = "host";
  session.kernel_release = "6.12.1";
  session.architecture = "arm64";
  session.agent_version = "0.1.0";
  session.cpu_count = 64;
  session.sample_rate_hz = 97;
  return session;
}

SpoolClaim ClaimFor(uint8_t session, uint64_t first_sequence) {
  SpoolClaim claim{.host = "reducer.example", .port = 7134, .first_sequence = first_sequence};
  claim.session_id.fill(session);
  claim.base.captured = 1000 * first_sequence;
  claim.base.lost[3] = session;
  return claim;
}

TEST(SpoolSegment, NamesAreExact) {
  EXPECT_EQ(SegmentName(0xa1), "segment-00000000000000a1.trs");
  EXPECT_EQ(ParseSegmentName("segment-00000000000000a1.trs"), 0xa1u);
  EXPECT_EQ(ParseSegmentName("segment-ffffffffffffffff.trs"), UINT64_MAX);
  for (const char* name :
       {"", "LOCK", "segment-.trs", "segment-00000000000000A1.trs", "segment-00000000000000a1.tmp",
        "segment-+0000000000000a1.trs", "segment-000000000000000a1.trs", "segment-00000000000000a1.trs~"}) {
    EXPECT_EQ(ParseSegmentName(name), std::nullopt) << name;
  }
}

TEST(SpoolSegment, ClaimsAndRecordsKeepCountsOfEachType) {
  SpoolClaim claim = ClaimFor(3, 5);
  claim.base.captured.Add(SampleType::kOffCpu, 40);
  claim.base.lost[2].Add(SampleType::kOffCpu, 4);
  std::string file = EncodeSegmentHeader({.id = 5, .session = Session()}, {{0, ClaimFor(2, 9)}, {3, claim}});
  EXPECT_EQ(DecodeClaims(file).claims, (std::vector<SegmentClaim>{{0, ClaimFor(2, 9)}, {3, claim}}));

  Batch batch;
  batch.samples.resize(5);
  batch.samples[2].type = batch.samples[4].type = SampleType::kOffCpu;
  batch.accounting = claim.base;
  file += EncodeRecord(5, 1, batch, {});
  const std::optional<SpoolRecord> record = RecordAt(file, kSegmentHeaderBytes, 5);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->totals.samples, CountSamples(batch.samples));
  EXPECT_EQ(record->totals.accounting, batch.accounting);
}

TEST(SpoolSegment, RecordsOfVersion2KeepProcessEvents) {
  BatchGenerator generator(1);
  SegmentWriter writer(9);
  std::string file =
      EncodeSegmentHeader({.id = 9, .session = Session(), .created = {}, .version = kSegmentVersionEvents}, {});
  std::vector<Batch> batches;
  for (int i = 0; i < 8; ++i) {
    if (i == 4) generator.NewDictionary();
    batches.push_back(generator.Next(static_cast<size_t>(i % 3) * 10, static_cast<size_t>(i) * 15));
    file += writer.Encode(batches.back()).value();
  }
  EXPECT_EQ(DecodeSegmentHeader(file)->version, kSegmentVersionEvents);
  auto reader = SegmentReader::Open(file, 9);
  ASSERT_TRUE(reader.ok()) << reader.status();
  SampleCounts all;
  for (const Batch& expected : batches) {
    auto got = (*reader)->Next();
    ASSERT_TRUE(got.ok() && got->has_value()) << got.status();
    const Batch& batch = **got;
    EXPECT_EQ(batch.samples.size(), expected.samples.size());
    EXPECT_EQ(batch.accounting, expected.accounting);
    ASSERT_EQ(batch.events.size(), expected.events.size());
    for (size_t i = 0; i < batch.events.size(); ++i) {
      ProcessEvent event = batch.events[i];
      EXPECT_EQ(batch.dictionary->string(event.name), expected.dictionary->string(expected.events[i].name));
      EXPECT_EQ(batch.dictionary->string(event.cgroup_path),
                expected.dictionary->string(expected.events[i].cgroup_path));
      ForEachString(event, [](StringRef& ref) { ref = {}; });
      ProcessEvent without_strings = expected.events[i];
      ForEachString(without_strings, [](StringRef& ref) { ref = {}; });
      EXPECT_EQ(event, without_strings);
    }
    all += CountRecords(batch);
  }
  EXPECT_EQ((*reader)->read().samples, all);
  EXPECT_GT(all.events(), 0u);
}

// The checksums are right, but the number of events in the prefix is not the number in the frames.
TEST(SpoolSegment, WrongNumberOfProcessEventsIsDamage) {
  BatchGenerator generator(1);
  const Batch batch = generator.Next(3, 5);
  Batch more = batch;
  more.events.push_back(more.events.back());
  const std::string header =
      EncodeSegmentHeader({.id = 9, .session = Session(), .created = {}, .version = kSegmentVersionEvents}, {});
  Batch encoded = batch;
  encoded.accounting = {};
  const std::vector<std::string> frames = BatchEncoder(1).Encode(encoded);
  for (const Batch* counted : {&batch, static_cast<const Batch*>(&more)}) {
    const auto got = (*SegmentReader::Open(header + EncodeRecord(9, 1, *counted, frames), 9))->Next();
    EXPECT_EQ(got.ok(), counted == &batch) << got.status();
  }
}

// An earlier release must be able to read the claims of its own segments.
TEST(SpoolSegment, ClaimsOfVersion1HaveNoProcessEvents) {
  SpoolClaim claim = ClaimFor(3, 5);
  SpoolClaim with_events = claim;
  with_events.base.captured.AddEvents(7);
  with_events.base.LostFor(LossReason::kNotTaken).AddEvents(2);
  EXPECT_EQ(*EncodeClaimSlot({{0, with_events}}, 1, kSegmentVersionSamples),
            *EncodeClaimSlot({{0, claim}}, 1, kSegmentVersionSamples));
  const std::string file = EncodeSegmentHeader(
      {.id = 9, .session = Session(), .created = {}, .version = kSegmentVersionEvents}, {{0, with_events}});
  EXPECT_EQ(DecodeClaims(file).claims, (std::vector<SegmentClaim>{{0, with_events}}));
}

TEST(SpoolSegment, DamagedVersionIsNotAnotherVersion) {
  for (const uint32_t version : {kSegmentVersionSamples, kSegmentVersionEvents}) {
    std::string file = EncodeSegmentHeader({.id = 9, .session = Session(), .created = {}, .version = version}, {});
    for (const uint32_t other : {0u, 1u, 2u, 3u, 4u}) {
      if (other == version) continue;
      StoreLittleEndian<uint32_t>(&file[4], other);
      EXPECT_EQ(DecodeSegmentHeader(file).status().code(), absl::StatusCode::kInvalidArgument);
    }
  }
}

TEST(SpoolSegment, HeaderKeepsTheWriter) {
  const std::string file = EncodeSegmentHeader({.id = 5, .session = Session(), .created = UnixNs{-3}}, {});
  EXPECT_EQ(file.size(), kSegmentHeaderBytes);
  auto header = DecodeSegmentHeader(file);
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->id, 5u);
  EXPECT_EQ(header->created, UnixNs{-3});
  EXPECT_EQ(header->session.session_id, Session().session_id);
  EXPECT_EQ(header->session.node_id, "machine");
  EXPECT_EQ(header->session.boot_id, "0b1c");
  EXPECT_EQ(header->session.host_name, "host");
  EXPECT_EQ(header->session.kernel_release, "6.12.1");
  EXPECT_EQ(header->session.architecture, "arm64");
  EXPECT_EQ(header->session.agent_version, "0.1.0");
  EXPECT_EQ(header->session.cpu_count, 64u);
  EXPECT_EQ(header->session.sample_rate_hz, 97u);
  EXPECT_TRUE(DecodeClaims(file).claims.empty());
}

TEST(SpoolSegment, HeaderFitsTheLongestTexts) {
  SessionInfo session = Session();
  for (std::string* text : {&session.node_id, &session.boot_id, &session.host_name, &session.kernel_release,
                            &session.architecture, &session.agent_version}) {
    text->assign(5000, 'x');
  }
  auto header = DecodeSegmentHeader(EncodeSegmentHeader({.id = UINT64_MAX, .session = session, .created = {}}, {}));
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->session.node_id, std::string(kTextBytesMax, 'x'));
}

TEST(SpoolSegment, NoticesAnyChangedByteOfTheWriter) {
  const std::string file = EncodeSegmentHeader({.id = 5, .session = Session(), .created = {}}, {});
  for (size_t i = 0; i < 70; ++i) {
    std::string changed = file;
    changed[i] = static_cast<char>(changed[i] ^ 0x10);
    EXPECT_FALSE(DecodeSegmentHeader(changed).ok()) << i;
  }
  EXPECT_FALSE(DecodeSegmentHeader(file.substr(0, kSegmentHeaderBytes - 1)).ok());
}

TEST(SpoolSegment, ClaimsRoundTripFromEitherSlot) {
  const std::vector<SegmentClaim> claims = {{0, ClaimFor(1, 10)}, {4, ClaimFor(2, 1)}};
  const std::string file = EncodeSegmentHeader({.id = 5, .session = Session(), .created = {}}, claims);
  EXPECT_EQ(DecodeClaims(file).claims, claims);
  for (size_t slot = 0; slot < kClaimSlots; ++slot) {
    for (size_t at = 0; at < 100; ++at) {
      std::string changed = file;
      changed[ClaimSlotOffset(slot) + at] = static_cast<char>(changed[ClaimSlotOffset(slot) + at] ^ 1);
      EXPECT_EQ(DecodeClaims(changed).claims, claims) << slot << " " << at;
    }
  }
}

// Whatever part of a slot reaches the disk, DecodeClaims must return the old claims or the new ones, never others.
TEST(SpoolSegment, TornClaimIsNoClaim) {
  const std::vector<SegmentClaim> before = {{0, ClaimFor(1, 10)}};
  std::vector<SegmentClaim> after = before;
  after.push_back({3, ClaimFor(2, 1)});
  for (bool claimed : {false, true}) {
    const auto old = claimed ? before : std::vector<SegmentClaim>();
    const std::string file = EncodeSegmentHeader({.id = 5, .session = Session(), .created = {}}, old);
    const std::string slot = *EncodeClaimSlot(after, 2, kSegmentVersionSamples);
    for (size_t part = 0; part < slot.size(); ++part) {
      std::string torn = file;
      torn.replace(ClaimSlotOffset(1), part, slot, 0, part);
      const auto found = DecodeClaims(torn).claims;
      if (torn.compare(ClaimSlotOffset(1), slot.size(), slot) == 0) {
        EXPECT_EQ(found, after);
      } else {
        EXPECT_EQ(found, old) << part;
      }
    }
  }
}

TEST(SpoolSegment, ClaimsHaveALimit) {
  std::vector<SegmentClaim> claims;
  while (EncodeClaimSlot(claims, 1, kSegmentVersionSamples).ok()) {
    claims.push_back({static_cast<uint32_t>(claims.size()), ClaimFor(1, claims.size())});
  }
  EXPECT_GT(claims.size(), 30u);
  EXPECT_EQ(EncodeClaimSlot(claims, 1, kSegmentVersionSamples).status().code(), absl::StatusCode::kResourceExhausted);
  SpoolClaim long_host = ClaimFor(1, 1);
  long_host.host.assign(kTextBytesMax + 1, 'h');
  EXPECT_EQ(EncodeClaimSlot({{0, long_host}}, 1, kSegmentVersionSamples).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// The content of a sample, independent of ids.
std::string Describe(const Sample& sample, const Dictionary& d) {
  std::string out;
  const Thread& thread = d.thread(sample.thread);
  const Process& process = d.process(thread.process);
  out += std::to_string(RoundToWire(sample.time).value) + " " + std::to_string(thread.tid.value) + " " +
         std::string(d.string(thread.name)) + " " + std::to_string(process.key.pid.value) + " " +
         std::string(d.string(process.comm)) + " " + std::string(d.string(process.container_id)) + " " +
         std::string(d.string(process.cgroup_path)) + " " + std::string(d.string(process.executable_path)) + " " +
         d.executable(process.executable).id.ToString();
  for (NodeRef node = sample.node; node.value != 0; node = d.node(node).parent) {
    const tributary::Frame& frame = d.frame(d.node(node).frame);
    const Executable& executable = d.executable(frame.executable);
    out += " " + std::to_string(static_cast<int>(frame.kind)) + (frame.is_caller ? "c" : "l") +
           std::to_string(frame.address) + executable.id.ToString() + std::string(d.string(executable.path)) + "@" +
           std::to_string(frame.position) + std::string(d.string(frame.name));
  }
  return out + " " + std::to_string(sample.value) + " " + std::to_string(sample.count) + " " +
         std::to_string(sample.cpu) + " " + std::to_string(static_cast<int>(sample.ending)) + " " +
         std::string(d.string(sample.attributes));
}

std::vector<std::string> DescribeAll(const Batch& batch) {
  std::vector<std::string> out;
  for (const Sample& sample : batch.samples) out.push_back(Describe(sample, *batch.dictionary));
  return out;
}

TEST(SpoolSegment, ReturnsBatchesOfSeveralDictionariesUnchanged) {
  BatchGenerator generator(1);
  SegmentWriter writer(9);
  std::string file = EncodeSegmentHeader({.id = 9, .session = Session(), .created = {}}, {});
  std::vector<Batch> batches;
  for (int i = 0; i < 12; ++i) {
    if (i % 4 == 3) generator.NewDictionary();
    batches.push_back(generator.Next(i == 5 ? 0 : 200));
    for (size_t s = 0; s < batches.back().samples.size(); s += 7) {
      batches.back().samples[s].attributes = generator.dictionary()->InternString("request=" + std::to_string(s % 3));
    }
    file += writer.Encode(batches.back()).value();
  }
  auto reader = SegmentReader::Open(file, 9);
  ASSERT_TRUE(reader.ok()) << reader.status();
  for (const Batch& expected : batches) {
    auto got = (*reader)->Next();
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_TRUE(got->has_value());
    EXPECT_EQ(DescribeAll(**got), DescribeAll(expected));
    EXPECT_EQ((*got)->accounting, expected.accounting);
    EXPECT_EQ((*got)->clock.unix, expected.clock.unix);
  }
  EXPECT_FALSE((*reader)->Next()->has_value());
  EXPECT_EQ((*reader)->read_bytes(), file.size());
}

TEST(SpoolSegment, FramesKeepTheirFields) {
  auto dictionary = std::make_shared<Dictionary>();
  const StringRef unused = dictionary->InternString("the segment's own numbers are others");
  const ExecutableRef file = dictionary->InternExecutable(
      *ExecutableId::Make(ExecutableIdKind::kGnuBuildId, "interpreter"), "/usr/bin/interpreter");
  const std::vector<tributary::Frame> stack = {
      {FrameKind::kNative, true, file, 0x10, 7, dictionary->InternString("handle(request)")},
      {FrameKind::kUnknown, false, {}, 0xc0de, 3}};
  Batch batch{.sequence = 1, .dictionary = dictionary};
  batch.samples.push_back({.node = dictionary->InternStack(stack), .attributes = unused});
  SegmentWriter writer(9);
  const std::string file_bytes =
      EncodeSegmentHeader({.id = 9, .session = Session(), .created = {}}, {}) + writer.Encode(batch).value();
  const auto got = (*SegmentReader::Open(file_bytes, 9))->Next();
  ASSERT_TRUE(got.ok() && got->has_value()) << got.status();
  EXPECT_EQ(DescribeAll(**got), DescribeAll(batch));
}

TEST(SpoolSegment, HoldsOnlyDefinitionsThatItsSamplesUse) {
  BatchGenerator generator(1);
  for (int i = 0; i < 20; ++i) generator.Next(1000);
  Batch small = generator.Next(1);
  SegmentWriter writer(9);
  EXPECT_LT(writer.Encode(small)->size(), 1000u);
}

TEST(SpoolSegment, FullDictionaryEndsTheSegment) {
  BatchGenerator generator(3);
  DictionaryLimits limits;
  limits.nodes_max = 500;
  SegmentWriter writer(9, limits);
  int batches = 0;
  while (writer.Encode(generator.Next(20)).has_value()) ++batches;
  EXPECT_GT(batches, 1);
}

// A later release appends counts of records of other kinds there (docs/decisions/0001).
TEST(SpoolSegment, SkipsCountsThatLaterReleasesAppend) {
  BatchGenerator generator(1);
  SegmentWriter writer(9);
  std::string record = writer.Encode(generator.Next(3)).value();
  const auto plain = RecordAt(record, 0, 9);
  ASSERT_TRUE(plain);
  const uint32_t length = LoadLittleEndian<uint32_t>(&record[16]);
  const std::string more = '\0' + std::string(3000, '\x7f');  // after zero types
  record.insert(kRecordPrefixBytes + length, more);
  StoreLittleEndian<uint32_t>(&record[16], length + static_cast<uint32_t>(more.size()));
  const std::string covered = record.substr(0, 20) + record.substr(kRecordPrefixBytes, length + more.size());
  StoreLittleEndian<uint64_t>(&record[20], XXH3_64bits_withSeed(covered.data(), covered.size(), 9));
  const auto later = RecordAt(record, 0, 9);
  ASSERT_TRUE(later);
  EXPECT_EQ(later->totals.accounting, plain->totals.accounting);
  EXPECT_EQ(later->frames_offset, plain->frames_offset + more.size());
  EXPECT_EQ(later->frames_bytes, plain->frames_bytes);
  EXPECT_EQ(later->end(), record.size());
}

TEST(SpoolSegment, DamageInTheMiddleIsCounted) {
  BatchGenerator generator(1);
  SegmentWriter writer(9);
  std::string file = EncodeSegmentHeader({.id = 9, .session = Session(), .created = {}}, {});
  std::vector<size_t> begins;
  for (int i = 0; i < 5; ++i) {
    begins.push_back(file.size());
    file += writer.Encode(generator.Next(100)).value();
  }
  std::string damaged = file;
  damaged[begins[2] + 9] ^= 1;  // the third record's number of samples
  SegmentScan scan = ScanSegment(damaged, 9);
  EXPECT_EQ(scan.whole.batches, 2u);
  EXPECT_EQ(scan.whole_bytes, begins[2]);
  EXPECT_EQ(scan.rest.batches, 2u);  // the fourth and the fifth
  EXPECT_EQ(scan.rest.samples.total(), 200u);
  scan = ScanSegment(std::string_view(file).substr(0, file.size() - 1), 9);
  EXPECT_EQ(scan.whole.batches, 4u);
  EXPECT_EQ(scan.rest.samples.total(), 100u);
  EXPECT_EQ(ScanSegment(file, 8).whole.batches, 0u);  // another segment's blocks
}

}  // namespace
}  // namespace tributary::intake
