#include "kernel-collector/processes/kernel_code.h"

#include <gtest/gtest.h>

#include "kernel-collector/processes/fakes_testing.h"

namespace tributary {
namespace {

constexpr uint64_t kText = 0xffffffff81000000, kModule = 0xffffffffc0000000, kProgram = 0xffffffffc0100000;

class KernelCodeTest : public testing::Test {
 protected:
  KernelCodeTest() { SetKernel("ffffffffc0100000 t bpf_prog_1_early\t[bpf]\n"); }

  void SetKernel(std::string more, std::string module = "m") {
    proc.SetKernel({.text_begin = kText,
                    .text_end = kText + 0x1000,
                    .module = std::move(module),
                    .module_base = kModule,
                    .module_size = 0x1000,
                    .more_kallsyms = std::move(more)});
  }
  void Hide(const std::string& kptr_restrict) {
    FakeProc::Write(
        proc.proc() + "/kallsyms",
        "0000000000000000 T _stext\n0000000000000000 T _etext\n0000000000000000 t bpf_prog_1_early\t[bpf]\n");
    std::filesystem::create_directories(proc.proc() + "/sys/kernel");
    FakeProc::Write(proc.proc() + "/sys/kernel/kptr_restrict", kptr_restrict + "\n");
  }
  KernelCode::Place Find(uint64_t address) { return code.Find(address, clock.Monotonic()); }
  std::string PathAt(uint64_t address) { return Find(address).file->path; }
  // Advances to the next poll.
  void Tick() {
    clock.Advance(200 * kNsPerMs);
    code.Tick();
    executor.RunAll();
  }
  void Event(std::string_view name, uint64_t start, bool gone = false) {
    code.OnKernelCode(
        {.time = clock.Monotonic(), .start = start, .length = 0x80, .is_bpf = true, .gone = gone, .name = name});
  }
  uint64_t reads() { return metrics.AddCounter("tributary_collector_kallsyms_reads_total", "").value(); }

  FakeProc proc;
  FakeExecutor executor;
  FakeClock clock;
  Metrics metrics;
  KernelCode code{{.proc_root = proc.proc(), .sys_root = proc.sys()}, executor, clock, metrics};
};

TEST_F(KernelCodeTest, KnowsTheKernelItsModulesAndGeneratedCode) {
  code.ReadNow();
  EXPECT_EQ(Find(kText + 8).file->id, BuildId("kernel"));
  EXPECT_EQ(Find(kText + 8).offset, 8u);
  EXPECT_EQ(Find(kModule + 16).file->id, BuildId("m"));
  EXPECT_EQ(Find(kModule + 16).offset, 16u);
  EXPECT_EQ(PathAt(kProgram + 4), "[bpf] bpf_prog_1_early");
  EXPECT_EQ(Find(kProgram + 4).offset, 4u);
  for (uint64_t address : {kText + 8, kModule + 16, kProgram + 4}) {
    EXPECT_FALSE(Find(address).wait);
    EXPECT_FALSE(Find(address).is_cause);
  }
  // The names for symbol requests.
  EXPECT_EQ(code.NameOf(Find(kProgram).file->id), "bpf_prog_1_early");
  EXPECT_EQ(code.NameOf(BuildId("kernel")), "");
}

TEST_F(KernelCodeTest, CodeBetweenProgramsIsUnlisted) {
  SetKernel("ffffffffc0100000 t bpf_prog_1_early\t[bpf]\nffffffffc0101000 t bpf_prog_2_next\t[bpf]\n");
  KernelCode::Options options{.proc_root = proc.proc(), .sys_root = proc.sys()};
  options.list_bpf = [] { return std::vector<BpfCode>{{kProgram + 0x1000, 0x9000000}, {kProgram, 0x80}, {1, 1}}; };
  Metrics own_metrics;
  KernelCode code_with_lengths(options, executor, clock, own_metrics);
  code_with_lengths.ReadNow();
  EXPECT_EQ(code_with_lengths.Find(kProgram + 0x7f, clock.Monotonic()).file->path, "[bpf] bpf_prog_1_early");
  EXPECT_TRUE(code_with_lengths.Find(kProgram + 0x80, clock.Monotonic()).is_cause);
  // An impossible length is ignored.
  EXPECT_EQ(code_with_lengths.Find(kProgram + 0x1fff, clock.Monotonic()).file->path, "[bpf] bpf_prog_2_next");
  code.ReadNow();
  EXPECT_EQ(PathAt(kProgram + 0x80), "[bpf] bpf_prog_1_early");
}

TEST_F(KernelCodeTest, FollowsEvents) {
  code.ReadNow();
  clock.Advance(1);
  Event("bpf_prog_2_late", kProgram + 0x1000);
  EXPECT_EQ(PathAt(kProgram + 0x1000), "[bpf] bpf_prog_2_late");
  code.OnKernelCode({.time = clock.Monotonic(), .start = kProgram + 0x2000, .length = 64, .name = "ftrace_trampoline"});
  EXPECT_EQ(PathAt(kProgram + 0x2000), "[ftrace] ftrace_trampoline");
  code.OnKernelCode({.time = clock.Monotonic(), .start = kProgram + 0x3000, .length = 64, .name = "kprobe_insn_page"});
  EXPECT_EQ(PathAt(kProgram + 0x3000), "[kprobes] kprobe_insn_page");
  // The name outlives the code: the request for the name comes later.
  const ExecutableId id = Find(kProgram + 0x1000).file->id;
  Event("bpf_prog_2_late", kProgram + 0x1000, /*gone=*/true);
  for (int i = 0; i < 100; ++i) Tick();
  EXPECT_NE(PathAt(kProgram + 0x1000), "[bpf] bpf_prog_2_late");
  EXPECT_EQ(code.NameOf(id), "bpf_prog_2_late");
}

TEST_F(KernelCodeTest, FindsALaterModuleWhenItIsSampled) {
  code.ReadNow();
  SetKernel("", "later");
  FakeProc::Write(proc.proc() + "/modules", "later 4096 0 - Live 0xffffffffc0400000\n");
  clock.Advance(1);
  EXPECT_TRUE(Find(kModule + 0x400000).wait);
  int changed = 0;
  code.SetChanged([&] { ++changed; });
  Tick();
  EXPECT_EQ(changed, 1);
  EXPECT_FALSE(Find(kModule + 0x400000).wait);
  EXPECT_EQ(Find(kModule + 0x400000).file->id, BuildId("later"));
  EXPECT_EQ(reads(), 2u);
}

TEST_F(KernelCodeTest, LimitsReadsForUnlistedCode) {
  code.ReadNow();
  clock.Advance(1);
  const MonotonicNs sampled = clock.Monotonic();
  EXPECT_TRUE(code.Find(kProgram + 0x800000, sampled).wait);
  Tick();
  EXPECT_FALSE(code.Find(kProgram + 0x800000, sampled).wait);
  for (int i = 0; i < 100; ++i) {
    Tick();
    EXPECT_FALSE(Find(kProgram + 0x800000).wait);
    EXPECT_EQ(PathAt(kProgram + 0x800000), "[kernel] (generated code of no known name)");
  }
  EXPECT_EQ(reads(), 2u);
  // Other addresses may cause new reads, a few directly after each other.
  for (uint64_t i = 1; i < 20; ++i) {
    Find(kProgram + 0x800000 + i * 0x1000);
    Tick();
  }
  EXPECT_EQ(reads(), 1u + KernelCode::kReadsAtOnce);
  // Until the next read is allowed, no sample waits for it.
  EXPECT_FALSE(Find(kProgram + 0x900000).wait);
  clock.Advance(KernelCode::kReadAgainNs);
  Find(kProgram + 0x900000);
  Tick();
  EXPECT_EQ(reads(), 2u + KernelCode::kReadsAtOnce);
}

TEST_F(KernelCodeTest, AfterALossWaitsForKallsyms) {
  code.ReadNow();
  clock.Advance(1);
  Event("bpf_prog_2_late", kProgram + 0x1000);
  code.OnLost();
  EXPECT_TRUE(Find(kProgram).wait);
  EXPECT_TRUE(Find(kProgram + 0x1000).wait);
  EXPECT_FALSE(Find(kText).wait);
  const MonotonicNs sampled = clock.Monotonic();
  Tick();
  EXPECT_EQ(code.Find(kProgram, sampled).file->path, "[bpf] bpf_prog_1_early");
  EXPECT_FALSE(code.Find(kProgram, sampled).wait);
  // The removal of the other program was among the lost events.
  EXPECT_NE(code.Find(kProgram + 0x1000, sampled).file->path, "[bpf] bpf_prog_2_late");
}

TEST_F(KernelCodeTest, ShowsWhyNamesAreHidden) {
  Hide("2");
  code.ReadNow();
  EXPECT_EQ(PathAt(kText), "[kernel] (names hidden: set kernel.kptr_restrict to 1)");
  EXPECT_TRUE(Find(kText).is_cause);
  EXPECT_FALSE(Find(kText).wait);
  EXPECT_EQ(code.NameOf(Find(kText).file->id), PathAt(kText));
  EXPECT_EQ(code.layout(), nullptr);
  // Events still provide names.
  clock.Advance(1);
  Event("bpf_prog_2_late", kProgram + 0x1000);
  EXPECT_EQ(PathAt(kProgram + 0x1000), "[bpf] bpf_prog_2_late");
}

TEST_F(KernelCodeTest, ShowsWhichPrivilegeIsMissing) {
  Hide("1");
  code.ReadNow();
  EXPECT_EQ(PathAt(kText), "[kernel] (names hidden: grant CAP_SYSLOG)");
  std::filesystem::remove(proc.proc() + "/kallsyms");
  clock.Advance(KernelCode::kUnhideNs);
  Tick();
  EXPECT_EQ(PathAt(kText), "[kernel] (names unknown: no kallsyms, or no build-id in sysfs)");
}

TEST_F(KernelCodeTest, ShowsNamesOnceTheyAreReadable) {
  Hide("2");
  code.ReadNow();
  Tick();
  EXPECT_EQ(Find(kText).file->id, Find(kModule).file->id);
  SetKernel("");
  clock.Advance(KernelCode::kUnhideNs);
  Tick();
  EXPECT_EQ(Find(kText).file->id, BuildId("kernel"));
  EXPECT_EQ(Find(kModule).file->id, BuildId("m"));
}

TEST_F(KernelCodeTest, ShowsThatAModuleHasNoBuildId) {
  std::filesystem::remove_all(proc.sys() + "/module");
  code.ReadNow();
  EXPECT_EQ(PathAt(kModule), "[m] (no build-id)");
  EXPECT_TRUE(Find(kModule).is_cause);
}

TEST_F(KernelCodeTest, FeedsEventsBeforeMergingAReading) {
  // Before kallsyms was read, the program was unloaded and other code was loaded there. The events are still in their
  // ring at that time.
  code.SetDrain([&, fed = false]() mutable {
    if (std::exchange(fed, true)) return;
    Event("bpf_prog_9_other", kProgram);
    Event("bpf_prog_9_other", kProgram, /*gone=*/true);
    Event("bpf_prog_1_early", kProgram);
  });
  code.ReadNow();
  clock.Advance(1);
  EXPECT_EQ(PathAt(kProgram), "[bpf] bpf_prog_1_early");
}

}  // namespace
}  // namespace tributary
