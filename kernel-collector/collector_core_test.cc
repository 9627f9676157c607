#include "kernel-collector/collector_core.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "kernel-collector/collector_core_testing.h"
#include "kernel-collector/processes/runtime_testing.h"

namespace tributary {
namespace {

using testing::ElementsAre;

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

TEST_F(CollectorCoreTest, HoldsASampleThatArrivesBeforeItsMapping) {
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

TEST_F(CollectorCoreTest, SendsUnknownWhenTheAnswerTakesOverASecond) {
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

TEST_F(CollectorCoreTest, ContinuesAnUnfinishedStackAndLetsTheKernelWalkTheNext) {
  Exec(kT, 10, "a");
  Mmap(kT + 1, 10, 0x17000, "/bin/a", "build-a");
  // That file has no unwind information: the walk uses frame pointers, up to the stack pointer that the process began
  // with.
  SampleSpec first{.time = kT + 10, .pid = 10, .user = {0x17020}, .stop = TRIB_STOP_NO_PROCESS, .exec_id = 4};
  Copy(first, 0x7ff0'0000, 0x7ff0'0008, 0x7ff0'0020, {0, 0, 0x17101, 0});
  Settle();  // the file's identity
  Settle();  // its unwind information
  EXPECT_EQ(core().held(), 0u);
  EXPECT_THAT(Flushed(), ElementsAre("10/0 a: </bin/a+401101;/bin/a+401020"));
  EXPECT_EQ(sink.batches.back().samples[0].ending, Ending::kComplete);

  ASSERT_TRUE(probes.maps.processes.contains(10));
  const trib_process& published = probes.maps.processes[10];
  EXPECT_EQ(published.start_time_ns, 1'000'000'000u);
  EXPECT_EQ(published.exec_id, 4u);
  ASSERT_EQ(published.mapping_count, 1u);
  EXPECT_EQ(probes.maps.mappings()[published.first_mapping].start, 0x17000u);
}

TEST_F(CollectorCoreTest, PublishesOnlyTheCurrentProgramToTheKernel) {
  Exec(kT, 10, "a");
  Mmap(kT + 1, 10, 0x17000, "/bin/a", "build-a");
  SampleSpec spec{.time = kT + 10, .pid = 10, .user = {0x17020}, .stop = TRIB_STOP_NO_PROCESS, .exec_id = 1};
  Copy(spec, 0x7000, 0, 0x7010, {0, 0});
  Exec(kT + 11, 10, "b");
  Mmap(kT + 12, 10, 0x18000, "/bin/b", "build-b");
  Settle();
  EXPECT_EQ(probes.maps.processes[10].exec_id, 1u);  // useless to the walk: the task's exec_id is 2 by now
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

TEST_F(CollectorCoreTest, CutsFramesAboveAThreadsStart) {
  proc.AddFile("/bin/go", TinyElf("build-go", 0x401100));
  Exec(kT, 10, "go");
  Mmap(kT + 1, 10, 0x17000, "/bin/go", "build-go");
  SampleSpec spec{.time = kT + 10, .pid = 10, .user = {0x17020, 0x17105}, .stop = TRIB_STOP_NO_PAGE};
  Copy(spec, 0x7000, 0, 0x7fff'0000, {0, 0});
  Settle();  // the file's identity
  Settle();  // its unwind information, which shows where threads start
  EXPECT_THAT(Flushed(), ElementsAre("10/0 go: </bin/go+401105;/bin/go+401020"));
  for (uint64_t above : {0x5e5e5eull, 0x17301ull}) {
    spec = {.time = kT + 20, .pid = 10, .user = {0x17020, 0x17105, above}, .stop = TRIB_STOP_NO_MAPPING};
    Sample(spec);
    core().Poll();
    EXPECT_EQ(core().held(), 0u) << "waits for no mapping";
    EXPECT_THAT(Flushed(), ElementsAre("10/0 go: </bin/go+401105;/bin/go+401020"));
    EXPECT_EQ(sink.batches.back().samples[0].ending, Ending::kComplete);
  }
  // All frames that a runtime returns for that address.
  auto runtime = std::make_shared<FakeRuntime>();
  runtime->codes[0x5e010] = {{.kind = FrameKind::kNative, .name = "f"}, {.kind = FrameKind::kNative, .name = "g"}};
  core().processes().Find(Pid{10})->mappings.Insert({.start = 0x5e000, .end = 0x5f000, .runtime = runtime});
  spec = {.time = kT + 30, .pid = 10, .user = {0x17020, 0x17105, 0x5e011}, .stop = TRIB_STOP_FRAME_POINTER_END};
  Sample(spec);
  core().Poll();
  EXPECT_EQ(runtime->asked.size(), 1u);
  EXPECT_THAT(Flushed(), ElementsAre("10/0 go: </bin/go+401105;/bin/go+401020"));
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

TEST_F(CollectorCoreTest, AHeldSampleKeepsItsProgram) {
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

// The run remembers only the last few replacements, so the mappings of a held sample are judged when the sample
// arrives.
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

TEST_F(CollectorCoreTest, CountsSamplesThatCannotBeHeld) {
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

TEST_F(CollectorCoreTest, CountsEverySampleToTheLast) {
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
      if (i % 10 == 9) address += 0x100000 * (i + static_cast<uint64_t>(round) * 50 + 1);  // no mapping there
      Sample({.time = time, .pid = 10, .user = {address, 0x17301, 0x17401}});
    }
    // Samples that the kernel side loses count as captured too.
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
  Sample({.time = ++time, .pid = 99, .user = {0x17000}});  // a sample in the ring when sampling stopped
  core().FinalBatch();
  EXPECT_EQ(core().held(), 0u);

  uint64_t stored = 0, sequence = 0;
  std::map<const Dictionary*, int> dictionaries;
  for (const Batch& batch : sink.batches) {
    stored += batch.samples.size();
    EXPECT_EQ(batch.sequence, ++sequence);
    EXPECT_GE(batch.accounting.captured.total(), stored + batch.accounting.TotalLost().total());
    EXPECT_TRUE(std::is_sorted(batch.samples.begin(), batch.samples.end(),
                               [](const auto& a, const auto& b) { return a.time < b.time; }));
    ++dictionaries[batch.dictionary.get()];
    for (const auto& sample : batch.samples) {
      size_t depth = 0;
      for (NodeRef n = sample.node; n.value != 0; n = batch.dictionary->node(n).parent) ++depth;
      EXPECT_TRUE(depth == 1 || depth == 3) << depth;  // whole, in every dictionary
    }
  }
  const Accounting& totals = sink.batches.back().accounting;
  EXPECT_EQ(totals.captured, 20u * 52 + 2);
  EXPECT_EQ(totals.captured, stored + totals.TotalLost());
  EXPECT_GT(totals.LostFor(LossReason::kHoldOverflow).total(), 0u);
  EXPECT_GT(dictionaries.size(), 1u);
}

TEST_F(CollectorCoreTest, TheFinalBatchGoesEvenWhenEmpty) {
  core().StopSampling();
  core().FinalBatch();
  ASSERT_EQ(sink.batches.size(), 1u);
  EXPECT_TRUE(sink.batches[0].samples.empty());
  EXPECT_EQ(sink.batches[0].sequence, 1u);
}

TEST_F(CollectorCoreTest, ReadsRunningProcesses) {
  proc.AddProcess(10, {.comm = "ten"});
  proc.AddProcess(11, {.comm = "eleven"});
  FakeProc::Write(proc.proc() + "/uptime", "1 1");
  core().ScanAll();
  EXPECT_EQ(core().processes().size(), 3u);  // and process 1
  ASSERT_NE(core().processes().Find(Pid{11}), nullptr);
  EXPECT_EQ(core().processes().Find(Pid{11})->comm, "eleven");
}

TEST_F(CollectorCoreTest, DistinguishesKernelCodeAtAReusedAddress) {
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
