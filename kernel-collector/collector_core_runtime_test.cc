#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "kernel-collector/collector_core_testing.h"
#include "kernel-collector/processes/runtime_binary_testing.h"

// Samples with frames of a language runtime, through the whole core.
namespace tributary {
namespace {

RuntimeBinaryPtr binary_of_test;  // of /bin/a

absl::StatusOr<RuntimeBinaryPtr> ReadFake(ElfFile&, std::string_view path) {
  return path == "/bin/a" ? binary_of_test : nullptr;
}

constexpr RuntimeKind kFakeKinds[] = {{"python", TRIB_RUNTIME_PYTHON, ReadFake}};
constexpr uint64_t kA = 0x100000, kB = 0x200000;
constexpr uint64_t kLoop = kA + 0x110;  // ELF address 0x401110
constexpr uint64_t kCode = 0x7f0000001000;

class CollectorCoreRuntimeTest : public CollectorCoreTest {
 protected:
  CollectorCoreRuntimeTest() {
    binary_of_test = std::make_shared<FakeRuntimeBinary>(&memories);
    options.runtimes = 1 << TRIB_RUNTIME_PYTHON;
    options.runtime_kinds = kFakeKinds;
    options.open_memory = [this](Pid pid, const std::string&) { return memories.Open(pid.value); };
    memories.processes[42] = {{kCode, {9, "main"}}, {kCode + 0x100, {9, "work"}}};
  }
  ~CollectorCoreRuntimeTest() override { binary_of_test = nullptr; }

  // A process with the interpreter /bin/a and the library /bin/b. /bin/a calls its loop, which calls /bin/b.
  void StartProcess(int pid) {
    Exec(kT, pid, "python");
    Mmap(kT + 1, pid, kA, "/bin/a", "build-a");
    Mmap(kT + 2, pid, kB, "/bin/b", "build-b");
  }
  // The first sample has a copy, because the process is not known to the kernel. Its chain has "main" and "work".
  SampleSpec Spec(uint32_t pid, int64_t time, uint16_t runtime = 1) {
    SampleSpec spec{.time = time, .pid = pid, .user = {kB + 0x10, kLoop, kA + 0x20}, .stop = TRIB_STOP_END};
    spec.chains = {TRIB_CHAIN_HEADER(runtime, 2, TRIB_CHAIN_COMPLETE), kCode + 0x100, 4 | uint64_t{9} << 32,
                   kCode | TRIB_CHAIN_ENTRY, 2 | uint64_t{9} << 32};
    return spec;
  }
  // Returns the frames of the only sample of the last batch, with their kinds and lines.
  std::string Frames() {
    core().FlushBatch();
    const Batch& batch = sink.batches.back();
    EXPECT_EQ(batch.samples.size(), 1u);
    if (batch.samples.empty()) return "";
    ending = batch.samples[0].ending;
    const Dictionary& d = *batch.dictionary;
    std::string text;
    for (NodeRef node = batch.samples[0].node; node.value != 0; node = d.node(node).parent) {
      const Frame& f = d.frame(d.node(node).frame);
      std::string frame = fmt::format("{}:{}", RowOf(f.kind).name, d.string(d.executable(f.executable).path));
      if (f.kind == FrameKind::kPython) frame += fmt::format(":{}:{}", d.string(f.name), f.position);
      text = frame + (text.empty() ? "" : ";") + text;
    }
    return text;
  }

  static constexpr std::string_view kMixed =
      "interpreter:/bin/a;interpreter:/bin/a;python:/app/main.py:main:12;python:/app/work.py:work:14;native:/bin/b";

  FakeMemories memories;
  Ending ending = Ending::kUnknown;
};

TEST_F(CollectorCoreRuntimeTest, NamesFramesOfTheFirstSampleThatHasAChain) {
  StartProcess(42);
  // The first sample shows the interpreter. The kernel did not know it, so the sample has no chain.
  SampleSpec first = Spec(42, kT + 10);
  first.chains.clear();
  first.stop = TRIB_STOP_NO_PROCESS;
  Sample(first);
  Settle();
  core().FlushBatch();
  EXPECT_NE(probes.maps.processes.at(42).runtimes, 0u);
  // The sample waits for its code objects.
  Sample(Spec(42, kT + 20));
  core().Poll();
  EXPECT_EQ(core().held(), 1u);
  executor.RunAll();
  core().Poll();
  EXPECT_EQ(core().held(), 0u);
  EXPECT_EQ(Frames(), kMixed);
  EXPECT_EQ(ending, Ending::kComplete);
  // Later samples do not wait.
  Sample(Spec(42, kT + 30));
  core().Poll();
  EXPECT_EQ(Frames(), kMixed);
}

TEST_F(CollectorCoreRuntimeTest, ACopyTeachesTheKernelTheExecutablesRuntimes) {
  StartProcess(42);
  SampleSpec spec = Spec(42, kT + 10);
  spec.chains.clear();
  spec.stop = TRIB_STOP_NO_PROCESS;
  spec.user = {kLoop};
  Copy(spec, 0x7000, 0, 0x8000, {0});
  reinterpret_cast<trib_copy*>(probes.copies.back().data())->resume.executable = {
      .inode = 5, .device = 1, .padding = 0};
  Exit(kT + 11, 42);  // before it could be published
  Settle();
  EXPECT_FALSE(probes.maps.processes.contains(42));
  ASSERT_EQ(probes.maps.interpreters.size(), 1u);
  EXPECT_EQ(probes.maps.interpreters.begin()->first, (std::pair<uint64_t, uint32_t>{5, 1}));
  EXPECT_EQ(probes.maps.interpreters.begin()->second, TRIB_PROCESS_RUNTIMES(1, 0));
}

TEST_F(CollectorCoreRuntimeTest, MissingCodeObjectsAreSentWithoutNames) {
  StartProcess(42);
  Sample({.time = kT + 10, .pid = 42, .user = {kLoop}, .stop = TRIB_STOP_NO_PROCESS});
  Settle();
  core().FlushBatch();
  memories.processes.erase(42);
  Sample(Spec(42, kT + 20));
  Settle();
  EXPECT_EQ(Frames(), "native:/bin/a;native:/bin/a;python:::0;python:::0;native:/bin/b");
  EXPECT_EQ(metrics.AddCounter("tributary_collector_runtime_frames_unnamed_total", "").value(), 2u);
}

TEST_F(CollectorCoreRuntimeTest, AForkHasItsParentsFunctions) {
  StartProcess(42);
  Sample({.time = kT + 10, .pid = 42, .user = {kLoop}, .stop = TRIB_STOP_NO_PROCESS});
  Settle();
  Sample(Spec(42, kT + 20));
  Settle();
  core().FlushBatch();
  memories.processes.clear();
  memories.opened.clear();
  Fork(kT + 30, 42, 43);
  Sample(Spec(43, kT + 40));
  core().Poll();
  EXPECT_EQ(Frames(), kMixed);
  EXPECT_TRUE(memories.opened.empty());
  // A program that replaces it begins without functions.
  Exec(kT + 50, 43, "other");
  Mmap(kT + 51, 43, kA, "/bin/a", "build-a");
  Mmap(kT + 52, 43, kB, "/bin/b", "build-b");
  Sample(Spec(43, kT + 60));
  Settle();
  EXPECT_EQ(Frames(), "native:/bin/a;native:/bin/a;python:::0;python:::0;native:/bin/b");
}

TEST_F(CollectorCoreRuntimeTest, MemoryOfContainersThatOptedOutIsNotRead) {
  const std::string id(64, 'c');
  const uint64_t cgroup = MakeCgroup("/docker/" + id);
  core().SetOptOuts({id});
  StartProcess(42);
  SampleSpec spec = Spec(42, kT + 10);
  spec.cgroup = cgroup;
  spec.stop = TRIB_STOP_NO_PROCESS;
  Copy(spec, 0x7000, 0, 0x8000, {0});
  Settle();
  clock.Advance(options.hold_ns);  // until then, the copy waits for unwind rows
  core().Poll();
  EXPECT_EQ(core().held(), 0u);
  EXPECT_TRUE(memories.opened.empty());
}

TEST_F(CollectorCoreRuntimeTest, WithoutRuntimesNothingIsRead) {
  options.runtimes = 0;
  options.open_memory = nullptr;
  StartProcess(42);
  Sample(Spec(42, kT + 10));
  Settle();
  EXPECT_EQ(Frames(), "native:/bin/a;native:/bin/a;native:/bin/b");
  EXPECT_EQ(ending, Ending::kComplete);
  EXPECT_TRUE(memories.opened.empty());
}

}  // namespace
}  // namespace tributary
