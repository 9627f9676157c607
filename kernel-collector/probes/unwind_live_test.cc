// The walk by rows on the running kernel, as root, with hand-written rows for code of our own.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>

#include "base/fd.h"
#include "kernel-collector/probes/live_testing.h"
#include "kernel-collector/probes/unwind_chain_testing.h"
#include "kernel-collector/probes/unwind_maps.h"

namespace tributary {
namespace {

using testing::ElementsAre;

constexpr uint32_t kTable = 77, kFirstMapping = 1000, kFirstPage = 100;
constexpr uint32_t kFirstRule = 50;                     // one rule per row
constexpr uint32_t kFirstRow = TRIB_CHUNK_ROWS + 4001;  // in the second chunk, and odd

// The parts of a record that tests keep.
struct Seen {
  trib_sample sample;
  std::vector<uint64_t> user;
  std::optional<trib_resume> resume;
  std::vector<uint8_t> stack;
};

uint64_t Address(const void* code) { return reinterpret_cast<uint64_t>(code); }

class UnwindLive : public testing::Test {
 protected:
  void Open(ProbeOptions options = {}) {
    options.sample_rate_hz = 199;
    // The first samples of all other processes come with copies too.
    if (options.copies_bytes == 0) options.copies_bytes = 16 << 20;
    probes = OpenProbes(options, metrics);
    ASSERT_NE(probes, nullptr);
    ASSERT_TRUE(probes->StartSampling().ok());
  }
  // Returns the next samples of `pid` that `wanted` accepts, taken in user mode or, with `want_kernel`, in the kernel.
  std::vector<Seen> Samples(Pid pid, size_t count, const std::function<bool(const Seen&)>& wanted,
                            bool want_kernel = false) {
    std::vector<Seen> all;
    Until([&] {
      probes->DrainSamples([&](const SampleRecord& record) {
        bool in_kernel = (record.sample->flags & TRIB_FLAG_IN_KERNEL) != 0;
        if (record.sample->pid != static_cast<uint32_t>(pid.value) || in_kernel != want_kernel || all.size() >= count)
          return;
        Seen seen{.sample = *record.sample, .user = {record.user().begin(), record.user().end()}};
        if (record.resume != nullptr) seen.resume = *record.resume;
        seen.stack.assign(record.stack.begin(), record.stack.end());
        if (wanted(seen)) all.push_back(std::move(seen));
      });
      return all.size() >= count;
    });
    return all;
  }
  Seen One(Pid pid, const std::function<bool(const Seen&)>& wanted) {
    std::vector<Seen> seen = Samples(pid, 1, wanted);
    return seen.empty() ? Seen{} : seen[0];
  }
  // Returns true for a sample of the code below chain_root. The code before it runs only for a short time.
  static bool Spins(const Seen& seen) {
    return !seen.user.empty() && seen.user[0] >= Address(chain_begin) && seen.user[0] < Address(chain_end);
  }

  // Publishes the chain's rows as user space does.
  void PublishRows() {
    UnwindMaps& maps = probes->unwind_maps();
    std::span<uint64_t> rows;
    for (uint32_t chunk = 0; chunk <= kFirstRow / TRIB_CHUNK_ROWS; ++chunk) {
      auto added = maps.AddChunk();
      ASSERT_TRUE(added.ok()) << added.status();
      ASSERT_EQ(added->size(), TRIB_CHUNK_ELEMENTS);
      rows = *added;
    }
    rows = rows.subspan(kFirstRow % TRIB_CHUNK_ROWS / 2, 64);
    ASSERT_TRUE(maps.Access(std::as_bytes(rows)) && maps.Access(std::as_bytes(maps.rules())) &&
                maps.Access(std::as_bytes(maps.pages())));
    uint32_t count = 0;
    for (const ChainRow& row : ChainRows()) {
      ASSERT_LT(row.begin, chain_begin + TRIB_PAGE_BYTES);
      maps.rules()[kFirstRule + count] = row.rule;
      uint32_t at = kFirstRow % 2 + count;
      ASSERT_LT(at, 128u);
      uint64_t value = static_cast<uint64_t>(row.begin - chain_begin) << 16 | (kFirstRule + count);
      rows[at / 2] |= value << (at % 2 * 32);
      ++count;
    }
    constexpr uint32_t kEnd = kFirstRule - 1;
    maps.rules()[kEnd] = Rule(TRIB_RULE_END, 0);
    maps.pages()[kFirstPage] = TRIB_PAGE_LOADED | uint64_t{count} << TRIB_PAGE_ROWS_SHIFT | kFirstRow;
    maps.pages()[kFirstPage + 1] = TRIB_PAGE_LOADED | kEnd;
  }
  void PublishProcess(Pid pid, const trib_sample& sample, uint32_t flags = 0) {
    UnwindMaps& maps = probes->unwind_maps();
    // Neighbours, so that the walk has to search.
    constexpr uint32_t kMappings = 5;
    ASSERT_TRUE(maps.Access(std::as_bytes(maps.mappings().subspan(kFirstMapping, kMappings))));
    for (uint32_t i = 0; i < kMappings; ++i) {
      maps.mappings()[kFirstMapping + i] = {.start = 0x10000 * (i + 1), .end = 0x10000 * (i + 1) + 0x1000};
    }
    maps.mappings()[kFirstMapping + kMappings - 1] = {.start = Address(chain_begin),
                                                      .end = Address(chain_end),
                                                      .bias = Address(chain_begin) - TRIB_PAGE_BYTES,
                                                      .first_page = kFirstPage - 1,
                                                      .flags = flags};
    ASSERT_TRUE(maps.SetProcess(pid, {.start_time_ns = sample.start_time_ns,
                                      .exec_id = sample.exec_id,
                                      .first_mapping = kFirstMapping,
                                      .mapping_count = kMappings,
                                      .table = kTable})
                    .ok());
  }
  // Publishes rows and process; returns a sample that was walked with them.
  Seen Walked(Pid pid, uint32_t flags = 0) {
    PublishRows();
    PublishProcess(pid, One(pid, Spins).sample, flags);
    return One(pid, [](const Seen& seen) { return seen.sample.table == kTable; });
  }

  Metrics metrics;
  std::unique_ptr<Probes> probes;
};

void RunChain(const void* leaf) {
  chain_leaf = leaf;
  chain_root();
}

// Checks the copy against the child's memory at the address that the copy was taken from.
void ExpectMemory(Pid pid, const Seen& seen) {
  ASSERT_TRUE(seen.resume);
  ASSERT_GE(seen.stack.size(), 2048u);
  EXPECT_EQ(seen.stack.size(), seen.sample.stack_bytes);
  Fd memory(open(("/proc/" + std::to_string(pid.value) + "/mem").c_str(), O_RDONLY | O_CLOEXEC));
  std::vector<uint8_t> expected(seen.stack.size());
  ASSERT_EQ(pread(memory.get(), expected.data(), expected.size(), static_cast<off_t>(seen.resume->sp)),
            static_cast<ssize_t>(expected.size()));
  EXPECT_EQ(expected, seen.stack);
}

TEST_F(UnwindLive, FollowsEveryKindOfRule) {
  struct Case {
    const void* leaf;
    std::vector<uint64_t> callers;  // before chain_c
    bool keeps_second = true;       // chain_c needs it
  };
  const Case cases[] = {{chain_spin, {}},
                        {chain_realigned, {Address(chain_in_realigned)}, false},
                        {chain_register, {}, false},
                        {chain_popped, {}},
                        {chain_plt, {}}};
  Open();
  PublishRows();
  for (const Case& c : cases) {
    Child child([&] { RunChain(c.leaf); });
    PublishProcess(child.pid(), One(child.pid(), Spins).sample);
    for (const Seen& seen : Samples(child.pid(), 5, [](const Seen& s) { return s.sample.table == kTable; })) {
      std::vector<uint64_t> expected = c.callers;
      expected.push_back(Address(chain_in_c));
      if (c.keeps_second) {
        for (const void* caller : {chain_in_b, chain_in_d, chain_in_a, chain_in_root}) {
          expected.push_back(Address(caller));
        }
      }
      ASSERT_FALSE(seen.user.empty());
      EXPECT_EQ(std::vector(seen.user.begin() + 1, seen.user.end()), expected) << "leaf " << &c - cases;
      EXPECT_EQ(seen.sample.stop, c.keeps_second ? TRIB_STOP_END : TRIB_STOP_NO_PROGRESS);
      EXPECT_FALSE(seen.resume);
    }
    probes->unwind_maps().DropProcess(child.pid());
  }
  EXPECT_EQ(probes->unwind_maps().touches()[kFirstPage >> TRIB_TOUCH_SHIFT], 1u);
  EXPECT_EQ(probes->unwind_maps().touches()[(kFirstPage >> TRIB_TOUCH_SHIFT) + 1], 0u);
}

TEST_F(UnwindLive, BeginsTheWalkWhereTheKernelWasEntered) {
  Open();
  Child child([] { RunChain(chain_calling); });
  EXPECT_EQ(Walked(child.pid()).sample.stop, TRIB_STOP_END);
  auto from_chain = [](const Seen& s) { return s.sample.table == kTable; };
  for (const Seen& seen : Samples(child.pid(), 5, from_chain, /*want_kernel=*/true)) {
    EXPECT_THAT(seen.user, ElementsAre(Address(chain_in_calling), Address(chain_in_c), Address(chain_in_b),
                                       Address(chain_in_d), Address(chain_in_a), Address(chain_in_root)));
    EXPECT_GT(seen.sample.kernel_frames, 0);
    EXPECT_EQ(seen.sample.stop, TRIB_STOP_END);
  }
}

TEST_F(UnwindLive, UnknownProcessComesWithACopyOfItsStack) {
  Open();
  Child child([] { RunChain(chain_spin); });
  for (const Seen& seen : Samples(child.pid(), 5, Spins)) {
    EXPECT_EQ(seen.sample.stop, TRIB_STOP_NO_PROCESS);
    EXPECT_EQ(seen.sample.table, 0u);
    ASSERT_TRUE(seen.resume);
    EXPECT_EQ(seen.resume->pc, Address(chain_spin));
    EXPECT_THAT(seen.user, ElementsAre(seen.resume->pc));
    EXPECT_GT(seen.resume->start_stack, seen.resume->sp);
    ExpectMemory(child.pid(), seen);
    uint64_t caller = 0;
    memcpy(&caller, seen.stack.data(), sizeof(caller));
    EXPECT_EQ(caller, Address(chain_in_c));
  }
}

TEST_F(UnwindLive, StopsAtUnloadedRowsWhereUserSpaceCanContinue) {
  Open();
  Child child([] { RunChain(chain_spin); });
  EXPECT_EQ(Walked(child.pid()).sample.stop, TRIB_STOP_END);
  std::span<uint64_t> pages = probes->unwind_maps().pages();
  uint64_t page = std::exchange(pages[kFirstPage + 1], 0);
  probes->unwind_maps().CountWithdrawal();
  ASSERT_TRUE(probes->unwind_maps().WaitGrace().ok());
  probes->DrainSamples([](const SampleRecord&) {});
  Seen seen = One(child.pid(), [](const Seen& s) { return s.sample.stop != TRIB_STOP_END; });
  EXPECT_EQ(seen.sample.stop, TRIB_STOP_NO_PAGE);
  EXPECT_EQ(seen.sample.table, kTable);
  EXPECT_THAT(seen.user, ElementsAre(Address(chain_spin), Address(chain_in_c), Address(chain_in_b), Address(chain_in_d),
                                     Address(chain_in_a), Address(chain_in_root)));
  ExpectMemory(child.pid(), seen);
  EXPECT_EQ(seen.resume->pc, Address(chain_in_root));

  // An address without a mapping: the page before the code.
  pages[kFirstPage + 1] = page;
  probes->unwind_maps().mappings()[kFirstMapping + 4].end -= TRIB_PAGE_BYTES;
  seen = One(child.pid(), [](const Seen& s) { return s.sample.stop == TRIB_STOP_NO_MAPPING; });
  EXPECT_EQ(seen.user.size(), 6u);
  ExpectMemory(child.pid(), seen);
}

TEST_F(UnwindLive, ExecMakesTheTableStale) {
  auto* go =
      static_cast<std::atomic<int>*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  Open();
  Child child([&] {
    while (*go == 0) {
    }
    execl("/bin/sh", "sh", "-c", "while :; do :; done", nullptr);
  });
  Seen before = One(child.pid(), [](const Seen&) { return true; });
  PublishProcess(child.pid(), before.sample);
  EXPECT_EQ(One(child.pid(), [](const Seen& s) { return s.sample.table == kTable; }).sample.stop, TRIB_STOP_NO_MAPPING);
  *go = 1;
  Seen after = One(child.pid(), [&](const Seen& s) { return s.sample.exec_id != before.sample.exec_id; });
  EXPECT_GT(after.sample.exec_id, before.sample.exec_id);
  EXPECT_EQ(after.sample.start_time_ns, before.sample.start_time_ns);
  EXPECT_EQ(after.sample.stop, TRIB_STOP_NO_PROCESS);
  EXPECT_EQ(after.sample.table, 0u);
  munmap(go, 4096);
}

// Runs a handler on its own stack, with our own restorer. The walk finds the restorer by its rule, or by its code if it
// has no rule.
void SpinInHandler() {
  static uint64_t stack[8192];
  stack_t alternate = {};
  alternate.ss_sp = stack;
  alternate.ss_size = sizeof(stack);
  sigaltstack(&alternate, nullptr);
  struct {
    const void* handler;
    unsigned long flags;
    const void* restorer;
    uint64_t mask;
  } action = {chain_handler, SA_SIGINFO | SA_ONSTACK | 0x04000000, chain_in_restorer, 0};
  syscall(SYS_rt_sigaction, SIGUSR1, &action, nullptr, sizeof(action.mask));
  RunChain(chain_spin);
}

TEST_F(UnwindLive, GoesThroughASignalHandlerOnItsOwnStack) {
  Open();
  Child child(SpinInHandler);
  Seen seen = Walked(child.pid());
  EXPECT_EQ(seen.user.size(), 6u);
  auto in_handler = [](const Seen& s) { return s.sample.table == kTable && s.user.size() > 6; };
  kill(child.pid().value, SIGUSR1);
  auto expected = ElementsAre(Address(chain_spin), Address(chain_in_handler), Address(chain_in_restorer),
                              Address(chain_spin) | TRIB_FRAME_INTERRUPTED, Address(chain_in_c), Address(chain_in_b),
                              Address(chain_in_d), Address(chain_in_a), Address(chain_in_root));
  seen = One(child.pid(), in_handler);
  EXPECT_THAT(seen.user, expected);
  EXPECT_EQ(seen.sample.stop, TRIB_STOP_END);
  // The same without its rule.
  std::vector<ChainRow> rows = ChainRows();
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].begin == chain_restorer) probes->unwind_maps().rules()[kFirstRule + i] = Rule(TRIB_RULE_NONE, 0);
  }
  ASSERT_TRUE(probes->unwind_maps().WaitGrace().ok());
  probes->DrainSamples([](const SampleRecord&) {});
  EXPECT_THAT(One(child.pid(), in_handler).user, expected);
}

TEST_F(UnwindLive, WithoutRowsFollowsFramePointers) {
  for (uint32_t flags : {0u, uint32_t{TRIB_MAPPING_FRAME_POINTERS}}) {
    Open();
    Child child([] { RunChain(chain_pointers); });
    Seen seen = Walked(child.pid(), flags);
    ASSERT_EQ(seen.user.size(), 3u);
    EXPECT_EQ(seen.user[1], Address(chain_in_pointers_2));
    EXPECT_EQ(seen.user[2], Address(chain_in_pointers));
    EXPECT_EQ(seen.sample.stop, TRIB_STOP_FRAME_POINTER_END);
    EXPECT_FALSE(seen.resume);
  }
}

TEST_F(UnwindLive, KnowsTheStartOfAProcessByItsStackPointer) {
  for (auto [below, stop] : {std::pair{0, TRIB_STOP_STACK_START},
                             {504, TRIB_STOP_STACK_START},
                             {512, TRIB_STOP_FRAME_POINTER_END},
                             {-8, TRIB_STOP_FRAME_POINTER_END}}) {
    Open();
    Child child([below = below] {
      std::istringstream fields(ReadFile("/proc/self/stat"));
      std::string field;
      for (int i = 1; i <= 28; ++i) fields >> field;  // startstack; our process name has no blanks
      chain_stack = std::stoull(field) - static_cast<uint64_t>(static_cast<int64_t>(below));
      RunChain(chain_start);
    });
    Seen seen = Walked(child.pid());
    EXPECT_EQ(seen.sample.stop, stop) << below;
    EXPECT_EQ(seen.user.size(), 1u);
  }
}

TEST_F(UnwindLive, ReportsWhyItStopped) {
  struct Case {
    const void* leaf;
    const char* function;  // the function with the replaced rule
    uint64_t rule;
    trib_stop stop;
    size_t frames;
  };
  Open();
  PublishRows();
  const uint64_t usual = Rule(TRIB_RULE_SP, 8);
  for (const Case& c : {
           Case{chain_spin, chain_spin, Rule(TRIB_RULE_BAD, 0), TRIB_STOP_BAD_RULE, 1},
           Case{chain_spin, chain_spin, Rule(TRIB_RULE_KIND_COUNT, 0), TRIB_STOP_BAD_RULE, 1},
           Case{chain_spin, chain_spin, Rule(TRIB_RULE_SP, -8), TRIB_STOP_NO_PROGRESS, 1},
           Case{chain_spin, chain_spin, Rule(TRIB_RULE_SP, TRIB_CFA_OFFSET_MAX), TRIB_STOP_UNREADABLE, 1},
           // chain_b uses rbp for other data; and only the first frame has all its registers
           Case{chain_spin, chain_c, Rule(TRIB_RULE_FP, 16), TRIB_STOP_NO_PROGRESS, 2},
           Case{chain_spin, chain_c, Rule(TRIB_RULE_NONE, 0), TRIB_STOP_NO_PROGRESS, 2},
           Case{chain_spin, chain_c, Rule(TRIB_RULE_REGISTER, 0), TRIB_STOP_BAD_RULE, 2},
           Case{chain_spin, chain_c, Rule(TRIB_RULE_RETURN_REGISTER, 8), TRIB_STOP_BAD_RULE, 2},
           Case{chain_deep, chain_spin, usual, TRIB_STOP_DEPTH, TRIB_USER_FRAMES_MAX},
       }) {
    std::vector<ChainRow> rows = ChainRows();
    for (size_t i = 0; i < rows.size(); ++i) {
      probes->unwind_maps().rules()[kFirstRule + i] = rows[i].begin == c.function ? c.rule : rows[i].rule;
    }
    probes->unwind_maps().CountWithdrawal();  // a CPU may still remember the rules of the previous case
    Child child([&] { RunChain(c.leaf); });
    PublishProcess(child.pid(), One(child.pid(), Spins).sample);
    Seen seen = One(child.pid(), [](const Seen& s) { return s.sample.table == kTable; });
    EXPECT_EQ(seen.sample.stop, c.stop) << std::hex << c.rule;
    EXPECT_EQ(seen.user.size(), c.frames) << std::hex << c.rule;
    EXPECT_FALSE(seen.resume);
    probes->unwind_maps().DropProcess(child.pid());
  }
}

TEST_F(UnwindLive, KeepsAndCountsSamplesWhenTheCopyRingIsFull) {
  Open({.copies_bytes = 4096});
  Child child([] { RunChain(chain_spin); });
  for (const Seen& seen : Samples(child.pid(), 5, Spins)) {
    EXPECT_EQ(seen.sample.stop, TRIB_STOP_NO_PROCESS);
    EXPECT_FALSE(seen.resume);
    EXPECT_EQ(seen.sample.stack_bytes, 0u);
  }
  probes->StopSampling();
  EXPECT_THAT(metrics.PrometheusText(), testing::HasSubstr("tributary_collector_stack_copies_total 0\n"));
  EXPECT_THAT(metrics.PrometheusText(),
              testing::Not(testing::HasSubstr("tributary_collector_stack_copies_refused_total 0\n")));
  EXPECT_EQ(probes->ReadAccounting().TotalLost(), 0u) << "nothing is lost by it";
}

TEST_F(UnwindLive, StoresTheSamplingPeriodInSamples) {
  Open();
  Child child([] {
    PinTo(OnlineCpus()[0]);
    RunChain(chain_spin);
  });
  EXPECT_EQ(One(child.pid(), Spins).sample.value, static_cast<uint64_t>(kNsPerSecond / 199));
  constexpr uint64_t kLong = 50'000'000;
  uint64_t run_ns = probes->ReadRunNs();
  ASSERT_TRUE(probes->SetPeriod(kLong).ok());
  probes->DrainSamples([](const SampleRecord&) {});
  std::vector<Seen> seen = Samples(child.pid(), 4, [](const Seen& s) { return Spins(s) && s.sample.value == kLong; });
  ASSERT_EQ(seen.size(), 4u);
  // A tick can be late, never early.
  EXPECT_GT(seen[3].sample.time_ns - seen[0].sample.time_ns, 2 * kLong);
  EXPECT_GT(probes->ReadRunNs(), run_ns);
}

}  // namespace
}  // namespace tributary
