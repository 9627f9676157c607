#include "kernel-collector/runtimes/stack_mixer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "kernel-collector/probes/fake_unwind_maps_testing.h"
#include "kernel-collector/processes/fakes_testing.h"
#include "kernel-collector/processes/runtime_binary_testing.h"
#include "kernel-collector/runtimes/segment_pairs.h"

namespace tributary {
namespace {

using Strings = std::vector<std::string>;

class StackMixerTest : public testing::Test {
 protected:
  StackMixerTest() {
    run.pid = Pid{7};
    AddFile(python, 0x100000, "python", runtime);
    AddFile(second, 0x300000, "second", other);
    AddFile(libc, 0x200000, "libc", nullptr);
    number = slots.Use(runtime);
    other_number = slots.Use(other);
  }
  void AddFile(const CodeFilePtr& file, uint64_t start, std::string_view id, RuntimeBinaryPtr binary) {
    file->id = BuildId(id);
    file->state = CodeFile::State::kReady;
    file->segments = {{.file_offset = 0x1000, .file_size = 0x1000, .address = 0x401000, .memory_size = 0x1000}};
    file->runtime = std::move(binary);
    run.mappings.Insert(Mapping{start, start + 0x1000, 0x1000, MonotonicNs{}, file});
  }

  // Builds a native stack, the root first: "loop" and "eval" (another function) of python, "loop2" and "eval2" of the
  // second runtime, "k…" in the kernel. All others are in libc.
  void Native(const Strings& frames) {
    stack = ResolvedStack();
    stack.ending = Ending::kComplete;
    names.clear();
    for (size_t i = 0; i < frames.size(); ++i) {
      const std::string& name = frames[i];
      const bool is_python = name == "loop" || name == "eval", is_second = name == "loop2" || name == "eval2";
      ResolvedFrame frame{.kind = name[0] == 'k' ? FrameKind::kKernel : FrameKind::kNative,
                          .is_caller = i + 1 < frames.size(),
                          .executable = is_python   ? python.get()
                                        : is_second ? second.get()
                                                    : libc.get()};
      frame.address = (name.starts_with("loop") ? 0x401110 : 0x401300) + i;
      names[frame.address] = name;
      stack.frames.push_back(frame);
    }
    stack.outermost_frames = frames.empty() ? 0 : 1;
    chains.clear();
  }
  // Adds a chain. The frames are written with the outermost first, as in a stack: "a", "|" ends the segments outside of
  // it. "||" has a segment without frames.
  void Chain(const Strings& frames, trib_chain_end end = TRIB_CHAIN_COMPLETE, RuntimeSlots::Number of = 0) {
    std::vector<uint64_t> words;
    bool ends_segment = true;
    for (const std::string& name : frames) {
      if (name == "|" && ends_segment && !words.empty()) {
        words.insert(words.begin(), {TRIB_CHAIN_ENTRY, 0});
      } else if (name != "|") {
        words.insert(words.begin(), {AddressOf(name) | (ends_segment ? TRIB_CHAIN_ENTRY : 0), 5 | uint64_t{9} << 32});
      }
      ends_segment = name == "|";
    }
    if (ends_segment && !frames.empty()) words.insert(words.begin(), {TRIB_CHAIN_ENTRY, 0});
    chains.push_back(TRIB_CHAIN_HEADER(of == 0 ? number : of, words.size() / 2, end));
    chains.insert(chains.end(), words.begin(), words.end());
  }
  uint64_t AddressOf(const std::string& name) {
    const auto [it, is_new] = objects.try_emplace(name, 0x7f0000000000 + 0x100 * objects.size());
    if (is_new) memories.processes[7][it->second] = {.check = 9, .name = name};
    return it->second;
  }

  // Mixes the stack after all objects have been read. Returns the frames, the root first. An interpreter's frame is in
  // parentheses.
  Strings Mixed() {
    const ResolvedStack before = stack;
    const StackMixer::Sample sample{
        .chains = chains, .time = MonotonicNs{50}, .executable = nullptr, .may_read = MayRead::kYes};
    mixer.Mix(sample, run, &stack);
    runtime_objects.Tick();
    executor.RunAll();
    stack = before;
    unnamed = mixer.Mix(sample, run, &stack);
    Strings out;
    for (const ResolvedFrame& frame : stack.frames) {
      if (frame.kind == FrameKind::kPython) {
        out.push_back(frame.name.empty() ? "?" : std::string(frame.name));
      } else {
        const std::string& name = names.at(frame.address);
        out.push_back(frame.kind == FrameKind::kInterpreter ? "(" + name + ")" : name);
      }
    }
    return out;
  }

  FakeExecutor executor;
  FakeClock clock;
  Metrics metrics;
  FakeUnwindMaps maps;
  FakeMemories memories;
  std::shared_ptr<FakeRuntimeBinary> runtime = std::make_shared<FakeRuntimeBinary>(&memories);
  std::shared_ptr<FakeRuntimeBinary> other = std::make_shared<FakeRuntimeBinary>(&memories);
  CodeFilePtr python = std::make_shared<CodeFile>(), second = std::make_shared<CodeFile>(),
              libc = std::make_shared<CodeFile>();
  ProcessRun run;
  RuntimeSlots slots{maps, clock, metrics};
  RuntimeObjects runtime_objects{
      {.open_memory = [this](Pid pid, const std::string&) { return memories.Open(pid.value); }},
      executor,
      clock,
      metrics};
  StackMixer mixer{slots, runtime_objects, metrics};
  RuntimeSlots::Number number = 0, other_number = 0;
  std::map<std::string, uint64_t> objects;
  std::map<uint64_t, std::string> names;
  std::vector<uint64_t> chains;
  ResolvedStack stack;
  size_t unnamed = 0;
};

TEST_F(StackMixerTest, PutsEachSegmentIntoItsLoop) {
  Native({"_start", "eval", "loop", "eval", "call", "loop", "eval", "memcpy"});
  Chain({"main", "outer", "|", "work"});
  EXPECT_EQ(Mixed(), (Strings{"_start", "(eval)", "(loop)", "main", "outer", "(eval)", "call", "(loop)", "work", "eval",
                              "memcpy"}));
  EXPECT_EQ(stack.ending, Ending::kComplete);
  EXPECT_EQ(unnamed, 0u);
  EXPECT_EQ(stack.frames[3].position, 15u);
  EXPECT_EQ(stack.frames[3].executable->path, "/app/main.py");
  EXPECT_FALSE(stack.frames[3].is_caller);
}

TEST_F(StackMixerTest, AnApplicationWithItsOwnInterpreterKeepsItsFrames) {
  runtime->is_only_interpreter = false;
  Native({"_start", "eval", "loop", "eval", "loop", "eval", "memcpy"});
  Chain({"main", "|", "work"});
  EXPECT_EQ(Mixed(), (Strings{"_start", "eval", "(loop)", "main", "eval", "(loop)", "work", "eval", "memcpy"}));
}

TEST_F(StackMixerTest, KeepsKernelFramesInnermost) {
  Native({"loop", "read", "k1", "k2"});
  Chain({"main"});
  EXPECT_EQ(Mixed(), (Strings{"(loop)", "main", "read", "k1", "k2"}));
}

TEST_F(StackMixerTest, StacksWithoutARuntimeStayAsTheyAre) {
  Native({"_start", "main", "work"});
  EXPECT_EQ(Mixed(), (Strings{"_start", "main", "work"}));
  EXPECT_EQ(stack.ending, Ending::kComplete);
  EXPECT_EQ(stack.outermost_frames, 1u);
}

TEST_F(StackMixerTest, TheInnermostLoopMayHaveNoSegment) {
  Native({"_start", "loop", "eval", "loop"});  // the call begins
  Chain({"main"});
  EXPECT_EQ(Mixed(), (Strings{"_start", "(loop)", "main", "eval", "loop"}));
  EXPECT_EQ(stack.ending, Ending::kComplete);
  Native({"_start", "loop"});  // the program's first call begins
  Chain({});
  EXPECT_EQ(Mixed(), (Strings{"_start", "loop"}));
  EXPECT_EQ(stack.ending, Ending::kComplete);
}

TEST_F(StackMixerTest, ASegmentWithoutFramesTakesItsLoop) {
  // The inner loop's last frame has ended: its destructor runs Python code.
  Native({"_start", "loop", "eval", "loop", "dealloc", "loop", "work"});
  Chain({"main", "|", "|", "__del__"});
  EXPECT_EQ(Mixed(), (Strings{"_start", "(loop)", "main", "(eval)", "(loop)", "dealloc", "(loop)", "__del__", "work"}));
  EXPECT_EQ(stack.ending, Ending::kComplete);
  Native({"_start", "loop", "eval", "loop", "dealloc"});
  Chain({"main", "|"});
  EXPECT_EQ(Mixed(), (Strings{"_start", "(loop)", "main", "eval", "loop", "dealloc"}));
}

TEST_F(StackMixerTest, LoopsOfAnotherListOfFramesHaveNoSegment) {
  // The greenlet was started by a Python function, and has its own list of frames.
  Native({"_start", "loop", "greenlet", "loop", "work"});
  Chain({"in_greenlet"});
  EXPECT_EQ(Mixed(), (Strings{"_start", "(loop)", "greenlet", "(loop)", "in_greenlet", "work"}));
  EXPECT_EQ(stack.ending, Ending::kRuntimeLost);
}

TEST_F(StackMixerTest, AChainThatEndsEarlyIsPairedFromTheInnermostEnd) {
  Native({"_start", "loop", "call", "loop", "work"});
  Chain({"inner"}, TRIB_CHAIN_UNREADABLE);
  EXPECT_EQ(Mixed(), (Strings{"_start", "(loop)", "call", "(loop)", "inner", "work"}));
  EXPECT_EQ(stack.ending, Ending::kRuntimeLost);
  // It has more segments than loops.
  Native({"_start", "loop", "work"});
  Chain({"a", "|", "b"}, TRIB_CHAIN_DEPTH);
  EXPECT_EQ(Mixed(), (Strings{"_start", "a", "(loop)", "b", "work"}));
  EXPECT_EQ(stack.ending, Ending::kRuntimeLost);
}

TEST_F(StackMixerTest, AnIncompleteStackKeepsItsEndingAndAllFrames) {
  Native({"call", "loop", "work"});
  stack.ending = Ending::kNoTable;
  Chain({"main", "outer", "|", "work"});
  EXPECT_EQ(Mixed(), (Strings{"main", "outer", "call", "(loop)", "work", "work"}));
  EXPECT_EQ(stack.ending, Ending::kNoTable);
  EXPECT_EQ(stack.outermost_frames, 3u);
  Native({"work"});
  stack.ending = Ending::kNoMapping;
  Chain({"main"});
  EXPECT_EQ(Mixed(), (Strings{"main", "work"}));
}

TEST_F(StackMixerTest, MissingChainsAreAnEnding) {
  Native({"_start", "loop", "work"});
  EXPECT_EQ(Mixed(), (Strings{"_start", "loop", "work"}));
  EXPECT_EQ(stack.ending, Ending::kRuntimeLost);
  Native({"_start", "eval", "work"});  // the interpreter starts
  EXPECT_EQ(Mixed(), (Strings{"_start", "eval", "work"}));
  EXPECT_EQ(stack.ending, Ending::kComplete);
  Native({"_start", "loop", "call", "loop"});  // the state of another interpreter was read
  Chain({});
  EXPECT_EQ(Mixed(), (Strings{"_start", "loop", "call", "loop"}));
  EXPECT_EQ(stack.ending, Ending::kRuntimeLost);
}

TEST_F(StackMixerTest, MoreSegmentsThanLoopsLoseNoFrame) {
  Native({"_start", "loop", "eval", "work"});
  Chain({"a", "|", "b", "|", "c"});
  EXPECT_EQ(Mixed(), (Strings{"_start", "(loop)", "a", "b", "c", "eval", "work"}));
  EXPECT_EQ(stack.ending, Ending::kRuntimeLost);
  Native({"_start", "eval", "work"});  // no loop is known
  Chain({"a", "b"});
  EXPECT_EQ(Mixed(), (Strings{"_start", "(eval)", "a", "b", "work"}));
  EXPECT_EQ(stack.ending, Ending::kRuntimeLost);
  Native({"_start", "work"});  // the frames of another stack of the thread
  Chain({"a"});
  EXPECT_EQ(Mixed(), (Strings{"a", "_start", "work"}));
  EXPECT_EQ(stack.ending, Ending::kRuntimeLost);
}

TEST_F(StackMixerTest, TwoRuntimesInOneStack) {
  Native({"_start", "loop", "eval", "call", "loop2", "eval2", "loop", "work"});
  Chain({"a", "|", "c"});
  Chain({"b"}, TRIB_CHAIN_COMPLETE, other_number);
  EXPECT_EQ(Mixed(),
            (Strings{"_start", "(loop)", "a", "(eval)", "call", "(loop2)", "b", "eval2", "(loop)", "c", "work"}));
  EXPECT_EQ(stack.ending, Ending::kComplete);
}

TEST_F(StackMixerTest, ASubinterpretersChainIsInsideTheOther) {
  Native({"_start", "loop", "run_string", "loop", "work"});
  Chain({"sub"});
  Chain({"main"});
  EXPECT_EQ(Mixed(), (Strings{"_start", "(loop)", "main", "run_string", "(loop)", "sub", "work"}));
  EXPECT_EQ(stack.ending, Ending::kComplete);
}

TEST_F(StackMixerTest, HelperCodeOfTheRuntimeIsLeftOut) {
  Native({"_start", "loop", "work"});
  Chain({"main", "shim", "__init__"});
  EXPECT_EQ(Mixed(), (Strings{"_start", "(loop)", "main", "__init__", "work"}));
  EXPECT_EQ(unnamed, 0u);
}

TEST_F(StackMixerTest, UnknownObjectsHaveNoName) {
  Native({"_start", "loop", "work"});
  Chain({"main", "freed"});
  memories.processes[7].erase(objects["freed"]);
  EXPECT_EQ(Mixed(), (Strings{"_start", "(loop)", "main", "?", "work"}));
  EXPECT_EQ(unnamed, 1u);
  EXPECT_EQ(stack.frames[3].executable, nullptr);
  EXPECT_EQ(stack.ending, Ending::kRuntimeLost);
  EXPECT_FALSE(stack.wants_executable);
}

// For example, the collector may not read the memory of processes.
TEST_F(StackMixerTest, ARuntimeWithoutAnyNameHidesNoNativeFrames) {
  Native({"_start", "loop", "eval", "call", "loop2", "loop", "work"});
  Chain({"a", "|", "c"});
  Chain({"b"}, TRIB_CHAIN_COMPLETE, other_number);
  memories.processes[7].erase(objects["a"]);
  memories.processes[7].erase(objects["c"]);
  EXPECT_EQ(Mixed(), (Strings{"_start", "loop", "?", "eval", "call", "(loop2)", "b", "loop", "?", "work"}));
  EXPECT_EQ(unnamed, 2u);
  EXPECT_EQ(stack.ending, Ending::kRuntimeLost);
}

TEST_F(StackMixerTest, WaitsForObjectsThatAreRead) {
  Native({"_start", "loop"});
  Chain({"main"});
  mixer.Mix({.chains = chains, .may_read = MayRead::kNotYet}, run, &stack);
  EXPECT_TRUE(stack.wants_executable);
  runtime_objects.Tick();
  EXPECT_EQ(executor.waiting(), 0u);  // the container may have opted out
}

TEST_F(StackMixerTest, IgnoresChainsOfUnknownRuntimes) {
  Native({"_start", "loop"});
  Chain({"main"}, TRIB_CHAIN_COMPLETE, 200);
  EXPECT_EQ(Mixed(), (Strings{"_start", "loop"}));
  EXPECT_EQ(stack.ending, Ending::kRuntimeLost);
  // The sample was mixed twice, because it had to wait.
  mixer.CountSample();
  EXPECT_EQ(metrics.AddCounter("tributary_collector_runtime_chains_ignored_total", "").value(), 1u);
}

TEST_F(StackMixerTest, CountsRefusedReadsOfASample) {
  for (size_t i = 0; i < RuntimeObjects::kProcessQueueMax; ++i) {
    runtime_objects.Find(run, runtime, {i, 1}, MonotonicNs{50}, MayRead::kYes);
  }
  Native({"_start", "loop"});
  Chain({"main"});
  const ResolvedStack before = stack;
  for (int i = 0; i < 3; ++i) {
    stack = before;
    EXPECT_EQ(mixer.Mix({.chains = chains, .may_read = MayRead::kYes}, run, &stack), 1u);
    EXPECT_FALSE(stack.wants_executable);
  }
  mixer.CountSample();
  EXPECT_EQ(metrics.AddCounter("tributary_collector_code_objects_refused_total", "").value(), 1u);
}

TEST_F(StackMixerTest, ACopysRuntimesAreExpectedInTheExecutablesProcesses) {
  Native({"_start", "loop"});
  const trib_executable_key key{.inode = 5, .device = 1, .padding = 0};
  mixer.Mix({.chains = chains, .executable = &key}, run, &stack);
  ASSERT_EQ(maps.interpreters.size(), 1u);
  EXPECT_EQ(maps.interpreters.begin()->second, number);
}

// Neither native frames nor frames of chains are lost or reordered, for any input.
TEST_F(StackMixerTest, AnyStackKeepsAllFramesInOrder) {
  std::mt19937 random(1);
  const auto below = [&](unsigned n) { return random() % n; };
  const Strings kinds = {"loop", "eval", "loop2", "eval2", "libc"};
  for (int round = 0; round < 2000; ++round) {
    Strings native;
    for (unsigned i = 0, count = 1 + below(12); i < count; ++i) native.push_back(kinds[below(5)]);
    for (unsigned i = 0, count = below(3); i < count; ++i) native.push_back("k");
    Native(native);
    if (below(2) == 0) stack.ending = Ending::kNoTable;
    std::vector<uint64_t> addresses;
    for (const ResolvedFrame& frame : stack.frames) addresses.push_back(frame.address);
    std::map<RuntimeSlots::Number, Strings> expected;  // the innermost frame first
    for (unsigned c = 0, count = below(4); c < count; ++c) {
      const RuntimeSlots::Number of = below(2) == 0 ? number : other_number;
      Strings frames, outermost_first;
      for (unsigned i = 0, n = below(8); i < n; ++i) {
        frames.push_back(below(3) == 0 ? "|" : fmt::format("{}_{}", of, below(20)));
        if (frames.back() != "|") outermost_first.push_back(frames.back());
      }
      expected[of].insert(expected[of].end(), outermost_first.rbegin(), outermost_first.rend());
      Chain(frames, static_cast<trib_chain_end>(below(TRIB_CHAIN_END_COUNT)), of);
    }
    Mixed();
    std::vector<uint64_t> addresses_after;
    std::map<RuntimeSlots::Number, Strings> got;
    for (const ResolvedFrame& frame : stack.frames) {
      if (frame.kind == FrameKind::kPython) {
        const std::string name(frame.name);
        got[static_cast<RuntimeSlots::Number>(std::stoi(name))].insert(
            got[static_cast<RuntimeSlots::Number>(std::stoi(name))].begin(), name);
      } else {
        addresses_after.push_back(frame.address);
      }
    }
    std::erase_if(expected, [](const auto& item) { return item.second.empty(); });
    ASSERT_EQ(addresses_after, addresses) << round;
    ASSERT_EQ(got, expected) << round;
    ASSERT_EQ(stack.frames.back().kind == FrameKind::kKernel, native.back() == "k") << round;
  }
}

TEST(SegmentPairs, EverySegmentHasOnePlace) {
  for (size_t loops = 0; loops < 6; ++loops) {
    for (size_t segments = 0; segments < 6; ++segments) {
      for (int flags = 0; flags < 8; ++flags) {
        const PairInput input{.loops = loops,
                              .segments = segments,
                              .stack_is_complete = (flags & 1) != 0,
                              .chain_is_complete = (flags & 2) != 0,
                              .innermost_is_leaf = (flags & 4) != 0};
        const SegmentPairs pairs = PairSegments(input);
        ASSERT_EQ(pairs.of_loop.size(), loops);
        size_t next = 0;
        for (const SegmentPairs::Range& range : pairs.of_loop) {
          if (range.count == 0) continue;
          ASSERT_EQ(range.first, next);
          next += range.count;
        }
        ASSERT_EQ(pairs.outside.first, next);
        ASSERT_EQ(next + pairs.outside.count, segments);
        // The outermost elements belong together if nothing is missing.
        if ((flags & 3) == 3 && loops > 0 && segments > 0 && LoopsWithoutSegment(input) == 0) {
          ASSERT_GT(pairs.of_loop.back().count, 0u);
        }
      }
    }
  }
}

}  // namespace
}  // namespace tributary
