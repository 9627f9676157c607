// Programs of several contexts on the running kernel, as root. The sampling tick interrupts each of the other programs
// while that program builds its sample (bpf/test_nested.bpf.h). Neither disturbs the other.

#include <bpf/bpf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "bpf/include/test_nested.h"
#include "embedded/sampler_nested_bpf_object.h"
#include "kernel-collector/probes/live_testing.h"
#include "kernel-collector/probes/perf_event.h"
#include "kernel-collector/probes/sampler.h"

namespace tributary {
namespace {

constexpr uint64_t kPeriodNs = kNsPerSecond / 1999;
constexpr size_t kWanted = 1000, kNestedWanted = 25;

struct Context {
  trib_context number;
  std::string_view program;
};
#define TRIB_CONTEXT_ROW(NAME, name) {TRIB_CONTEXT_##NAME, "trib_nested_" #NAME},
constexpr Context kContexts[] = {TRIB_CONTEXTS(TRIB_CONTEXT_ROW)};
#undef TRIB_CONTEXT_ROW

// Returns the newest object of that name, which this process has just made. The kernel cuts names to 15 characters.
template <typename Info>
Fd Newest(std::string_view name, int (*next)(uint32_t, uint32_t*), int (*open)(uint32_t)) {
  Fd found;
  for (uint32_t id = 0; next(id, &id) == 0;) {
    Fd object(open(id));
    Info info = {};
    uint32_t bytes = sizeof(info);
    if (!object.valid() || bpf_obj_get_info_by_fd(object.get(), &info, &bytes) != 0) continue;
    if (info.name == name.substr(0, BPF_OBJ_NAME_LEN - 1)) found = std::move(object);
  }
  return found;
}

// Returns where the kernel has put a program's own code: [begin, end).
std::pair<uint64_t, uint64_t> CodeOf(const Fd& program) {
  std::array<uint64_t, 64> begins{};
  std::array<uint32_t, 64> sizes{};
  bpf_prog_info info = {};
  info.nr_jited_ksyms = info.nr_jited_func_lens = begins.size();
  info.jited_ksyms = reinterpret_cast<uint64_t>(begins.data());
  info.jited_func_lens = reinterpret_cast<uint64_t>(sizes.data());
  uint32_t bytes = sizeof(info);
  EXPECT_EQ(bpf_obj_get_info_by_fd(program.get(), &info, &bytes), 0);
  return {begins[0], begins[0] + sizes[0]};
}

class Nesting : public testing::TestWithParam<Context> {
 protected:
  void SetUp() override {
    auto loaded = Sampler::Load({.period_ns = kPeriodNs,
                                 .ring_bytes = 16 << 20,
                                 .copies_bytes = 1 << 20,
                                 .contexts = TRIB_CONTEXT_COUNT,
                                 .object = embedded::sampler_nested_bpf_object()});
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    sampler = *std::move(loaded);
    program = Newest<bpf_prog_info>(GetParam().program, bpf_prog_get_next_id, bpf_prog_get_fd_by_id);
    ASSERT_TRUE(program.valid());
  }

  void Ask() {
    Fd map = Newest<bpf_map_info>("trib_test_nested", bpf_map_get_next_id, bpf_map_get_fd_by_id);
    ASSERT_TRUE(map.valid());
    const trib_nested_request request{.pid = static_cast<uint32_t>(pid.value)};
    const uint32_t key = 0;
    ASSERT_EQ(bpf_map_update_elem(map.get(), &key, &request, BPF_ANY), 0);
  }

  void StartTicks() {
    for (int cpu : OnlineCpus()) {
      auto event = OpenSamplingEvent(cpu, kPeriodNs, sampler->program_fd());
      ASSERT_TRUE(event.ok()) << event.status();
      ASSERT_TRUE(EnableEvent(*event).ok());
      ticks.push_back(*std::move(event));
    }
  }

  void OnSample(const SampleRecord& record) {
    const trib_sample& sample = *record.sample;
    if (record.type() == SampleType::kCpu) {
      ++ticks_seen;
      EXPECT_EQ(sample.value, kPeriodNs);
      EXPECT_TRUE(record.tail.empty());
      const auto [begin, end] = code;
      nested += std::any_of(record.kernel().begin(), record.kernel().end(),
                            [begin, end](uint64_t address) { return begin < address && address < end; });
      return;
    }
    ++seen;
    EXPECT_EQ(record.type(), kType);
    EXPECT_EQ(sample.value, sample.time_ns);
    EXPECT_EQ(sample.pid, static_cast<uint32_t>(pid.value));
    EXPECT_EQ(record.TailWord(TRIB_NESTED_FIRST_BIT), sample.time_ns ^ GetParam().number);
    EXPECT_EQ(record.TailWord(TRIB_NESTED_SECOND_BIT), ~sample.time_ns);
    EXPECT_EQ(record.TailWord(TRIB_NESTED_FIRST_BIT + 1), std::nullopt);
    EXPECT_FALSE(record.kernel().empty());
    ASSERT_FALSE(record.user().empty());
    calls.insert(record.user()[0]);
  }

  void Drain() {
    sampler->Drain([this](const SampleRecord& record) { OnSample(record); });
  }

  static constexpr auto kType = static_cast<SampleType>(TRIB_TYPE_END - 1);
  std::unique_ptr<Sampler> sampler;
  Fd program;
  std::vector<Fd> ticks;
  Pid pid;
  std::pair<uint64_t, uint64_t> code;
  size_t seen = 0, ticks_seen = 0, nested = 0;
  std::set<uint64_t> calls;
};

TEST_P(Nesting, TickLeavesOtherContextsAlone) {
  int ready[2];
  ASSERT_EQ(pipe2(ready, O_CLOEXEC), 0);
  const Fd reader(ready[0]), writer(ready[1]);
  // The child's last system call of another kind has begun when the byte arrives.
  Child child([&writer] {
    const char byte = 0;
    if (write(writer.get(), &byte, 1) != 1) _exit(1);
    while (syscall(SYS_getppid) > 0) {
    }
  });
  char byte = 0;
  ASSERT_EQ(read(reader.get(), &byte, 1), 1);
  pid = child.pid();
  code = CodeOf(program);
  Ask();
  Fd link(bpf_raw_tracepoint_open("sys_enter", program.get()));
  ASSERT_TRUE(link.valid());
  StartTicks();
  Until([this] {
    Drain();
    return seen >= kWanted && nested >= kNestedWanted;
  });
  for (const Fd& event : ticks) DisableEvent(event);
  link.Reset();
  // A program that began on another CPU before it was detached may submit its sample later.
  Accounting accounting;
  Until([&] {
    Drain();
    accounting = sampler->counters()->ReadAccounting();
    return accounting.captured.total() == seen + ticks_seen + accounting.TotalLost().total();
  });

  EXPECT_EQ(calls.size(), 1u) << "the child makes one call, from one place";
  const SampleCounts lost = accounting.TotalLost();
  EXPECT_EQ(accounting.captured.Of(kType), seen + lost.Of(kType));
  EXPECT_EQ(accounting.captured.cpu(), ticks_seen + lost.cpu());
  EXPECT_TRUE(sampler->bad_records().empty());
}

INSTANTIATE_TEST_SUITE_P(Contexts, Nesting, testing::ValuesIn(std::begin(kContexts) + 1, std::end(kContexts)),
                         [](const auto& of) { return std::string(of.param.program.substr(12)); });

}  // namespace
}  // namespace tributary
