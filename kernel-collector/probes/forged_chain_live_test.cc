// Chains of processes that forge CPython's structures, on the running kernel, as root. The children of this test have
// the structures where the layouts of the test say, and spin.

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>

#include "kernel-collector/probes/chain_live_testing.h"

namespace tributary {
namespace {

struct Code {
  std::array<uint64_t, 8> fields = {};  // of the check; the last is the address of the name
  std::array<uint64_t, 8> instructions = {};
};
struct Name {
  std::array<uint64_t, 4> words = {1, 2, 3, 4};
};
struct Frame {
  uint64_t back = 0, code = 0, instruction = 0, owner = 0;
  std::array<uint64_t, 12> rest = {};
};
struct State {
  uint64_t self = 0, frame = 0, interpreter = 0;
};
// The memory of a forged interpreter. Children inherit it, at the same addresses.
struct Forged {
  std::array<State, 3> states = {};
  std::array<Frame, 8> frames = {};
  std::array<Code, 8> codes = {};
  std::array<Name, 8> names = {};
};
Forged forged;
thread_local uint64_t running_state = 0;

uint64_t AddressOf(const void* object) { return reinterpret_cast<uint64_t>(object); }

trib_runtime ForgedLayout() {
  trib_runtime runtime = {.kind = TRIB_RUNTIME_PYTHON};
  runtime.python = {.thread_id = offsetof(State, self),
                    .frame = offsetof(State, frame),
                    .entry = TRIB_PYTHON_ENTRY_OWNER,
                    .frame_bytes = 128,
                    .frame_back = offsetof(Frame, back),
                    .frame_code = offsetof(Frame, code),
                    .frame_instruction = offsetof(Frame, instruction),
                    .frame_owner = offsetof(Frame, owner),
                    .instruction_is_pointer = 1,
                    .check_first = 0,
                    .check_bytes = 64,
                    .code_name = 56,
                    .name_hash = 24,
                    .code_instructions = 64};
  return runtime;
}

uint64_t SelfOf(pthread_t thread) { return static_cast<uint64_t>(thread); }

// Makes a list of frames from `first` to `last`, with a code object for each.
void Link(size_t first, size_t last) {
  for (size_t i = first; i <= last; ++i) {
    Code& code = forged.codes[i];
    for (size_t field = 0; field < 7; ++field) code.fields[field] = 1000 * i + field;
    code.fields[7] = AddressOf(&forged.names[i]);
    forged.names[i].words[3] = 77 + i;
    forged.frames[i] = {.back = i == last ? 0 : AddressOf(&forged.frames[i + 1]),
                        .code = AddressOf(&code),
                        .instruction = AddressOf(&code.instructions) + 2 * i};
  }
}

// Sets a pthread key of the current thread to a thread state. `skip`: keys that are made before.
void SetKey(State* state, size_t skip = 0) {
  pthread_key_t key = 0;
  for (size_t i = 0; i <= skip; ++i) pthread_key_create(&key, nullptr);
  state->self = SelfOf(pthread_self());
  pthread_setspecific(key, state);
}

[[noreturn]] void Spin() {
  while (true) {
  }
}

class ForgedChainLive : public ChainLiveTest {
 protected:
  void SetUp() override {
    ChainLiveTest::SetUp();
    forged = {};
    SetRuntime(kRuntime, ForgedLayout());
    const Child child(Spin);
    executable_ = ExecutableOf(child.pid());
    ASSERT_NE(executable_.inode, 0u);
    SetRuntimes(kRuntime, 0);
  }
  void SetRuntimes(uint16_t first, uint16_t second) {
    ASSERT_TRUE(probes->unwind_maps().SetInterpreter(executable_, TRIB_PROCESS_RUNTIMES(first, second)).ok());
  }
  // Runs `forge` in a child that then spins. Returns a sample of it with a chain.
  SeenChains Run(const std::function<void()>& forge) {
    const Child child([&] {
      forge();
      Spin();
    });
    return One(child.pid(), [](const SeenChains& seen) { return !seen.chains.empty(); });
  }
  // The same with the state in a key, for a test that needs one chain of the runtime kRuntime.
  SeenChains::Chain Chain(const std::function<void()>& forge) {
    const SeenChains seen = Run([&] {
      forged.states[0].frame = AddressOf(&forged.frames[0]);
      Link(0, 3);
      forge();
      SetKey(&forged.states[0]);
    });
    EXPECT_EQ(seen.chains.size(), 1u);
    if (seen.chains.empty()) return {};
    EXPECT_EQ(seen.chains[0].runtime, kRuntime);
    return seen.chains[0];
  }
  std::vector<uint64_t> CodesOf(const SeenChains::Chain& chain) {
    std::vector<uint64_t> codes;
    for (const RuntimeFrame& frame : chain.frames) codes.push_back(frame.code);
    return codes;
  }
  static uint64_t CodeAt(size_t index) { return AddressOf(&forged.codes[index]); }

  trib_executable_key executable_ = {};
};

TEST_F(ForgedChainLive, ReadsAGoodList) {
  const SeenChains::Chain chain = Chain([] {});
  EXPECT_EQ(chain.end, TRIB_CHAIN_COMPLETE);
  EXPECT_EQ(CodesOf(chain), (std::vector{CodeAt(0), CodeAt(1), CodeAt(2), CodeAt(3)}));
  for (size_t i = 0; i < chain.frames.size(); ++i) {
    EXPECT_EQ(chain.frames[i].position, static_cast<int32_t>(2 * i));
    EXPECT_FALSE(chain.frames[i].is_entry);
  }
}

TEST_F(ForgedChainLive, SeparatesSegmentsByFramesThatAreNoPythonFrames) {
  const SeenChains::Chain chain = Chain([] {
    Link(0, 6);
    for (const size_t shim : {2, 6}) {
      forged.frames[shim].owner = 3;
      forged.frames[shim].code = 0;
    }
  });
  EXPECT_EQ(chain.end, TRIB_CHAIN_COMPLETE);
  EXPECT_EQ(CodesOf(chain), (std::vector{CodeAt(0), CodeAt(1), CodeAt(3), CodeAt(4), CodeAt(5)}));
  for (size_t i = 0; i < chain.frames.size(); ++i) EXPECT_EQ(chain.frames[i].is_entry, i == 1 || i == 4) << i;
}

TEST_F(ForgedChainLive, MarksASegmentWhoseFramesHaveEnded) {
  const SeenChains::Chain chain = Chain([] { forged.frames[0].owner = 4; });
  EXPECT_EQ(CodesOf(chain), (std::vector{uint64_t{0}, CodeAt(1), CodeAt(2), CodeAt(3)}));
  EXPECT_TRUE(!chain.frames.empty() && chain.frames[0].is_entry);

  const SeenChains::Chain empty = Chain([] {
    Link(0, 0);
    forged.frames[0].owner = 4;
  });
  EXPECT_TRUE(empty.frames.empty());
  EXPECT_EQ(empty.end, TRIB_CHAIN_COMPLETE);
}

TEST_F(ForgedChainLive, EndsCyclicLists) {
  const SeenChains::Chain frames = Chain([] { forged.frames[3].back = AddressOf(&forged.frames[1]); });
  EXPECT_EQ(frames.end, TRIB_CHAIN_DEPTH);
  EXPECT_GT(frames.frames.size(), 300u);
  EXPECT_LE(2 * frames.frames.size(), size_t{TRIB_COPY_WORDS_MAX});

  const SeenChains::Chain shims = Chain([] {
    forged.frames[0].owner = 3;
    forged.frames[0].back = AddressOf(&forged.frames[0]);
  });
  EXPECT_EQ(shims.end, TRIB_CHAIN_DEPTH);
  EXPECT_EQ(shims.frames.size(), 1u);
}

TEST_F(ForgedChainLive, CountsWhyAChainCannotBeReadOn) {
  auto* unmapped = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  constexpr uint64_t kKernel = 0xffff888000000000;
  struct Case {
    const char* reason;
    size_t frames;
    std::function<void()> forge;
  };
  const Case cases[] = {
      {"frame", 2, [&] { forged.frames[1].back = AddressOf(unmapped); }},
      {"frame", 2, [&] { forged.frames[1].back = kKernel; }},
      {"frame", 2, [&] { forged.frames[1].back |= 1; }},
      {"frame", 0, [&] { forged.states[0].frame = 64; }},
      {"code", 2, [&] { forged.frames[2].code = AddressOf(unmapped); }},
      {"code", 2, [&] { forged.frames[2].code = kKernel; }},
      {"code", 2, [&] { forged.frames[2].code = 0; }},
      {"code", 2, [&] { forged.frames[2].code = uint64_t{TRIB_CHAIN_ENTRY} | 4096 * 1024; }},
      {"name", 1, [&] { forged.codes[1].fields[7] = AddressOf(unmapped); }},
      {"name", 1, [&] { forged.codes[1].fields[7] = kKernel; }},
      {"name", 1, [&] { forged.codes[1].fields[7] = 0; }},
  };
  for (const Case& c : cases) {
    const std::string metric = "walk_errors_total{runtime=\"python\",reason=\"" + std::string(c.reason) + "\"}";
    const std::string before = Metric(metric);
    const SeenChains::Chain chain = Chain(c.forge);
    EXPECT_EQ(chain.end, TRIB_CHAIN_UNREADABLE) << c.reason << ' ' << &c - cases;
    EXPECT_EQ(chain.frames.size(), c.frames) << c.reason << ' ' << &c - cases;
    EXPECT_NE(Metric(metric), before) << c.reason << ' ' << &c - cases;
  }
  munmap(unmapped, 4096);
}

TEST_F(ForgedChainLive, SurvivesInvalidLayouts) {
  for (const uint8_t byte : {0x01, 0x7f, 0x80, 0xff}) {
    trib_runtime runtime = ForgedLayout();
    memset(&runtime.python.frame, byte, sizeof(runtime.python) - offsetof(trib_python, frame));
    runtime.python.has_cframe = 0;
    runtime.python.frame = offsetof(State, frame);
    runtime.python.musl = 0;
    SetRuntime(kRuntime, runtime);
    const SeenChains::Chain chain = Chain([] {});
    EXPECT_LE(chain.frames.size(), size_t{TRIB_CHAIN_FRAMES_MAX}) << int{byte};
  }
}

TEST_F(ForgedChainLive, FindsTheStateInEveryBlockOfKeys) {
  for (const size_t skip : {0, 10, 40, 70, 110}) {
    const SeenChains seen = Run([&] {
      forged.states[0].frame = AddressOf(&forged.frames[0]);
      Link(0, 3);
      SetKey(&forged.states[0], skip);
    });
    ASSERT_EQ(seen.chains.size(), 1u);
    EXPECT_EQ(seen.chains[0].frames.size(), 4u) << skip;
  }
}

TEST_F(ForgedChainLive, FindsTheStateInKeysOfMusl) {
  trib_runtime runtime = ForgedLayout();
  runtime.python.musl = 1;
  SetRuntime(kRuntime, runtime);
  struct Case {
    size_t pointer, key;
  };
  // glibc does not use these bytes of the control block any more.
  for (const auto& [pointer, key] : {Case{0x80, 3}, Case{0x80, 100}, Case{0x88, 0}, Case{0x88, 127}}) {
    const SeenChains seen = Run([&] {
      static uint64_t keys[128];
      forged.states[0] = {.self = SelfOf(pthread_self()), .frame = AddressOf(&forged.frames[0])};
      Link(0, 3);
      keys[key] = AddressOf(&forged.states[0]);
      const uint64_t address = AddressOf(keys);
      memcpy(reinterpret_cast<char*>(pthread_self()) + pointer, &address, sizeof(address));
    });
    ASSERT_EQ(seen.chains.size(), 1u);
    EXPECT_EQ(seen.chains[0].frames.size(), 4u) << pointer << ' ' << key;
  }
}

TEST_F(ForgedChainLive, HasNoChainWithoutAStateOfThisThread) {
  const Child child([] {
    SetKey(&forged.states[0]);
    ++forged.states[0].self;
    Spin();
  });
  const std::string metric = "walk_errors_total{runtime=\"python\",reason=\"no_state\"}", before = Metric(metric);
  for (const SeenChains& seen : Samples(child.pid(), 5, [](const SeenChains&) { return true; })) {
    EXPECT_TRUE(seen.chains.empty());
    EXPECT_EQ(seen.sample.runtime_words, 0);
  }
  EXPECT_NE(Metric(metric), before);
}

TEST_F(ForgedChainLive, WalksTheRunningStateFirst) {
  trib_runtime runtime = ForgedLayout();
  runtime.python.tls_state = static_cast<int64_t>(AddressOf(&running_state) - SelfOf(pthread_self()));
  SetRuntime(kRuntime, runtime);
  const auto forge = [](State* running) {
    forged.states[0].frame = AddressOf(&forged.frames[0]);
    forged.states[1].frame = AddressOf(&forged.frames[4]);
    Link(0, 3);
    Link(4, 5);
    SetKey(&forged.states[0]);
    forged.states[1].self = forged.states[0].self;
    running_state = running == nullptr ? 0 : AddressOf(running);
  };
  const SeenChains two = Run([&] { forge(&forged.states[1]); });
  ASSERT_EQ(two.chains.size(), 2u);
  EXPECT_EQ(CodesOf(two.chains[0]), (std::vector{CodeAt(4), CodeAt(5)}));
  EXPECT_EQ(CodesOf(two.chains[1]), (std::vector{CodeAt(0), CodeAt(1), CodeAt(2), CodeAt(3)}));
  for (State* running : {static_cast<State*>(nullptr), &forged.states[0]}) {
    const SeenChains one = Run([&] { forge(running); });
    ASSERT_EQ(one.chains.size(), 1u);
    EXPECT_EQ(one.chains[0].frames.size(), 4u);
  }
}

TEST_F(ForgedChainLive, WalksTheStateWithTheLockFirst) {
  trib_runtime runtime = ForgedLayout();
  runtime.python.interpreter_runtime = 8;
  runtime.python.runtime_current = 24;
  SetRuntime(kRuntime, runtime);
  static uint64_t interpreter[2], python[4];
  const auto run = [this](uint64_t interpreter_address, uint64_t python_address, const State& current) {
    return Run([&] {
      forged.states[0].frame = AddressOf(&forged.frames[0]);
      forged.states[1].frame = AddressOf(&forged.frames[4]);
      Link(0, 3);
      Link(4, 5);
      SetKey(&forged.states[0]);
      forged.states[0].interpreter = interpreter_address;
      forged.states[1].self = forged.states[0].self;
      interpreter[1] = python_address;
      python[3] = AddressOf(&current);
    });
  };
  const SeenChains two = run(AddressOf(interpreter), AddressOf(python), forged.states[1]);
  ASSERT_EQ(two.chains.size(), 2u);
  EXPECT_EQ(CodesOf(two.chains[0]), (std::vector{CodeAt(4), CodeAt(5)}));
  EXPECT_EQ(CodesOf(two.chains[1]), (std::vector{CodeAt(0), CodeAt(1), CodeAt(2), CodeAt(3)}));
  for (const SeenChains& one : {run(AddressOf(interpreter), AddressOf(python), forged.states[0]),
                                run(AddressOf(interpreter), AddressOf(python), forged.states[2]),
                                run(AddressOf(interpreter), 0, forged.states[1]),
                                run(0xffff888000000000, AddressOf(python), forged.states[1])}) {
    ASSERT_EQ(one.chains.size(), 1u);
    EXPECT_EQ(one.chains[0].frames.size(), 4u);
  }
}

TEST_F(ForgedChainLive, WalksTwoRuntimesOfAProcess) {
  constexpr uint16_t kOther = 200;
  SetRuntime(kOther, ForgedLayout());
  SetRuntimes(kRuntime, kOther);
  const SeenChains seen = Run([&] {
    forged.states[0].frame = AddressOf(&forged.frames[0]);
    forged.states[1].frame = AddressOf(&forged.frames[4]);
    Link(0, 3);
    Link(4, 5);
    SetKey(&forged.states[0]);
    SetKey(&forged.states[1]);
  });
  ASSERT_EQ(seen.chains.size(), 2u);
  EXPECT_EQ(seen.chains[0].runtime, kRuntime);
  EXPECT_EQ(seen.chains[0].frames.size(), 4u);
  EXPECT_EQ(seen.chains[1].runtime, kOther);
  EXPECT_EQ(seen.chains[1].frames.size(), 2u);
}

TEST_F(ForgedChainLive, CountsPositionsInTheCopyThatTheThreadRuns) {
  trib_runtime runtime = ForgedLayout();
  runtime.python.code_copies = 8;  // the second field
  runtime.python.frame_copy = offsetof(Frame, owner) + 4;
  SetRuntime(kRuntime, runtime);
  static uint64_t copies[4] = {3, 0, 0, 0}, instructions[4];
  copies[2] = AddressOf(instructions);
  const auto position = [this](uint64_t index, uint64_t list) {
    const SeenChains::Chain chain = Chain([&] {
      forged.codes[0].fields[1] = list;
      forged.frames[0].owner = index << 32;
      forged.frames[0].instruction = AddressOf(instructions) + 6;
    });
    return chain.frames.empty() ? -1 : chain.frames[0].position;
  };
  const auto outside = static_cast<int32_t>(AddressOf(instructions) + 6 - AddressOf(&forged.codes[0].instructions));
  EXPECT_EQ(position(1, AddressOf(copies)), 6);
  EXPECT_EQ(position(0, AddressOf(copies)), outside) << "a null pointer";
  EXPECT_EQ(position(3, AddressOf(copies)), outside) << "more than there are";
  EXPECT_EQ(position(0xffffffff, AddressOf(copies)), outside);
  EXPECT_EQ(position(1, 0), outside);
  EXPECT_EQ(position(1, 0xffff888000000000), outside);
}

}  // namespace
}  // namespace tributary
