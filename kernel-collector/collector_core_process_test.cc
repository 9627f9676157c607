#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "kernel-collector/collector_core_testing.h"

namespace tributary {
namespace {

using testing::ElementsAre;

TEST_F(CollectorCoreTest, ForkSharesMappingsAndThreadsShareTheProcess) {
  Exec(kT, 10, "a");
  Mmap(kT + 1, 10, 0x17000, "/bin/a", "build-a");
  Fork(kT + 2, 10, 11);
  Fork(kT + 3, 10, 10);                            // a thread
  Mmap(kT + 4, 10, 0x19000, "/bin/b", "build-b");  // only the parent
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

TEST_F(CollectorCoreTest, TreatsAReusedPidAsAnotherProcess) {
  Exec(kT, 10, "a");
  Mmap(kT + 1, 10, 0x17000, "/bin/a", "build-a");
  Sample({.time = kT + 10, .pid = 10, .user = {0x17020}});
  Exit(kT + 11, 10);
  Fork(kT + 12, 1, 10);
  Exec(kT + 13, 10, "b");
  Mmap(kT + 14, 10, 0x17000, "/bin/b", "build-b");
  Sample({.time = kT + 20, .pid = 10, .start_ns = 3'000'000'000, .user = {0x17020}});
  // A late sample of the first owner: its mappings are gone, and the sample must not count for the second owner.
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
  // It is unknown which of the two files was mapped when the first sample was taken.
  EXPECT_THAT(Flushed(), ElementsAre("10/0 a: ?+17020"));
  Sample({.time = clock.Monotonic().value + 1, .pid = 10, .user = {0x17020}});
  Settle();
  EXPECT_THAT(Flushed(), ElementsAre("10/0 a: /bin/c+401020"));
}

TEST_F(CollectorCoreTest, ForgetsProcessesGoneAfterALoss) {
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
  Sample({.time = kT + 2, .pid = 10, .user = {0x17020}, .cgroup = cgroup});  // no /proc/10: the process is already gone
  Settle();
  Flushed();
  const Dictionary& d = *sink.batches.back().dictionary;
  EXPECT_EQ(d.string(ProcessOf(0).container_id), id);
  EXPECT_EQ(d.string(ProcessOf(0).cgroup_path), "/docker/" + id);
}

TEST_F(CollectorCoreTest, FindsAGoneContainerByItsCgroupEvent) {
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

TEST_F(CollectorCoreTest, DefinesAMovedProcessAgain) {
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

TEST_F(CollectorCoreTest, ReadsTheResourceAttributesOfAProcess) {
  using std::string_literals::operator""s;
  options.resource_env = {"STAGE"};
  proc.AddProcess(10, {});
  FakeProc::Write(proc.proc() + "/10/environ", "OTEL_SERVICE_NAME=shop\0STAGE=blue\0SECRET=x\0"s);
  Fork(kT - 1, 1, 10);
  Exec(kT, 10, "a");
  Mmap(kT + 1, 10, 0x17000, "/bin/a", "build-a");
  Sample({.time = kT + 2, .pid = 10});
  core().Poll();
  EXPECT_EQ(core().batcher().samples_waiting(), 1u);  // the sample does not wait for the attributes
  executor.RunAll();
  core().Poll();
  Sample({.time = kT + 3, .pid = 10});
  core().Poll();
  Flushed();
  ASSERT_EQ(sink.batches.back().samples.size(), 2u);
  // Sent with the batch of the first sample: a reader takes the newest description of each process.
  const Dictionary& d = *sink.batches.back().dictionary;
  const Process& process = ProcessOf(1);
  EXPECT_EQ(d.string(process.attributes), "service.name=shop,process.environment_variable.STAGE=blue");
  EXPECT_EQ(process.key, ProcessOf(0).key);
  EXPECT_EQ(d.process(d.NewestProcess(ProcessRef{1})), process);
  EXPECT_EQ(executor.waiting(), 0u);
}

TEST_F(CollectorCoreTest, SendsResourceAttributesWithoutAnotherSample) {
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

TEST_F(CollectorCoreTest, AProcessThatEndsDuringTheStartWasSeenRunningBeforeItsEnd) {
  trib_process_event event = {.time_ns = kT, .start_time_ns = 5, .kind = TRIB_EVENT_RUNNING, .pid = 10};
  probes.running.push_back(event);
  core().ScanAll();
  event.time_ns = kT + 1;
  event.kind = TRIB_EVENT_EXIT;
  probes.process_events.push_back(event);
  event.kind = TRIB_EVENT_FINAL;
  probes.process_events.push_back(event);
  Settle();
  core().FlushBatch();
  const std::vector<ProcessEvent>& events = sink.batches.back().events;
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].kind, ProcessEventKind::kSeenRunning);
  EXPECT_EQ(events[0].time.value, kT);
  EXPECT_EQ(events[1].kind, ProcessEventKind::kExit);
  EXPECT_EQ(events[1].time.value, kT + 1);
}

}  // namespace
}  // namespace tributary
