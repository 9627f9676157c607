#include "kernel-collector/collector_core.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cstring>
#include <map>

#include "kernel-collector/probes/fake_unwind_maps.h"
#include "kernel-collector/processes/cgroup_walk.h"
#include "kernel-collector/processes/fakes_for_test.h"

namespace tributary {
namespace {

using testing::ElementsAre;

// The kernel side: samples and events that the test puts in, and the counters that go with them.
class FakeProbes : public Probes {
 public:
  absl::Status StartSampling() override { return absl::OkStatus(); }
  void StopSampling() override { stopped = true; }
  size_t DrainSamples(const std::function<void(const SampleRecord&)>& visit) override {
    size_t count = ring.size() + copies.size();
    for (const auto& words : std::exchange(ring, {})) {
      auto record = SampleRecord::FromSample({reinterpret_cast<const uint8_t*>(words.data()), words.size() * 8});
      EXPECT_TRUE(record);
      if (record) visit(*record);
    }
    for (const auto& words : std::exchange(copies, {})) {
      auto record = SampleRecord::FromCopy({reinterpret_cast<const uint8_t*>(words.data()), words.size() * 8});
      EXPECT_TRUE(record);
      if (record) visit(*record);
    }
    return count;
  }
  void DrainSideband(SidebandVisitor& visitor) override {
    for (const auto& event : std::exchange(events, {})) event(visitor);
  }
  void FollowHotplug() override {}
  Accounting ReadAccounting() override { return accounting; }
  bool has_build_ids() const override { return true; }
  UnwindMaps& unwind_maps() override { return maps; }
  PinnedSession& pinned_session() override { return pins; }
  int wakeup_fd() const override { return -1; }
  absl::Status SetPeriod(uint64_t) override { return absl::OkStatus(); }
  uint64_t ReadRunNs() override { return 0; }

  FakeUnwindMaps maps;
  PinnedSession pins;
  std::vector<std::vector<uint64_t>> ring, copies;
  std::vector<std::function<void(SidebandVisitor&)>> events;
  Accounting accounting;
  bool stopped = false;
};

class FakeSink : public BatchSink {
 public:
  absl::Status Take(Batch batch) override {
    batches.push_back(std::move(batch));
    return absl::OkStatus();
  }
  std::vector<Batch> batches;
};

struct SampleSpec {
  int64_t time = 0;
  uint32_t pid = 0;
  uint64_t start_ns = 1'000'000'000;
  std::vector<uint64_t> user, kernel;
  uint32_t flags = 0;
  uint32_t tid = 0;  // 0 = pid
  std::string comm = "prog";
  uint64_t cgroup = 0;
  trib_stop stop = TRIB_STOP_FRAME_POINTER_END;
  uint64_t exec_id = 1;
  uint32_t table = 0;
};

class CollectorCoreTest : public testing::Test {
 protected:
  CollectorCoreTest() {
    options.proc_root = proc.proc();
    options.cgroup_root = proc.cgroup();
    options.sys_root = proc.sys();
    proc.SetKernel({.text_begin = 0xffffffff81000000,
                    .text_end = 0xffffffff82000000,
                    .module = "ext4",
                    .module_base = 0xffffffffc0000000,
                    .module_size = 0x1000});
    proc.AddProcess(1, {});  // its root is the host's
    proc.AddFile("/bin/a", TinyElf("build-a"));
    proc.AddFile("/bin/b", TinyElf("build-b"));
  }

  CollectorCore& core() {
    if (core_ != nullptr) return *core_;
    core_ = std::make_unique<CollectorCore>(probes, sink, executor, clock, metrics, options);
    // What a test has prepared comes after the start.
    auto ring = std::exchange(probes.ring, {}), copies = std::exchange(probes.copies, {});
    auto events = std::exchange(probes.events, {});
    core_->kernel_code().ReadNow();
    probes.ring = std::move(ring);
    probes.copies = std::move(copies);
    probes.events = std::move(events);
    return *core_;
  }

  void Sample(const SampleSpec& s) {
    std::vector<uint64_t> words(TRIB_SAMPLE_HEADER_BYTES / 8);
    auto* record = reinterpret_cast<trib_sample*>(words.data());
    record->time_ns = static_cast<uint64_t>(s.time);
    record->period_ns = 1000;
    record->start_time_ns = s.start_ns;
    record->cgroup_v2_id = s.cgroup;
    record->pid = s.pid;
    record->tid = s.tid == 0 ? s.pid : s.tid;
    record->cpu = 3;
    record->flags = s.flags;
    record->stop = s.user.empty() ? TRIB_STOP_NONE : s.stop;
    record->exec_id = s.exec_id;
    record->table = s.table;
    record->kernel_frames = static_cast<uint16_t>(s.kernel.size());
    record->user_frames = static_cast<uint16_t>(s.user.size());
    std::memcpy(record->comm, s.comm.data(), std::min<size_t>(s.comm.size(), TRIB_COMM_BYTES));
    words.insert(words.end(), s.kernel.begin(), s.kernel.end());
    words.insert(words.end(), s.user.begin(), s.user.end());
    probes.ring.push_back(std::move(words));
    ++probes.accounting.captured;
  }
  // The same, with what it takes to go on: the registers of the last frame and the words above its stack pointer.
  void Copy(const SampleSpec& s, uint64_t sp, uint64_t fp, uint64_t start_stack, const std::vector<uint64_t>& stack) {
    Sample(s);
    std::vector<uint64_t> words = std::move(probes.ring.back());
    probes.ring.pop_back();
    words.resize((TRIB_COPY_HEADER_BYTES + TRIB_COPY_BYTES_SMALL) / 8);
    auto* copy = reinterpret_cast<trib_copy*>(words.data());
    copy->sample.stack_bytes = static_cast<uint32_t>(stack.size() * 8);
    copy->resume = {.pc = s.user.back(), .sp = sp, .fp = fp, .second = 0, .start_stack = start_stack};
    std::memcpy(words.data() + TRIB_COPY_HEADER_BYTES / 8, stack.data(), stack.size() * 8);
    probes.copies.push_back(std::move(words));
  }
  void Mmap(int64_t time, int pid, uint64_t start, std::string path, std::string build_id) {
    probes.events.push_back([=](SidebandVisitor& v) {
      MmapEvent event{.time = MonotonicNs{time}, .pid = Pid{pid}, .tid = Tid{pid}, .start = start, .length = 0x1000};
      event.file_offset = 0x1000;
      event.build_id = BuildId(build_id);
      event.executable = true;
      event.path = path;
      v.OnMmap(event);
    });
  }
  void Exec(int64_t time, int pid, std::string comm) {
    probes.events.push_back([=](SidebandVisitor& v) {
      v.OnComm(CommEvent{.time = MonotonicNs{time}, .pid = Pid{pid}, .tid = Tid{pid}, .exec = true, .comm = comm});
    });
  }
  void Fork(int64_t time, int parent, int pid) {
    probes.events.push_back([=](SidebandVisitor& v) {
      v.OnFork(ForkEvent{MonotonicNs{time}, Pid{pid}, Pid{parent}, Tid{pid}, Tid{parent}});
    });
  }
  void Exit(int64_t time, int pid) {
    probes.events.push_back([=](SidebandVisitor& v) { v.OnExit(ExitEvent{MonotonicNs{time}, Pid{pid}, Tid{pid}}); });
  }
  void KernelCode(int64_t time, uint64_t start, std::string name, bool gone = false) {
    probes.events.push_back([=](SidebandVisitor& v) {
      v.OnKernelCode(
          {.time = MonotonicNs{time}, .start = start, .length = 64, .is_bpf = true, .gone = gone, .name = name});
    });
  }
  void Lost() {
    probes.events.push_back([](SidebandVisitor& v) { v.OnLost(LostEvent{7}); });
  }

  uint64_t MakeCgroup(const std::string& path) {
    FakeProc::Write(proc.cgroup() + "/cgroup.controllers", "");
    std::filesystem::create_directories(proc.cgroup() + path);
    return CgroupIdOf(proc.cgroup() + path);
  }

  // Polls, lets the worker finish, polls again.
  void Settle() {
    core().Poll();
    executor.RunAll();
    core().Poll();
    executor.RunAll();
    core().Poll();
  }

  // "pid/exec_sequence comm: root;…;leaf", callers marked '<'.
  static std::string Show(const Batch& batch, const tributary::Sample& sample) {
    const Dictionary& d = *batch.dictionary;
    const Thread& thread = d.thread(sample.thread);
    const Process& process = d.process(thread.process);
    std::vector<std::string> frames;
    for (NodeRef node = sample.node; node.value != 0; node = d.node(node).parent) {
      const Frame& f = d.frame(d.node(node).frame);
      std::string_view path = d.string(d.executable(f.executable).path);
      frames.push_back(
          fmt::format("{}{}+{:x}", f.is_caller ? "<" : "", f.executable.value != 0 ? path : "?", f.address));
    }
    std::reverse(frames.begin(), frames.end());
    return fmt::format("{}/{} {}: {}", process.key.pid.value, process.key.exec_sequence, d.string(process.comm),
                       fmt::join(frames, ";"));
  }
  std::vector<std::string> Flushed() {
    core().FlushBatch();
    std::vector<std::string> out;
    for (const auto& sample : sink.batches.back().samples) out.push_back(Show(sink.batches.back(), sample));
    return out;
  }
  const Process& ProcessOf(size_t sample) {
    const Batch& batch = sink.batches.back();
    return batch.dictionary->process(batch.dictionary->thread(batch.samples[sample].thread).process);
  }

  FakeProc proc;
  FakeClock clock{MonotonicNs{100 * kNsPerSecond}};
  Metrics metrics;
  FakeExecutor executor;
  FakeProbes probes;
  FakeSink sink;
  CoreOptions options;
  std::unique_ptr<CollectorCore> core_;
};

constexpr int64_t kT = 50 * kNsPerSecond;

TEST_F(CollectorCoreTest, NamesUserAndKernelFramesRootFirst) {
  Exec(kT, 10, "a");
  Mmap(kT + 1, 10, 0x17000, "/bin/a", "build-a");
  Sample({.time = kT + 10,
          .pid = 10,
          .user = {0x17020, 0x17101, 0x17201},
          .kernel = {0xffffffff81000040, 0xffffffffc0000011},
          .flags = TRIB_FLAG_IN_KERNEL});
  Sample({.time = kT + 11, .pid = 10, .user = {0x17020, 0x17101}});
  Settle();
  EXPECT_THAT(Flushed(), ElementsAre("10/0 a: </bin/a+401201;</bin/a+401101;</bin/a+401020;<[ext4]+11;[kernel]+40",
                                     "10/0 a: </bin/a+401101;/bin/a+401020"));
  EXPECT_EQ(sink.batches.back().samples[0].ending, Ending::kFramePointerLost);
  EXPECT_EQ(sink.batches.back().samples[0].value, 1000u);
  EXPECT_EQ(sink.batches.back().samples[0].cpu, 3);
}

TEST_F(CollectorCoreTest, ASampleThatComesBeforeItsMappingIsHeldAndThenRight) {
  Exec(kT, 10, "a");
  Sample({.time = kT + 10, .pid = 10, .user = {0x17020}});
  Settle();
  EXPECT_EQ(core().held(), 1u);
  EXPECT_TRUE(Flushed().empty());
  Mmap(kT + 5, 10, 0x17000, "/bin/a", "build-a");
  Settle();
  EXPECT_EQ(core().held(), 0u);
  EXPECT_THAT(Flushed(), ElementsAre("10/0 a: /bin/a+401020"));
}

TEST_F(CollectorCoreTest, WhatNeverComesIsSentAsUnknownAfterASecond) {
  Exec(kT, 10, "a");
  Sample({.time = kT + 10, .pid = 10, .user = {0x7a020}, .stop = TRIB_STOP_NO_MAPPING});
  Settle();
  EXPECT_EQ(core().held(), 1u);
  clock.Advance(kNsPerSecond);
  core().Poll();
  EXPECT_THAT(Flushed(), ElementsAre("10/0 a: ?+7a020"));
  EXPECT_EQ(sink.batches.back().samples[0].ending, Ending::kNoMapping);
  // The same page does not make a second sample wait.
  Sample({.time = kT + 20, .pid = 10, .user = {0x7a030}});
  core().Poll();
  EXPECT_EQ(core().held(), 0u);
}

TEST_F(CollectorCoreTest, ALeafNearTheBeginOfTheStackDidNotStartTheProcess) {
  Exec(kT, 10, "a");
  Mmap(kT + 1, 10, 0x17000, "/bin/a", "build-a");
  SampleSpec leaf{.time = kT + 10, .pid = 10, .user = {0x17020}, .stop = TRIB_STOP_NO_PROCESS, .exec_id = 4};
  Copy(leaf, 0x7ff0'0000, 0, 0x7ff0'0020, {0, 0, 0x17101, 0});
  Settle();
  Settle();
  EXPECT_THAT(Flushed(), ElementsAre("10/0 a: /bin/a+401020"));
  EXPECT_EQ(sink.batches.back().samples[0].ending, Ending::kFramePointerLost);
}

TEST_F(CollectorCoreTest, AStackThatTheKernelCouldNotFinishIsContinuedAndTheNextIsItsOwn) {
  Exec(kT, 10, "a");
  Mmap(kT + 1, 10, 0x17000, "/bin/a", "build-a");
  // No unwind information in that file: by frame pointers, to the stack pointer that the process began with.
  SampleSpec first{.time = kT + 10, .pid = 10, .user = {0x17020}, .stop = TRIB_STOP_NO_PROCESS, .exec_id = 4};
  Copy(first, 0x7ff0'0000, 0x7ff0'0008, 0x7ff0'0020, {0, 0, 0x17101, 0});
  Settle();  // the file's identity
  Settle();  // its unwind information
  EXPECT_EQ(core().held(), 0u);
  EXPECT_THAT(Flushed(), ElementsAre("10/0 a: </bin/a+401101;/bin/a+401020"));
  EXPECT_EQ(sink.batches.back().samples[0].ending, Ending::kComplete);

  ASSERT_TRUE(probes.maps.processes.contains(10));
  const trib_process& told = probes.maps.processes[10];
  EXPECT_EQ(told.start_time_ns, 1'000'000'000u);
  EXPECT_EQ(told.exec_id, 4u);
  ASSERT_EQ(told.mapping_count, 1u);
  EXPECT_EQ(probes.maps.mappings()[told.first_mapping].start, 0x17000u);
}

TEST_F(CollectorCoreTest, WhatTheKernelIsToldIsOfOneProgramOnly) {
  Exec(kT, 10, "a");
  Mmap(kT + 1, 10, 0x17000, "/bin/a", "build-a");
  SampleSpec spec{.time = kT + 10, .pid = 10, .user = {0x17020}, .stop = TRIB_STOP_NO_PROCESS, .exec_id = 1};
  Copy(spec, 0x7000, 0, 0x7010, {0, 0});
  Exec(kT + 11, 10, "b");
  Mmap(kT + 12, 10, 0x18000, "/bin/b", "build-b");
  Settle();
  EXPECT_EQ(probes.maps.processes[10].exec_id, 1u);  // of no use to the walk: the task's is 2 by now
  spec.time = kT + 20;
  spec.user = {0x18020};
  spec.exec_id = 2;
  Copy(spec, 0x7000, 0, 0x7010, {0, 0});
  Settle();
  Settle();
  EXPECT_EQ(probes.maps.processes[10].exec_id, 2u);
  EXPECT_EQ(probes.maps.mappings()[probes.maps.processes[10].first_mapping].start, 0x18000u);
  EXPECT_THAT(Flushed(), ElementsAre("10/0 a: /bin/a+401020", "10/1 b: /bin/b+401020"));
}

TEST_F(CollectorCoreTest, ABrokenChainsLastAddressIsNoCaller) {
  Exec(kT, 10, "a");
  Mmap(kT + 1, 10, 0x17000, "/bin/a", "build-a");
  Sample({.time = kT + 10, .pid = 10, .user = {0x17020, 0x17101, 0x5e5e5e}, .stop = TRIB_STOP_NO_MAPPING});
  Settle();
  clock.Advance(kNsPerSecond);
  core().Poll();
  EXPECT_THAT(Flushed(), ElementsAre("10/0 a: </bin/a+401101;/bin/a+401020"));
  EXPECT_EQ(sink.batches.back().samples[0].ending, Ending::kNoMapping);
}

TEST_F(CollectorCoreTest, WhatStandsAboveAThreadsStartIsNoCaller) {
  proc.AddFile("/bin/go", TinyElf("build-go", 0x401100));
  Exec(kT, 10, "go");
  Mmap(kT + 1, 10, 0x17000, "/bin/go", "build-go");
  SampleSpec spec{.time = kT + 10, .pid = 10, .user = {0x17020, 0x17105}, .stop = TRIB_STOP_NO_PAGE};
  Copy(spec, 0x7000, 0, 0x7fff'0000, {0, 0});
  Settle();  // the file's identity
  Settle();  // its unwind information, and with it where threads start
  EXPECT_THAT(Flushed(), ElementsAre("10/0 go: </bin/go+401105;/bin/go+401020"));
  for (uint64_t above : {0x5e5e5eull, 0x17301ull}) {
    spec = {.time = kT + 20, .pid = 10, .user = {0x17020, 0x17105, above}, .stop = TRIB_STOP_NO_MAPPING};
    Sample(spec);
    core().Poll();
    EXPECT_EQ(core().held(), 0u) << "waits for no mapping";
    EXPECT_THAT(Flushed(), ElementsAre("10/0 go: </bin/go+401105;/bin/go+401020"));
    EXPECT_EQ(sink.batches.back().samples[0].ending, Ending::kComplete);
  }
}

TEST_F(CollectorCoreTest, EventsAndSamplesOfOnePollMeetInOrderOfTime) {
  Exec(kT, 10, "a");
  Mmap(kT + 1, 10, 0x17000, "/bin/a", "build-a");
  Sample({.time = kT + 30, .pid = 10, .user = {0x17040}});  // after the second exec
  Sample({.time = kT + 10, .pid = 10, .user = {0x17020}});  // before it
  Exec(kT + 20, 10, "b");
  Mmap(kT + 21, 10, 0x17000, "/bin/b", "build-b");
  Settle();
  EXPECT_THAT(Flushed(), ElementsAre("10/0 a: /bin/a+401020", "10/1 b: /bin/b+401040"));
  EXPECT_EQ(ProcessOf(0).key.start_time_ns, ProcessOf(1).key.start_time_ns);
}

TEST_F(CollectorCoreTest, AHeldSampleKeepsTheProgramThatItIsOf) {
  Exec(kT, 10, "a");
  Mmap(kT + 1, 10, 0x17000, "/bin/a", "build-a");
  Sample({.time = kT + 10, .pid = 10, .user = {0x17020}});
  core().Poll();  // the file is not read yet
  EXPECT_EQ(core().held(), 1u);
  Exec(kT + 20, 10, "b");
  Mmap(kT + 21, 10, 0x17000, "/bin/b", "build-b");
  Settle();
  EXPECT_THAT(Flushed(), ElementsAre("10/0 a: /bin/a+401020"));
}

// The run remembers the last few replacements only: what a held sample was walked by is judged when it comes.
TEST_F(CollectorCoreTest, AHeldSampleStaysCutWhereAMappingHadBeenReplaced) {
  Exec(kT, 10, "a");
  Mmap(kT + 1, 10, 0x17000, "/bin/a", "build-a");
  Sample({.time = kT + 10, .pid = 10, .user = {0x17020}, .stop = TRIB_STOP_NO_PROCESS});
  Settle();
  Flushed();
  ASSERT_TRUE(probes.maps.processes.contains(10));
  const uint32_t table = probes.maps.processes[10].table;
  Mmap(kT + 30, 10, 0x17000, "/bin/b", "build-b");
  Sample({.time = kT + 40, .pid = 10, .user = {0x17020, 0x17040, 0x17080}, .table = table});
  core().Poll();
  EXPECT_EQ(core().held(), 1u) << "the file is not read yet";
  for (int i = 0; i < 40; ++i) {
    const bool is_a = i % 2 == 0;
    Mmap(kT + 50 + i, 10, 0x17000, is_a ? "/bin/a" : "/bin/b", is_a ? "build-a" : "build-b");
  }
  Settle();
  EXPECT_THAT(Flushed(), ElementsAre("10/0 a: /bin/b+401020"));
  EXPECT_EQ(sink.batches.back().samples[0].ending, Ending::kStaleMapping);
}

TEST_F(CollectorCoreTest, ForkSharesMappingsAndThreadsShareTheProcess) {
  Exec(kT, 10, "a");
  Mmap(kT + 1, 10, 0x17000, "/bin/a", "build-a");
  Fork(kT + 2, 10, 11);
  Fork(kT + 3, 10, 10);                            // a thread
  Mmap(kT + 4, 10, 0x19000, "/bin/b", "build-b");  // the parent alone
  Sample({.time = kT + 10, .pid = 11, .start_ns = 2'000'000'000, .user = {0x17020}});
  Sample({.time = kT + 11, .pid = 10, .user = {0x19020}, .tid = 12, .comm = "thread\x1b"});
  Settle();
  EXPECT_THAT(Flushed(), ElementsAre("11/0 a: /bin/a+401020", "10/0 a: /bin/b+401020"));
  EXPECT_EQ(ProcessOf(0).parent, Pid{10});
  const Batch& batch = sink.batches.back();
  const Thread& thread = batch.dictionary->thread(batch.samples[1].thread);
  EXPECT_EQ(thread.tid, Tid{12});
  EXPECT_EQ(batch.dictionary->string(thread.name), "thread\x1b");
}

TEST_F(CollectorCoreTest, APidThatIsUsedAgainIsAnotherProcess) {
  Exec(kT, 10, "a");
  Mmap(kT + 1, 10, 0x17000, "/bin/a", "build-a");
  Sample({.time = kT + 10, .pid = 10, .user = {0x17020}});
  Exit(kT + 11, 10);
  Fork(kT + 12, 1, 10);
  Exec(kT + 13, 10, "b");
  Mmap(kT + 14, 10, 0x17000, "/bin/b", "build-b");
  Sample({.time = kT + 20, .pid = 10, .start_ns = 3'000'000'000, .user = {0x17020}});
  // Late, of the first owner: its mappings are gone, and it must not be taken for the second.
  Settle();
  Sample({.time = kT + 21, .pid = 10, .user = {0x17020}});
  Settle();
  clock.Advance(kNsPerSecond);
  core().Poll();
  EXPECT_THAT(Flushed(), ElementsAre("10/0 a: /bin/a+401020", "10/1 b: /bin/b+401020", "10/0 prog: ?+17020"));
  EXPECT_EQ(ProcessOf(1).key.start_time_ns, 3'000'000'000);
  EXPECT_EQ(ProcessOf(2).key.start_time_ns, 1'000'000'000);
}

TEST_F(CollectorCoreTest, AnUnknownProcessIsReadFromProc) {
  std::string path = proc.AddFile("/bin/c", TinyElf("build-c"));
  struct stat st{};
  ASSERT_EQ(stat(path.c_str(), &st), 0);
  proc.AddProcess(10, {.comm = "see me",
                       .parent = 4,
                       .maps = fmt::format("17000-18000 r-xp 00001000 {:x}:{:x} {} /bin/c\n", major(st.st_dev),
                                           minor(st.st_dev), st.st_ino),
                       .exe = "/bin/c"});
  Sample({.time = kT, .pid = 10, .user = {0x17020}});
  Settle();
  EXPECT_THAT(Flushed(), ElementsAre("10/0 see me: /bin/c+401020"));
  const Dictionary& d = *sink.batches.back().dictionary;
  EXPECT_EQ(ProcessOf(0).parent, Pid{4});
  EXPECT_EQ(d.string(ProcessOf(0).executable_path), "/bin/c");
  EXPECT_EQ(d.executable(ProcessOf(0).executable).id, BuildId("build-c"));
}

TEST_F(CollectorCoreTest, AfterLostEventsMappingsAreReadAgain) {
  Exec(kT, 10, "a");
  Mmap(kT + 1, 10, 0x17000, "/bin/a", "build-a");
  std::string path = proc.AddFile("/bin/c", TinyElf("build-c"));
  struct stat st{};
  ASSERT_EQ(stat(path.c_str(), &st), 0);
  proc.AddProcess(10, {.comm = "a",
                       .maps = fmt::format("17000-18000 r-xp 00001000 {:x}:{:x} {} /bin/c\n", major(st.st_dev),
                                           minor(st.st_dev), st.st_ino)});
  Lost();
  Sample({.time = kT + 10, .pid = 10, .user = {0x17020}});
  Settle();
  // Which of the two was there when the first was taken nobody knows.
  EXPECT_THAT(Flushed(), ElementsAre("10/0 a: ?+17020"));
  Sample({.time = clock.Monotonic().value + 1, .pid = 10, .user = {0x17020}});
  Settle();
  EXPECT_THAT(Flushed(), ElementsAre("10/0 a: /bin/c+401020"));
}

TEST_F(CollectorCoreTest, ProcessesThatAreGoneAfterALossAreForgotten) {
  Exec(kT, 10, "a");
  Exec(kT, 11, "a");
  core().Poll();
  EXPECT_EQ(core().processes().size(), 2u);
  proc.AddProcess(11, {});
  Lost();
  Settle();
  clock.Advance(10 * kNsPerSecond);
  core().Poll();
  EXPECT_EQ(core().processes().size(), 1u);
  EXPECT_NE(core().processes().Find(Pid{11}), nullptr);
}

TEST_F(CollectorCoreTest, KernelThreadsNeedNothing) {
  Sample({.time = kT,
          .pid = 2,
          .kernel = {0xffffffff81000040, 0xffffffff81000051},
          .flags = TRIB_FLAG_IN_KERNEL | TRIB_FLAG_KERNEL_THREAD,
          .comm = "kthreadd"});
  core().Poll();
  EXPECT_EQ(executor.waiting(), 0u);
  EXPECT_THAT(Flushed(), ElementsAre("2/0 kthreadd: <[kernel]+51;[kernel]+40"));
  EXPECT_EQ(sink.batches.back().samples[0].ending, Ending::kKernelOnly);
}

TEST_F(CollectorCoreTest, FindsTheContainerByCgroup) {
  const std::string id(64, 'c');
  const uint64_t cgroup = MakeCgroup("/docker/" + id);
  Exec(kT, 10, "a");
  Mmap(kT + 1, 10, 0x17000, "/bin/a", "build-a");
  Sample({.time = kT + 2, .pid = 10, .user = {0x17020}, .cgroup = cgroup});  // no /proc/10: gone already
  Settle();
  Flushed();
  const Dictionary& d = *sink.batches.back().dictionary;
  EXPECT_EQ(d.string(ProcessOf(0).container_id), id);
  EXPECT_EQ(d.string(ProcessOf(0).cgroup_path), "/docker/" + id);
}

TEST_F(CollectorCoreTest, FindsAContainerThatIsGoneByTheKernelsWord) {
  const std::string id(64, 'c');
  MakeCgroup("/other");
  const std::string path = "/docker/" + id;
  probes.events.push_back(
      [&](SidebandVisitor& v) { v.OnCgroup({.time = MonotonicNs{kT - 1}, .id = 4711, .path = path}); });
  Exec(kT, 10, "a");
  Sample({.time = kT + 2, .pid = 10, .cgroup = 4711});
  Settle();
  Flushed();
  EXPECT_EQ(sink.batches.back().dictionary->string(ProcessOf(0).container_id), id);
}

TEST_F(CollectorCoreTest, AProcessThatMovesIsDefinedAnew) {
  const std::string ids[2] = {std::string(64, 'c'), std::string(64, 'd')};
  uint64_t cgroups[2];
  for (int i = 0; i < 2; ++i) cgroups[i] = MakeCgroup("/docker/" + ids[i]);
  Exec(kT, 10, "a");
  for (int i = 0; i < 2; ++i) Sample({.time = kT + 1 + i, .pid = 10, .cgroup = cgroups[i]});
  Settle();
  Settle();
  Flushed();
  ASSERT_EQ(sink.batches.back().samples.size(), 2u);
  const Dictionary& d = *sink.batches.back().dictionary;
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(d.string(ProcessOf(i).container_id), ids[i]);
  EXPECT_EQ(ProcessOf(0).key, ProcessOf(1).key);
}

TEST_F(CollectorCoreTest, ThreadsInTwoCgroupsDoNotFillTheDictionary) {
  const uint64_t cgroups[2] = {MakeCgroup("/threads/one"), MakeCgroup("/threads/two")};
  Exec(kT, 10, "a");
  for (int i = 0; i < 1000; ++i) Sample({.time = kT + 1 + i, .pid = 10, .cgroup = cgroups[i % 2]});
  Settle();
  Settle();
  EXPECT_EQ(Flushed().size(), 1000u);
  EXPECT_LE(sink.batches.back().dictionary->process_count(), ProcessRun::kCgroupMovesMax + 2);
}

TEST_F(CollectorCoreTest, AProcessSaysWhatItIs) {
  using std::string_literals::operator""s;
  options.resource_env = {"STAGE"};
  proc.AddProcess(10, {});
  FakeProc::Write(proc.proc() + "/10/environ", "OTEL_SERVICE_NAME=shop\0STAGE=blue\0SECRET=x\0"s);
  Fork(kT - 1, 1, 10);
  Exec(kT, 10, "a");
  Mmap(kT + 1, 10, 0x17000, "/bin/a", "build-a");
  Sample({.time = kT + 2, .pid = 10});
  core().Poll();
  EXPECT_EQ(core().batcher().samples_waiting(), 1u);  // it waits for none of this
  executor.RunAll();
  core().Poll();
  Sample({.time = kT + 3, .pid = 10});
  core().Poll();
  Flushed();
  ASSERT_EQ(sink.batches.back().samples.size(), 2u);
  // Told with the batch of the first sample: whoever stores it takes the newest description of each process.
  const Dictionary& d = *sink.batches.back().dictionary;
  const Process& told = ProcessOf(1);
  EXPECT_EQ(d.string(told.attributes), "service.name=shop,process.environment_variable.STAGE=blue");
  EXPECT_EQ(told.key, ProcessOf(0).key);
  EXPECT_EQ(d.process(d.NewestProcess(ProcessRef{1})), told);
  EXPECT_EQ(executor.waiting(), 0u);
}

TEST_F(CollectorCoreTest, WhatAProcessSaysIsToldAlsoWhenItIsNotSampledAgain) {
  using std::string_literals::operator""s;
  proc.AddProcess(10, {});
  FakeProc::Write(proc.proc() + "/10/environ", "OTEL_SERVICE_NAME=shop\0"s);
  Exec(kT, 10, "a");
  Mmap(kT + 1, 10, 0x17000, "/bin/a", "build-a");
  Sample({.time = kT + 2, .pid = 10});
  Settle();
  Flushed();
  const Dictionary& d = *sink.batches.back().dictionary;
  EXPECT_EQ(d.string(d.process(d.NewestProcess(ProcessRef{1})).attributes), "service.name=shop");
}

TEST_F(CollectorCoreTest, WhatCannotBeHeldIsCounted) {
  options.held_samples_max = 2;
  Exec(kT, 10, "a");
  for (int i = 0; i < 5; ++i) Sample({.time = kT + i, .pid = 10, .user = {0x7a020}});
  core().Poll();
  EXPECT_EQ(core().held(), 2u);
  EXPECT_EQ(core().ReadAccounting().lost[static_cast<size_t>(LossReason::kHoldOverflow)], 3u);
}

TEST_F(CollectorCoreTest, ABusyWorkerLosesNothing) {
  executor.capacity = 0;
  Exec(kT, 10, "a");
  Mmap(kT + 1, 10, 0x17000, "/bin/a", "build-a");
  Sample({.time = kT + 10, .pid = 10, .user = {0x17020}});
  Settle();
  EXPECT_EQ(core().held(), 1u);
  executor.capacity = 10;
  Settle();
  EXPECT_THAT(Flushed(), ElementsAre("10/0 a: /bin/a+401020"));
}

TEST_F(CollectorCoreTest, TheLawHoldsToTheLastSample) {
  options.held_samples_max = 40;
  options.dictionary.nodes_max = 600;  // several dictionaries
  options.dictionary.frames_max = 600;
  Exec(kT, 10, "a");
  Mmap(kT + 1, 10, 0x17000, "/bin/a", "build-a");
  core().Poll();
  int64_t time = kT + 10;
  for (int round = 0; round < 20; ++round) {
    for (uint64_t i = 0; i < 50; ++i) {
      ++time;
      uint64_t address = 0x17000 + (static_cast<uint64_t>(round) * 50 + i) % 0x1000;
      if (i % 10 == 9) address += 0x100000 * (i + static_cast<uint64_t>(round) * 50 + 1);  // nothing there
      Sample({.time = time, .pid = 10, .user = {address, 0x17301, 0x17401}});
    }
    // What the kernel side loses is captured too.
    probes.accounting.captured += 2;
    probes.accounting.lost[static_cast<size_t>(LossReason::kRingFull)] += 2;
    clock.Advance(100 * kNsPerMs);
    core().Poll();
    executor.RunAll();
    if (round % 5 == 0) core().FlushBatch();
  }
  core().AddLost(LossReason::kBatchOverflow, 0);
  Sample({.time = ++time, .pid = 99, .user = {0x17000}});
  core().StopSampling();
  EXPECT_TRUE(probes.stopped);
  Sample({.time = ++time, .pid = 99, .user = {0x17000}});  // was in the ring when sampling stopped
  core().FinalBatch();
  EXPECT_EQ(core().held(), 0u);

  uint64_t stored = 0, sequence = 0;
  std::map<const Dictionary*, int> dictionaries;
  for (const Batch& batch : sink.batches) {
    stored += batch.samples.size();
    EXPECT_EQ(batch.sequence, ++sequence);
    EXPECT_GE(batch.accounting.captured, stored + batch.accounting.TotalLost());
    EXPECT_TRUE(std::is_sorted(batch.samples.begin(), batch.samples.end(),
                               [](const auto& a, const auto& b) { return a.time < b.time; }));
    ++dictionaries[batch.dictionary.get()];
    for (const auto& sample : batch.samples) {
      size_t depth = 0;
      for (NodeRef n = sample.node; n.value != 0; n = batch.dictionary->node(n).parent) ++depth;
      EXPECT_TRUE(depth == 1 || depth == 3) << depth;  // whole, whatever dictionary it fell into
    }
  }
  const Accounting& totals = sink.batches.back().accounting;
  EXPECT_EQ(totals.captured, 20u * 52 + 2);
  EXPECT_EQ(totals.captured, stored + totals.TotalLost());
  EXPECT_GT(totals.lost[static_cast<size_t>(LossReason::kHoldOverflow)], 0u);
  EXPECT_GT(dictionaries.size(), 1u);
}

TEST_F(CollectorCoreTest, TheFinalBatchGoesEvenWhenEmpty) {
  core().StopSampling();
  core().FinalBatch();
  ASSERT_EQ(sink.batches.size(), 1u);
  EXPECT_TRUE(sink.batches[0].samples.empty());
  EXPECT_EQ(sink.batches[0].sequence, 1u);
}

TEST_F(CollectorCoreTest, ReadsWhatRunsAlready) {
  proc.AddProcess(10, {.comm = "ten"});
  proc.AddProcess(11, {.comm = "eleven"});
  FakeProc::Write(proc.proc() + "/uptime", "1 1");
  core().ScanAll();
  EXPECT_EQ(core().processes().size(), 3u);  // and process 1
  ASSERT_NE(core().processes().Find(Pid{11}), nullptr);
  EXPECT_EQ(core().processes().Find(Pid{11})->comm, "eleven");
}

TEST_F(CollectorCoreTest, KernelCodeThatTakesTheOthersPlaceIsNotMixedUp) {
  constexpr uint64_t kAt = 0xffffffffc0100000;
  const int64_t start = 100 * kNsPerSecond;
  core();
  auto sample = [&](int64_t time) {
    Sample(
        {.time = start + time, .pid = 2, .kernel = {kAt + 8}, .flags = TRIB_FLAG_IN_KERNEL | TRIB_FLAG_KERNEL_THREAD});
  };
  KernelCode(start + 10, kAt, "bpf_prog_1_a");
  sample(20);
  KernelCode(start + 30, kAt, "bpf_prog_1_a", /*gone=*/true);
  sample(40);
  KernelCode(start + 50, kAt, "bpf_prog_2_b");
  sample(60);
  KernelCode(start + 70, kAt, "bpf_prog_2_b", /*gone=*/true);
  core().Poll();
  core().Poll();
  EXPECT_EQ(Flushed(), (std::vector<std::string>{"2/0 prog: [bpf] bpf_prog_1_a+8", "2/0 prog: [bpf] bpf_prog_1_a+8",
                                                 "2/0 prog: [bpf] bpf_prog_2_b+8"}));
}

TEST_F(CollectorCoreTest, SamplesWaitForKallsymsWhereEventsWereLost) {
  constexpr uint64_t kAt = 0xffffffffc0100000;
  const int64_t start = 100 * kNsPerSecond;
  proc.SetKernel({.text_begin = 0xffffffff81000000,
                  .text_end = 0xffffffff82000000,
                  .more_kallsyms = "ffffffffc0100000 t bpf_prog_1_a\t[bpf]\n"});
  core();
  clock.Advance(100);
  Lost();
  Sample({.time = start + 50, .pid = 2, .kernel = {kAt + 8}, .flags = TRIB_FLAG_IN_KERNEL | TRIB_FLAG_KERNEL_THREAD});
  core().Poll();
  EXPECT_EQ(core().held(), 1u);
  Settle();
  EXPECT_EQ(core().held(), 0u);
  EXPECT_EQ(Flushed(), (std::vector<std::string>{"2/0 prog: [bpf] bpf_prog_1_a+8"}));
}

}  // namespace
}  // namespace tributary
