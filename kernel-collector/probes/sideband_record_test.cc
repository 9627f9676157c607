#include "kernel-collector/probes/sideband_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernel-collector/probes/records_testing.h"
#include "kernel-collector/probes/sample_record.h"

namespace tributary {
namespace {

template <typename T>
T Parse(const std::vector<uint8_t>& record) {
  SidebandRecord parsed = ParseSidebandRecord(record);
  EXPECT_TRUE(std::holds_alternative<T>(parsed)) << "alternative " << parsed.index();
  return std::holds_alternative<T>(parsed) ? std::get<T>(parsed) : T{};
}

TEST(SidebandRecord, ReadsMappingWithBuildId) {
  std::vector<uint8_t> record = MmapRecordWithBuildId({}, 20, 99);
  auto event = Parse<MmapEvent>(record);
  EXPECT_EQ(event.time, MonotonicNs{99});
  EXPECT_EQ(event.pid, Pid{42});
  EXPECT_EQ(event.tid, Tid{43});
  EXPECT_EQ(event.start, 0x1000u);
  EXPECT_EQ(event.length, 0x2000u);
  EXPECT_EQ(event.file_offset, 0x3000u);
  EXPECT_EQ(event.build_id.ToString(), "0102030405060708090a0b0c0d0e0f1011121314");
  EXPECT_EQ(event.inode, 0u);
  EXPECT_TRUE(event.executable);
  EXPECT_EQ(event.path, "/usr/lib/libx.so");
}

TEST(SidebandRecord, ReadsShortBuildId) {
  EXPECT_EQ(Parse<MmapEvent>(MmapRecordWithBuildId({}, 8, 1)).build_id.ToString(), "0102030405060708");
  EXPECT_FALSE(Parse<MmapEvent>(MmapRecordWithBuildId({}, 0, 1)).build_id.known());
}

TEST(SidebandRecord, ReadsMappingWithInode) {
  std::vector<uint8_t> record = MmapRecordWithInode({.path = "/memfd:x (deleted)"}, 7);
  auto event = Parse<MmapEvent>(record);
  EXPECT_FALSE(event.build_id.known());
  EXPECT_EQ(event.device_major, 8u);
  EXPECT_EQ(event.device_minor, 1u);
  EXPECT_EQ(event.inode, 1234u);
  EXPECT_EQ(event.path, "/memfd:x (deleted)");
}

TEST(SidebandRecord, IgnoresMappingsThatCannotRun) { Parse<IgnoredRecord>(MmapRecordWithInode({.protection = 3}, 1)); }

TEST(SidebandRecord, RefusesMappingsThatMakeNoSense) {
  Parse<BadRecord>(MmapRecordWithBuildId({}, 21, 1));
  Parse<BadRecord>(MmapRecordWithInode({.length = 0}, 1));
  Parse<BadRecord>(MmapRecordWithInode({.start = ~uint64_t{0} - 10}, 1));
}

TEST(SidebandRecord, ReadsCgroups) {
  auto record = [](uint64_t id, std::string_view path) {
    return RecordBuilder(PERF_RECORD_CGROUP).Add(id).AddString(path).Build(9);
  };
  const std::vector<uint8_t> good = record(4711, "/docker/x");
  auto event = Parse<CgroupEvent>(good);
  EXPECT_EQ(event.time, MonotonicNs{9});
  EXPECT_EQ(event.id, 4711u);
  EXPECT_EQ(event.path, "/docker/x");
  Parse<BadRecord>(record(0, "/docker/x"));
  Parse<BadRecord>(record(1, ""));
  Parse<BadRecord>(RecordBuilder(PERF_RECORD_CGROUP).Add<uint32_t>(1).Build(9));
}

TEST(SidebandRecord, ReadsKernelCode) {
  std::vector<uint8_t> record =
      KsymbolRecord(0xffffffffc0001000, 0x80, PERF_RECORD_KSYMBOL_TYPE_BPF, 0, "bpf_prog_1_x", 9);
  auto event = Parse<KernelCodeEvent>(record);
  EXPECT_EQ(event.time, MonotonicNs{9});
  EXPECT_EQ(event.start, 0xffffffffc0001000u);
  EXPECT_EQ(event.length, 0x80u);
  EXPECT_TRUE(event.is_bpf);
  EXPECT_FALSE(event.gone);
  EXPECT_EQ(event.name, "bpf_prog_1_x");
  record = KsymbolRecord(0xffffffffc0001000, 0x80, PERF_RECORD_KSYMBOL_TYPE_OOL, PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER,
                         "ftrace_trampoline", 9);
  EXPECT_FALSE(Parse<KernelCodeEvent>(record).is_bpf);
  EXPECT_TRUE(Parse<KernelCodeEvent>(record).gone);
}

TEST(SidebandRecord, RefusesKernelCodeThatMakesNoSense) {
  Parse<BadRecord>(KsymbolRecord(0xffffffffc0001000, 0, PERF_RECORD_KSYMBOL_TYPE_BPF, 0, "x", 9));
  Parse<BadRecord>(KsymbolRecord(~uint64_t{0} - 10, 0x80, PERF_RECORD_KSYMBOL_TYPE_BPF, 0, "x", 9));
  Parse<BadRecord>(KsymbolRecord(0xffffffffc0001000, 0x80, PERF_RECORD_KSYMBOL_TYPE_BPF, 0, "", 9));
}

TEST(SidebandRecord, ReadsForkExitCommLost) {
  auto task = [](uint32_t type) {
    RecordBuilder builder(type);
    builder.Add<int32_t>(10).Add<int32_t>(11).Add<int32_t>(12).Add<int32_t>(13).Add<int64_t>(5);
    return builder.Build(6);
  };
  auto fork = Parse<ForkEvent>(task(PERF_RECORD_FORK));
  EXPECT_EQ(fork.time, MonotonicNs{6});
  EXPECT_EQ(fork.pid, Pid{10});
  EXPECT_EQ(fork.parent, Pid{11});
  EXPECT_EQ(fork.tid, Tid{12});
  EXPECT_EQ(fork.parent_tid, Tid{13});
  auto exit = Parse<ExitEvent>(task(PERF_RECORD_EXIT));
  EXPECT_EQ(exit.pid, Pid{10});
  EXPECT_EQ(exit.tid, Tid{12});

  std::vector<uint8_t> plain = CommRecord("a name", 8, 5);
  EXPECT_EQ(Parse<CommEvent>(plain).comm, "a name");
  EXPECT_FALSE(Parse<CommEvent>(plain).exec);
  std::vector<uint8_t> after_exec =
      RecordBuilder(PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC).Add(5).Add(6).AddString("x").Build(9);
  auto comm = Parse<CommEvent>(after_exec);
  EXPECT_TRUE(comm.exec);
  EXPECT_EQ(comm.pid, Pid{5});
  EXPECT_EQ(comm.tid, Tid{6});

  std::vector<uint8_t> lost = RecordBuilder(PERF_RECORD_LOST).Add<uint64_t>(1).Add<uint64_t>(17).Build(3);
  EXPECT_EQ(Parse<LostEvent>(lost).events, 17u);
}

TEST(SidebandRecord, IgnoresUnknownKinds) { Parse<IgnoredRecord>(RecordBuilder(PERF_RECORD_THROTTLE).Build(1)); }

TEST(SidebandRecord, RefusesEveryTruncation) {
  std::vector<std::vector<uint8_t>> records = {
      MmapRecordWithBuildId({.path = "/x"}, 20, 1), CommRecord("x", 1),
      RecordBuilder(PERF_RECORD_FORK).Add<uint64_t>(1).Add<uint64_t>(2).Build(1),
      RecordBuilder(PERF_RECORD_LOST).Add<uint64_t>(1).Add<uint64_t>(2).Build(1)};
  for (const std::vector<uint8_t>& record : records) {
    for (size_t cut = 1; cut <= record.size(); ++cut) {
      std::vector<uint8_t> shorter(record.begin(), record.end() - static_cast<long>(cut));
      // First with the old size in the header, then with the matching size.
      Parse<BadRecord>(shorter);
      if (shorter.size() < sizeof(perf_event_header)) continue;
      reinterpret_cast<perf_event_header*>(shorter.data())->size = static_cast<uint16_t>(shorter.size());
      SidebandRecord parsed = ParseSidebandRecord(shorter);
      bool whole_but_path = std::holds_alternative<CommEvent>(parsed) || std::holds_alternative<MmapEvent>(parsed);
      EXPECT_TRUE(std::holds_alternative<BadRecord>(parsed) || (whole_but_path && cut < 8)) << cut;
    }
  }
}

TEST(SidebandRecord, RefusesStringWithoutEnd) {
  std::vector<uint8_t> record = CommRecord("seven77", 1);
  record[sizeof(perf_event_header) + 8 + 7] = 'x';
  Parse<BadRecord>(record);
}

TEST(SampleRecord, ChecksFrameCountsAgainstSize) {
  alignas(8) uint8_t bytes[TRIB_SAMPLE_BYTES_MAX + 8] = {};
  auto* sample = reinterpret_cast<trib_sample*>(bytes);
  sample->type = TRIB_TYPE_CPU;
  sample->kernel_frames = 2;
  sample->user_frames = 3;
  auto record = SampleRecord::FromSample({bytes, TRIB_SAMPLE_HEADER_BYTES + 40});
  ASSERT_TRUE(record);
  EXPECT_EQ(record->sample, sample);
  EXPECT_EQ(record->kernel().size(), 2u);
  EXPECT_EQ(record->user().size(), 3u);
  EXPECT_EQ(record->resume, nullptr);
  EXPECT_FALSE(SampleRecord::FromSample({bytes, TRIB_SAMPLE_HEADER_BYTES + 39}));
  EXPECT_FALSE(SampleRecord::FromSample({bytes, TRIB_SAMPLE_HEADER_BYTES + 48}));
  EXPECT_FALSE(SampleRecord::FromSample({bytes, TRIB_SAMPLE_HEADER_BYTES - 1}));
  EXPECT_FALSE(SampleRecord::FromSample({}));
  sample->stop = TRIB_STOP_COUNT;
  EXPECT_FALSE(SampleRecord::FromSample({bytes, TRIB_SAMPLE_HEADER_BYTES + 40}));
  sample->stop = TRIB_STOP_NONE;
  sample->stack_bytes = 8;
  EXPECT_FALSE(SampleRecord::FromSample({bytes, TRIB_SAMPLE_HEADER_BYTES + 40})) << "this ring has no copies";
  sample->stack_bytes = 0;
  for (const uint8_t type : {uint8_t{0}, static_cast<uint8_t>(TRIB_TYPE_END), uint8_t{255}}) {
    sample->type = type;
    EXPECT_FALSE(SampleRecord::FromSample({bytes, TRIB_SAMPLE_HEADER_BYTES + 40})) << int{type};
    EXPECT_EQ(SampleRecord::TypeOf(bytes), SampleType::kCpu);
  }
  sample->type = TRIB_TYPE_OFF_CPU;
  EXPECT_TRUE(SampleRecord::FromSample({bytes, TRIB_SAMPLE_HEADER_BYTES + 40}));
  EXPECT_EQ(SampleRecord::TypeOf(bytes), SampleType::kOffCpu);
  sample->kernel_frames = TRIB_KERNEL_FRAMES_MAX + 1;
  sample->user_frames = TRIB_USER_FRAMES_MAX;
  EXPECT_FALSE(SampleRecord::FromSample({bytes, sizeof(bytes)}));
}

TEST(SampleRecord, TheTailHasAWordForEachBit) {
  alignas(8) uint64_t words[TRIB_SAMPLE_BYTES_MAX / 8] = {};
  auto* sample = reinterpret_cast<trib_sample*>(words);
  sample->type = TRIB_TYPE_CPU;
  sample->user_frames = 1;
  sample->tail = 1u << 3 | 1u << 4 | 1u << 15;
  uint64_t* frames = words + TRIB_SAMPLE_HEADER_BYTES / 8;
  for (uint64_t i = 0; i < 4; ++i) frames[i] = 10 + i;
  const auto bytes = std::as_bytes(std::span(words, TRIB_SAMPLE_HEADER_BYTES / 8 + 4));
  const std::span<const uint8_t> whole(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  const auto record = SampleRecord::FromSample(whole);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->user()[0], 10u);
  EXPECT_EQ(record->TailWord(3), 11u);
  EXPECT_EQ(record->TailWord(4), 12u);
  EXPECT_EQ(record->TailWord(15), 13u);
  EXPECT_EQ(record->TailWord(0), std::nullopt);
  EXPECT_FALSE(SampleRecord::FromSample(whole.first(whole.size() - 8)));
}

TEST(SampleRecord, TheChainsLieBetweenFramesAndTail) {
  alignas(8) uint64_t words[TRIB_SAMPLE_BYTES_MAX / 8] = {};
  auto* sample = reinterpret_cast<trib_sample*>(words);
  sample->type = TRIB_TYPE_CPU;
  sample->kernel_frames = 1;
  sample->user_frames = 2;
  sample->runtime_words = 3;
  sample->tail = 1;
  uint64_t* frames = words + TRIB_SAMPLE_HEADER_BYTES / 8;
  for (uint64_t i = 0; i < 7; ++i) frames[i] = 10 + i;
  const std::span<const uint8_t> all(reinterpret_cast<const uint8_t*>(words), sizeof(words));
  const auto record = SampleRecord::FromSample(all.first(TRIB_SAMPLE_HEADER_BYTES + 8 * 7));
  ASSERT_TRUE(record);
  EXPECT_THAT(record->user(), testing::ElementsAre(11, 12));
  EXPECT_THAT(record->chains, testing::ElementsAre(13, 14, 15));
  EXPECT_EQ(record->TailWord(0), 16u);
  EXPECT_FALSE(SampleRecord::FromSample(all.first(TRIB_SAMPLE_HEADER_BYTES + 8 * 6)));
  sample->runtime_words = TRIB_SAMPLE_WORDS_MAX - 4;
  EXPECT_TRUE(SampleRecord::FromSample(all));
  sample->runtime_words = UINT16_MAX;
  EXPECT_FALSE(SampleRecord::FromSample(all));
}

TEST(SampleRecord, TheChainsOfACopyEndBeforeItsRegisters) {
  std::vector<uint64_t> words((TRIB_COPY_HEADER_BYTES + TRIB_COPY_BYTES_LARGE) / 8);
  auto* copy = reinterpret_cast<trib_copy*>(words.data());
  copy->sample.type = TRIB_TYPE_CPU;
  copy->sample.user_frames = 1;
  copy->sample.runtime_words = TRIB_COPY_WORDS_MAX - 1;
  copy->sample.stack_bytes = 8;
  copy->words[TRIB_COPY_WORDS_MAX - 1] = 77;
  copy->resume.executable.inode = 88;
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(words.data()), words.size() * 8);
  const auto record = SampleRecord::FromCopy(bytes);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->chains.back(), 77u);
  EXPECT_EQ(record->resume->executable.inode, 88u);
  ++copy->sample.runtime_words;
  EXPECT_FALSE(SampleRecord::FromCopy(bytes));
}

TEST(SampleRecord, ACopyHasOneOfThreeSizesAndItsStackWithinIt) {
  std::vector<uint64_t> words((TRIB_COPY_HEADER_BYTES + TRIB_COPY_BYTES_LARGE) / 8 + 1);
  auto* bytes = reinterpret_cast<uint8_t*>(words.data());
  auto* copy = reinterpret_cast<trib_copy*>(bytes);
  copy->sample.type = TRIB_TYPE_CPU;
  copy->sample.kernel_frames = 1;
  copy->sample.user_frames = 2;
  copy->sample.stack_bytes = 4096;
  copy->resume.sp = 77;
  bytes[TRIB_COPY_HEADER_BYTES] = 5;
  for (size_t tier : {TRIB_COPY_BYTES_SMALL, TRIB_COPY_BYTES_MEDIUM, TRIB_COPY_BYTES_LARGE}) {
    auto record = SampleRecord::FromCopy({bytes, TRIB_COPY_HEADER_BYTES + tier});
    ASSERT_TRUE(record) << tier;
    EXPECT_EQ(record->frames.size(), 3u);
    EXPECT_EQ(record->resume->sp, 77u);
    EXPECT_EQ(record->stack.size(), 4096u);
    EXPECT_EQ(record->stack[0], 5);
    EXPECT_FALSE(SampleRecord::FromCopy({bytes, TRIB_COPY_HEADER_BYTES + tier + 8}));
    EXPECT_FALSE(SampleRecord::FromCopy({bytes, TRIB_COPY_HEADER_BYTES + tier - 8}));
  }
  EXPECT_FALSE(SampleRecord::FromCopy({bytes, TRIB_COPY_HEADER_BYTES - 1}));
  EXPECT_FALSE(SampleRecord::FromCopy({}));
  copy->sample.stack_bytes = 4097;
  EXPECT_FALSE(SampleRecord::FromCopy({bytes, TRIB_COPY_HEADER_BYTES + TRIB_COPY_BYTES_SMALL}));
  EXPECT_TRUE(SampleRecord::FromCopy({bytes, TRIB_COPY_HEADER_BYTES + TRIB_COPY_BYTES_MEDIUM}));
  copy->sample.user_frames = TRIB_USER_FRAMES_MAX + 1;
  EXPECT_FALSE(SampleRecord::FromCopy({bytes, TRIB_COPY_HEADER_BYTES + TRIB_COPY_BYTES_LARGE}));
}

}  // namespace
}  // namespace tributary
