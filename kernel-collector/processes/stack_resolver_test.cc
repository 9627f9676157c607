#include "kernel-collector/processes/stack_resolver.h"

#include <gtest/gtest.h>

#include "bpf/include/records.h"
#include "kernel-collector/processes/fakes_testing.h"
#include "kernel-collector/processes/runtime_testing.h"

namespace tributary {
namespace {

constexpr uint64_t kText = 0xffffffff81000000, kModule = 0xffffffffc0000000, kProgram = 0xffffffffc0100000;

class StackResolverTest : public testing::Test {
 protected:
  StackResolverTest() {
    proc.SetKernel(
        {.text_begin = kText, .text_end = kText + 0x1000, .module = "m", .module_base = kModule, .module_size = 0x100});
    kernel_code.ReadNow();
    file->id = BuildId("file");
    file->state = CodeFile::State::kReady;
    file->segments = {{.file_offset = 0x1000, .file_size = 0x1000, .address = 0x401000, .memory_size = 0x1000}};
    run.mappings.Insert(Mapping{0x100000, 0x101000, 0x1000, MonotonicNs{}, file});
    run.mappings.Insert(Mapping{0x200000, 0x201000, 0, MonotonicNs{}, nullptr});
  }
  const ResolvedStack& Resolve(std::vector<uint64_t> user, std::vector<uint64_t> kernel, uint32_t flags) {
    resolver.Resolve(RawStack{kernel, user, flags, time}, run, nullptr, [&](const CodeFilePtr&) { ++unread; }, &out);
    return out;
  }

  FakeProc proc;
  FakeExecutor executor;
  FakeClock clock;
  Metrics metrics;
  KernelCode kernel_code{{.proc_root = proc.proc(), .sys_root = proc.sys()}, executor, clock, metrics};
  StackResolver resolver{kernel_code};
  CodeFilePtr file = std::make_shared<CodeFile>();
  ProcessRun run;
  MonotonicNs time{50};
  ResolvedStack out;
  int unread = 0;
};

TEST_F(StackResolverTest, MarksReturnAddresses) {
  Resolve({0x100010, 0x100020}, {}, 0);
  ASSERT_EQ(out.frames.size(), 2u);
  EXPECT_TRUE(out.frames[0].is_caller);  // root first
  EXPECT_EQ(out.frames[0].address, 0x401020u);
  EXPECT_FALSE(out.frames[1].is_caller);
  // For a sample in the kernel, the system call returns to the first user address.
  Resolve({0x100010}, {kText + 8, kText + 16}, TRIB_FLAG_IN_KERNEL);
  ASSERT_EQ(out.frames.size(), 3u);
  EXPECT_TRUE(out.frames[0].is_caller);
  EXPECT_TRUE(out.frames[1].is_caller);
  EXPECT_FALSE(out.frames[2].is_caller);
  EXPECT_EQ(out.frames[2].address, 8u);
}

TEST_F(StackResolverTest, AReturnAddressBelongsToTheCallBeforeIt) {
  // The call was the last instruction of the mapping, of the kernel's text, of the module.
  Resolve({0x100000, 0x101000}, {kText, kText + 0x1000, kModule + 0x100}, TRIB_FLAG_IN_KERNEL);
  EXPECT_EQ(out.frames[0].kind, FrameKind::kNative);
  EXPECT_EQ(out.frames[0].address, 0x402000u);
  EXPECT_EQ(out.frames[2].kind, FrameKind::kKernel);
  EXPECT_EQ(out.frames[2].address, 0x100u);
  EXPECT_EQ(out.frames[3].kind, FrameKind::kKernel);
  EXPECT_EQ(out.frames[3].address, 0x1000u);
  // An address at the begin of a mapping does not belong to that mapping if it is a return address.
  EXPECT_EQ(out.frames[1].kind, FrameKind::kUnknown);
}

TEST_F(StackResolverTest, WaitsForKallsymsOnceForUnknownCode) {
  clock.Advance(100);
  time = clock.Monotonic();
  Resolve({}, {kText - 1, kText + 0x1001, kModule + 0x101, 0}, TRIB_FLAG_IN_KERNEL | TRIB_FLAG_KERNEL_THREAD);
  EXPECT_TRUE(out.wants_executable);
  clock.Advance(100);
  kernel_code.Tick();
  executor.RunAll();
  Resolve({}, {kText - 1, kText + 0x1001, kModule + 0x101, 0}, TRIB_FLAG_IN_KERNEL | TRIB_FLAG_KERNEL_THREAD);
  EXPECT_FALSE(out.wants_executable);
  // The cause appears once.
  ASSERT_EQ(out.frames.size(), 1u);
  EXPECT_EQ(out.frames[0].kind, FrameKind::kKernel);
  EXPECT_EQ(out.frames[0].executable->path, "[kernel] (generated code of no known name)");
  EXPECT_EQ(out.frames[0].address, 0u);
}

TEST_F(StackResolverTest, OffsetsInGeneratedCodeCountFromItsBegin) {
  kernel_code.OnKernelCode(
      {.time = MonotonicNs{40}, .start = kProgram, .length = 0x40, .is_bpf = true, .name = "bpf_prog_1_x"});
  // Its last instruction is a call.
  Resolve({}, {kText + 8, kProgram + 0x40, kText + 16}, TRIB_FLAG_IN_KERNEL);
  ASSERT_EQ(out.frames.size(), 3u);
  EXPECT_EQ(out.frames[1].executable->path, "[bpf] bpf_prog_1_x");
  EXPECT_EQ(out.frames[1].address, 0x40u);
  EXPECT_TRUE(out.frames[1].is_caller);
}

TEST_F(StackResolverTest, GeneratedCodeAboutToBeginIsNoCaller) {
  kernel_code.OnKernelCode(
      {.time = MonotonicNs{40}, .start = kProgram, .length = 0x40, .is_bpf = true, .name = "bpf_prog_1_x"});
  // The last instruction of a retpoline finds its target at the place of a return address.
  Resolve({}, {kText + 8, kProgram, kText + 16}, TRIB_FLAG_IN_KERNEL);
  ASSERT_EQ(out.frames.size(), 3u);
  EXPECT_TRUE(out.frames[0].is_caller);
  EXPECT_EQ(out.frames[1].executable->path, "[bpf] bpf_prog_1_x");
  EXPECT_EQ(out.frames[1].address, 0u);
  EXPECT_FALSE(out.frames[1].is_caller);
  EXPECT_FALSE(out.wants_executable);
}

TEST_F(StackResolverTest, InterruptedCodeIsNoCaller) {
  // A signal came while the second function ran its first instruction.
  Resolve({0x100020, 0x100010 | TRIB_FRAME_INTERRUPTED, 0x100030}, {}, 0);
  ASSERT_EQ(out.frames.size(), 3u);
  EXPECT_TRUE(out.frames[0].is_caller);
  EXPECT_FALSE(out.frames[1].is_caller);
  EXPECT_EQ(out.frames[1].address, 0x401010u);
  // A page fault is no call either.
  Resolve({0x100010 | TRIB_FRAME_INTERRUPTED}, {kText + 8}, TRIB_FLAG_IN_KERNEL);
  EXPECT_FALSE(out.frames[0].is_caller);
}

TEST_F(StackResolverTest, WaitsOnlyForPossibleMappings) {
  EXPECT_TRUE(Resolve({0x100010, 0x200010}, {}, 0).uncovered_pages.empty());
  EXPECT_EQ(Resolve({0x300010}, {}, 0).uncovered_pages, (std::vector<uint64_t>{0x300}));
  // Broken chains: nothing is ever mapped there.
  EXPECT_TRUE(Resolve({0x100010, 0, 1, 0xfff, ~uint64_t{0}, uint64_t{1} << 63}, {}, 0).uncovered_pages.empty());
  run.uncovered_pages.insert(0x300);
  EXPECT_TRUE(Resolve({0x300010}, {}, 0).uncovered_pages.empty());
}

TEST_F(StackResolverTest, NamesNoFileAfterALoss) {
  run.NoteReplaced(0x100000, 0x101000, MonotonicNs{90});
  EXPECT_EQ(Resolve({0x100010}, {}, 0).frames[0].kind, FrameKind::kNative);
  run.unsure_until = MonotonicNs{51};
  EXPECT_EQ(Resolve({0x100010}, {}, 0).frames[0].kind, FrameKind::kUnknown);
  EXPECT_TRUE(out.uncovered_pages.empty());
  time = MonotonicNs{51};
  EXPECT_EQ(Resolve({0x100010}, {}, 0).frames[0].kind, FrameKind::kNative);
}

TEST_F(StackResolverTest, AsksForUnreadFiles) {
  file->state = CodeFile::State::kUnread;
  EXPECT_TRUE(Resolve({0x100010}, {}, 0).wants_executable);
  EXPECT_EQ(unread, 1);
  file->state = CodeFile::State::kReading;
  EXPECT_TRUE(Resolve({0x100010}, {}, 0).wants_executable);
  EXPECT_EQ(unread, 1);
  file->state = CodeFile::State::kFailed;
  file->segments.clear();
  EXPECT_FALSE(Resolve({0x100010}, {}, 0).wants_executable);
  EXPECT_EQ(out.frames[0].kind, FrameKind::kUnknown);
  EXPECT_EQ(out.frames[0].address, 0x100010u);
}

TEST_F(StackResolverTest, PrefersTheSamplesTableToTheCurrentTable) {
  auto other = std::make_shared<CodeFile>(*file);
  other->id = BuildId("other");
  MappingTable before;
  before.Insert(Mapping{0x100000, 0x101000, 0x1000, MonotonicNs{}, other});
  auto snapshot = before.snapshot();
  std::vector<uint64_t> user = {0x100010};
  resolver.Resolve(RawStack{{}, user, 0, time}, run, snapshot.get(), [](const CodeFilePtr&) {}, &out);
  EXPECT_EQ(out.frames[0].executable, other.get());
}

TEST_F(StackResolverTest, AsksTheRuntimeOfAMapping) {
  auto runtime = std::make_shared<FakeRuntime>();
  runtime->codes[0x20001f] = {{.kind = FrameKind::kGo, .is_caller = true, .address = 0xc0de, .position = 3},
                              {.kind = FrameKind::kGo, .is_caller = true, .position = 12, .name = "inlined"}};
  run.mappings.Insert({.start = 0x200000, .end = 0x201000, .runtime = runtime});
  Resolve({0x100010, 0x200020, 0x200040}, {}, 0);
  ASSERT_EQ(out.frames.size(), 4u);
  EXPECT_EQ(out.frames[0].kind, FrameKind::kUnknown);  // the runtime does not know the address
  EXPECT_EQ(out.frames[0].address, 0x200040u);
  EXPECT_EQ(out.frames[1].kind, FrameKind::kGo);
  EXPECT_EQ(out.frames[1].address, 0xc0deu);
  EXPECT_EQ(out.frames[1].position, 3u);
  EXPECT_EQ(out.frames[2].name, "inlined");
  EXPECT_EQ(out.frames[3].executable, file.get());
  EXPECT_EQ(out.outermost_frames, 1u);
  EXPECT_FALSE(out.wants_executable);
  ASSERT_EQ(runtime->asked.size(), 2u);  // not for the file's code
  EXPECT_EQ(runtime->asked[1].address, 0x20001fu);
  EXPECT_TRUE(runtime->asked[1].is_caller);
  EXPECT_EQ(runtime->asked[1].time, time);
  Resolve({0x100010, 0x200020}, {}, 0);
  EXPECT_EQ(out.outermost_frames, 2u);
}

TEST_F(StackResolverTest, UsesTheFileIfTheRuntimeDoesNotKnow) {
  auto runtime = std::make_shared<FakeRuntime>();
  runtime->codes[0x100010] = {{.kind = FrameKind::kGo, .name = "loop"}};
  run.mappings.Insert(
      {.start = 0x100000, .end = 0x101000, .file_offset = 0x1000, .executable = file, .runtime = runtime});
  Resolve({0x100010, 0x100020}, {}, 0);
  ASSERT_EQ(out.frames.size(), 2u);
  EXPECT_EQ(out.frames[0].kind, FrameKind::kNative);
  EXPECT_EQ(out.frames[0].address, 0x401020u);
  EXPECT_EQ(out.frames[1].name, "loop");
}

TEST_F(StackResolverTest, WaitsForARuntimeThatIsReading) {
  auto runtime = std::make_shared<FakeRuntime>();
  runtime->is_reading = true;
  run.mappings.Insert({.start = 0x200000, .end = 0x201000, .runtime = runtime});
  EXPECT_TRUE(Resolve({0x200010}, {}, 0).wants_executable);
  ASSERT_EQ(out.frames.size(), 1u);
  EXPECT_EQ(out.frames[0].kind, FrameKind::kUnknown);
}

TEST_F(StackResolverTest, LimitsTheFramesOfARuntime) {
  auto runtime = std::make_shared<FakeRuntime>();
  runtime->codes[0x200010].resize(Runtime::kFramesMax + 1, {.kind = FrameKind::kGo});
  run.mappings.Insert({.start = 0x200000, .end = 0x201000, .runtime = runtime});
  EXPECT_EQ(Resolve({0x200010}, {}, 0).frames.size(), Runtime::kFramesMax);
}

// Makes a runtime that names every address.
class FakeMaker : public RuntimeMaker {
 public:
  std::shared_ptr<const Runtime> Make(const ProcessRun&) override {
    ++made;
    return runtime;
  }
  std::shared_ptr<FakeRuntime> runtime = std::make_shared<FakeRuntime>();
  int made = 0;
};

TEST_F(StackResolverTest, GeneratedCodeHasTheNameOfItsRuntimeOrOfItsMemory) {
  FakeMaker maker;
  StackResolver with_names(kernel_code, &maker);
  const std::string memory = "[anonymous code]";
  Mapping mapping{0x300000, 0x301000, 0, MonotonicNs{}, nullptr};
  mapping.memory = &memory;
  run.mappings.Insert(mapping);
  maker.runtime->codes[0x300010] = {{.kind = FrameKind::kJit, .name = "f"}};
  const auto resolve = [&](bool may_read_names) {
    const std::vector<uint64_t> user = {0x300010, 0x300020, 0x200000};
    with_names.Resolve(RawStack{{}, user, 0, time, may_read_names}, run, nullptr, [](const CodeFilePtr&) {}, &out);
    EXPECT_EQ(out.frames.size(), 3u);
  };
  resolve(true);
  EXPECT_EQ(out.frames[0].kind, FrameKind::kUnknown);  // its memory has no name
  EXPECT_EQ(out.frames[1].name, "[anonymous code]");
  EXPECT_EQ(out.frames[1].kind, FrameKind::kJit);
  EXPECT_EQ(out.frames[1].address, 0u);
  EXPECT_EQ(out.frames[2].name, "f");
  EXPECT_FALSE(out.wants_executable);
  maker.runtime->is_reading = true;
  resolve(true);
  EXPECT_TRUE(out.wants_executable);
  EXPECT_EQ(out.frames[2].name, "[anonymous code]");  // sent if the reading takes too long
  resolve(false);
  EXPECT_FALSE(out.wants_executable);
  EXPECT_EQ(maker.made, 1);
}

TEST_F(StackResolverTest, AMemoryFileMayBeAProgram) {
  FakeMaker maker;
  StackResolver with_names(kernel_code, &maker);
  const std::string memory = "[memfd:x]";
  auto program = std::make_shared<CodeFile>(*file), data = std::make_shared<CodeFile>();
  data->state = CodeFile::State::kFailed;
  Mapping mapping{0x300000, 0x301000, 0x1000, MonotonicNs{}, program};
  mapping.memory = &memory;
  run.mappings.Insert(mapping);
  mapping = {0x400000, 0x401000, 0, MonotonicNs{}, data};
  mapping.memory = &memory;
  run.mappings.Insert(mapping);
  const std::vector<uint64_t> user = {0x300010, 0x400010};
  with_names.Resolve(RawStack{{}, user, 0, time}, run, nullptr, [](const CodeFilePtr&) {}, &out);
  ASSERT_EQ(out.frames.size(), 2u);
  EXPECT_EQ(out.frames[0].name, "[memfd:x]");
  EXPECT_EQ(out.frames[1].kind, FrameKind::kNative);
}

}  // namespace
}  // namespace tributary
