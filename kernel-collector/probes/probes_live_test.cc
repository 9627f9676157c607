// Runs on the running kernel, as root: tests that crafted bytes cannot replace.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "embedded/sampler_bpf_object.h"
#include "kernel-collector/probes/cgroup_v1.h"
#include "kernel-collector/probes/live_testing.h"
#include "kernel-collector/probes/probes.h"
#include "kernel-collector/probes/sampler.h"

// All spinning happens in this section, whose bounds the linker provides. Sanitizers would call out of it.
#define SPIN_TEXT                                                                               \
  __attribute__((noinline, section("spin_text"), no_sanitize("thread"), no_sanitize("address"), \
                 no_sanitize("undefined")))
// Reading the frame's address makes a compiler keep a frame pointer, in a leaf function too.
#define KEEP_FRAME_POINTER() asm volatile("" ::"r"(__builtin_frame_address(0)))
extern "C" const char __start_spin_text[], __stop_spin_text[];

namespace tributary {
namespace {

SPIN_TEXT void SpinLeaf(volatile uint64_t* n) {
  KEEP_FRAME_POINTER();
  for (int i = 0; i < 1'000'000; ++i) *n = *n + 1;
}
// Spins forever. Sets `spinning`, if given, when the spinning begins.
SPIN_TEXT void SpinForEver(volatile bool* spinning = nullptr) {
  KEEP_FRAME_POINTER();
  volatile uint64_t n = 0;
  if (spinning != nullptr) *spinning = true;
  for (;;) SpinLeaf(&n);
}

bool InSpinText(uint64_t address) {
  return address >= reinterpret_cast<uint64_t>(__start_spin_text) &&
         address <= reinterpret_cast<uint64_t>(__stop_spin_text);
}

uint64_t Lost(const Accounting& accounting, LossReason reason) { return accounting.LostFor(reason).total(); }

// Mounts a private bpffs at the place where the collector pins, whatever this machine has there.
void MountPrivateBpffs() {
  static bool mounted = [] {
    if (unshare(CLONE_NEWNS) != 0 || mount(nullptr, "/sys", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
    return mount("bpf", "/sys/fs/bpf", "bpf", 0, nullptr) == 0;
  }();
  ASSERT_TRUE(mounted) << strerror(errno);
}

void CheckSpinningSample(const SampleRecord& record, Pid pid) {
  const trib_sample& sample = *record.sample;
  EXPECT_EQ(sample.tid, static_cast<uint32_t>(pid.value));
  EXPECT_EQ(sample.value, static_cast<uint64_t>(kNsPerSecond / 199));
  EXPECT_EQ(sample.flags & (TRIB_FLAG_KERNEL_THREAD | TRIB_FLAG_KERNEL_STACK_FAILED), 0u);
  EXPECT_STREQ(sample.comm, "spin \"<\x1b");
  EXPECT_NE(sample.cgroup_v2_id, 0u);
  ASSERT_GE(sample.user_frames, 1);
  // The kernel was always entered from the spinning function, whether the tick interrupted user code or the kernel. The
  // function makes no system call. It is in the kernel only if a tick comes before an earlier tick has returned.
  EXPECT_TRUE(InSpinText(record.user()[0] & ~TRIB_FRAME_INTERRUPTED)) << std::hex << record.user()[0];
  EXPECT_EQ((sample.flags & TRIB_FLAG_IN_KERNEL) != 0, sample.kernel_frames > 0);
  for (uint64_t frame : record.kernel()) EXPECT_LT(static_cast<int64_t>(frame), 0);
}

TEST(ProbesLive, SamplesASpinningProcessAndLosesNothing) {
  MountPrivateBpffs();
  // A sample taken on the way to the loop would be in libc.
  void* shared = mmap(nullptr, sizeof(bool), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  volatile bool* spinning = static_cast<bool*>(shared);
  Child child([spinning] {
    prctl(PR_SET_NAME, "spin \"<\x1b");
    SpinForEver(spinning);
  });
  Until([&] { return *spinning; });
  Metrics metrics;
  MonotonicNs begin = Clock::Real().Monotonic();
  auto probes = OpenProbes({.sample_rate_hz = 199}, metrics);
  ASSERT_NE(probes, nullptr);
  ASSERT_TRUE(probes->StartSampling().ok());

  uint64_t drained = 0, of_child = 0;
  std::map<std::pair<uint32_t, bool>, uint64_t> last_times;  // key: CPU and ring
  std::set<uint64_t> starts;
  auto visit = [&](const SampleRecord& record) {
    const trib_sample& sample = *record.sample;
    ++drained;
    EXPECT_NE(sample.tid, 0u) << "an idle CPU is no sample";
    EXPECT_GE(sample.time_ns, static_cast<uint64_t>(begin.value));
    EXPECT_LE(sample.time_ns, static_cast<uint64_t>(Clock::Real().Monotonic().value));
    uint64_t& last_time = last_times[{sample.cpu, record.resume != nullptr}];
    EXPECT_GE(sample.time_ns, last_time) << "oldest first per CPU";
    last_time = sample.time_ns;
    if (sample.pid != static_cast<uint32_t>(child.pid().value) || sample.comm[0] != 's') return;
    ++of_child;
    starts.insert(sample.start_time_ns);
    CheckSpinningSample(record, child.pid());
    EXPECT_EQ(sample.stop, TRIB_STOP_NO_PROCESS) << "nobody has told the walk of the process";
    EXPECT_EQ(sample.user_frames, 1u);
  };
  Until([&] {
    probes->DrainSamples(visit);
    return of_child >= 100;
  });
  probes->StopSampling();
  probes->DrainSamples(visit);
  EXPECT_EQ(probes->DrainSamples(visit), 0u);

  // Field 22 of /proc/pid/stat is the same start time in clock ticks.
  ASSERT_EQ(starts.size(), 1u);
  std::string stat = ReadFile("/proc/" + std::to_string(child.pid().value) + "/stat");
  std::istringstream fields(stat.substr(stat.rfind(')') + 2));
  std::string field;
  for (int i = 3; i <= 22; ++i) fields >> field;
  EXPECT_EQ(*starts.begin() / (kNsPerSecond / sysconf(_SC_CLK_TCK)), std::stoull(field));

  Accounting accounting = probes->ReadAccounting();
  EXPECT_EQ(accounting.captured.total(), drained);
  EXPECT_EQ(accounting.TotalLost().total(), 0u);
  EXPECT_EQ(probes->ReadAccounting(), accounting) << "nothing is captured after StopSampling";
  EXPECT_THAT(metrics.PrometheusText(), testing::HasSubstr("tributary_collector_captured_samples_total " +
                                                           std::to_string(accounting.captured.total()) + "\n"));

  // bpftool reads the same from outside.
  static_assert(TRIB_COUNTER_SLOT(TRIB_CONTEXT_TICK, TRIB_TYPE_CPU, TRIB_CAPTURED) == 8);
  std::string dump = OutputOf("bpftool --json map dump pinned /sys/fs/bpf/tributary/counters");
  std::smatch match;
  ASSERT_TRUE(std::regex_search(dump, match, std::regex(R"("formatted":\{"key":8,"values":\[(.*?)\]\})"))) << dump;
  uint64_t captured = 0;
  std::string values = match[1];
  std::regex value(R"("value":(\d+))");
  for (std::sregex_iterator it(values.begin(), values.end(), value), end; it != end; ++it) {
    captured += std::stoull((*it)[1]);
  }
  EXPECT_EQ(captured, accounting.captured.total());
  EXPECT_THAT(OutputOf("bpftool map show pinned /sys/fs/bpf/tributary/counters"),
              testing::HasSubstr("name trib_counters"));
  probes->pinned_session().Finish(/*undelivered=*/false);
  EXPECT_NE(access("/sys/fs/bpf/tributary/counters", F_OK), 0) << "nothing is left to tell";
  EXPECT_NE(access("/sys/fs/bpf/tributary/session", F_OK), 0);
}

TEST(ProbesLive, CgroupIdsAreFolderNumbers) {
  // The number of a cgroup is the inode of its folder. Hierarchies are found where they are mounted.
  std::map<std::string, std::string> path_of;  // "" = unified
  std::istringstream groups(ReadFile("/proc/self/cgroup"));
  for (std::string line; std::getline(groups, line);) {
    size_t first = line.find(':'), second = line.find(':', first + 1);
    path_of[line.substr(first + 1, second - first - 1)] = line.substr(second + 1);
  }
  trib_cgroup_v1 v1 = ChooseCgroupV1(ReadFile("/proc/self/cgroup"));
  std::string v1_name(CgroupV1Name(v1));
  uint64_t expected_v1 = 0, expected_v2 = 0;
  std::istringstream mounts(ReadFile("/proc/self/mounts"));
  for (std::string device, where, type, options, rest; mounts >> device >> where >> type >> options;) {
    std::getline(mounts, rest);
    struct stat status = {};
    bool has_v1 = ("," + options + ",").find("," + v1_name + ",") != std::string::npos;
    if (type == "cgroup2" && stat((where + path_of[""]).c_str(), &status) == 0) expected_v2 = status.st_ino;
    if (type == "cgroup" && v1 != TRIB_CGROUP_V1_NONE && has_v1) {
      for (auto& [controllers, path] : path_of) {
        bool here = ("," + controllers + ",").find("," + v1_name + ",") != std::string::npos;
        if (here && stat((where + path).c_str(), &status) == 0) expected_v1 = status.st_ino;
      }
    }
  }
  ASSERT_TRUE(expected_v1 != 0 || expected_v2 != 0) << "no cgroup hierarchy is mounted";

  Child child([] { SpinForEver(); });
  Metrics metrics;
  auto probes = OpenProbes({.sample_rate_hz = 199}, metrics);
  ASSERT_NE(probes, nullptr);
  ASSERT_TRUE(probes->StartSampling().ok());
  bool seen = false;
  Until([&] {
    probes->DrainSamples([&](const SampleRecord& record) {
      const trib_sample& sample = *record.sample;
      if (sample.pid != static_cast<uint32_t>(child.pid().value)) return;
      seen = true;
      if (expected_v2 != 0) {
        EXPECT_EQ(sample.cgroup_v2_id, expected_v2);
      }
      EXPECT_EQ(sample.cgroup_v1_id, expected_v1);
    });
    return seen;
  });
}

TEST(ProbesLive, CountsLossesOfAFullRing) {
  Child child([] { SpinForEver(); });
  Metrics metrics;
  auto probes = OpenProbes({.sample_rate_hz = 5'000, .ring_seconds = 0}, metrics);
  ASSERT_NE(probes, nullptr);
  ASSERT_TRUE(probes->StartSampling().ok());
  Until([&] { return Lost(probes->ReadAccounting(), LossReason::kRingFull) >= 500; });
  probes->StopSampling();
  uint64_t drained = probes->DrainSamples([](const SampleRecord&) {});
  Accounting accounting = probes->ReadAccounting();
  EXPECT_GT(drained, 0u);
  EXPECT_EQ(accounting.captured.total(), drained + Lost(accounting, LossReason::kRingFull));
  EXPECT_EQ(accounting.TotalLost(), Lost(accounting, LossReason::kRingFull));
}

// Returns the least distance between two CPUs' ticks as a share of the distance of evenly spread ticks; negative if
// there is no result.
double LeastPhaseGap() {
  Metrics metrics;
  // An idle CPU may have no ticks: a hypervisor may park it.
  std::vector<std::unique_ptr<Child>> busy;
  for (int cpu : OnlineCpus()) {
    busy.push_back(std::make_unique<Child>([cpu] {
      PinTo(cpu);
      SpinForEver();
    }));
  }
  // The test checks the start in time, not the delay of a busy machine.
  EXPECT_EQ(setpriority(PRIO_PROCESS, 0, -15), 0) << strerror(errno);
  auto probes = OpenProbes({.sample_rate_hz = 20, .idle = true}, metrics);
  if (probes == nullptr || !probes->StartSampling().ok()) return -1;
  size_t cpus = busy.size();
  constexpr int64_t kPeriodNs = kNsPerSecond / 20;
  std::map<uint32_t, std::vector<int64_t>> times;
  Until([&] {
    probes->DrainSamples(
        [&](const SampleRecord& record) { times[record.sample->cpu].push_back(record.sample->time_ns); });
    return times.size() == cpus && std::ranges::all_of(times, [](auto& t) { return t.second.size() >= 5; });
  });
  EXPECT_EQ(setpriority(PRIO_PROCESS, 0, 0), 0);
  EXPECT_EQ(probes->ReadAccounting().idle, 0u) << "idle ticks were to be samples";
  std::vector<int64_t> phases;
  int64_t origin = times.begin()->second.front();
  for (auto& [cpu, t] : times) {
    // An interrupt can only be late, so the least delayed tick is nearest to the grid.
    int64_t least = kPeriodNs;
    for (size_t i = 0; i < t.size(); ++i) {
      int64_t from_first = t[i] - t.front() + kPeriodNs / 2;
      least = std::min(least, from_first % kPeriodNs - kPeriodNs / 2);
    }
    phases.push_back(((t.front() + least - origin) % kPeriodNs + kPeriodNs) % kPeriodNs);
  }
  std::ranges::sort(phases);
  int64_t least_gap = kPeriodNs;
  for (size_t i = 0; i < phases.size(); ++i) {
    int64_t next = i + 1 < phases.size() ? phases[i + 1] : phases[0] + kPeriodNs;
    least_gap = std::min(least_gap, next - phases[i]);
  }
  return static_cast<double>(least_gap) * static_cast<double>(cpus) / static_cast<double>(kPeriodNs);
}

TEST(ProbesLive, SpreadsPhasesOverThePeriod) {
  // A busy machine may start one CPU late, or tick late, but not every time.
  double best = -1;
  for (int attempt = 0; attempt < 5 && best < 0.25; ++attempt) best = std::max(best, LeastPhaseGap());
  EXPECT_GT(best, 0.25) << "two CPUs tick together";
}

TEST(ProbesLive, ANewPeriodAppliesToEveryCpuAndSample) {
  Metrics metrics;
  std::vector<std::unique_ptr<Child>> busy;
  for (int cpu : OnlineCpus()) {
    busy.push_back(std::make_unique<Child>([cpu] {
      PinTo(cpu);
      SpinForEver();
    }));
  }
  auto probes = OpenProbes({.sample_rate_hz = 999, .idle = true}, metrics);
  ASSERT_NE(probes, nullptr);
  ASSERT_TRUE(probes->StartSampling().ok());
  for (int64_t period_ns : {int64_t{10'300'000}, kNsPerSecond / 999, int64_t{61'800'000}}) {
    ASSERT_TRUE(probes->SetPeriod(static_cast<uint64_t>(period_ns)).ok());
    probes->DrainSamples([](const SampleRecord&) {});  // may be of the old period
    std::map<uint32_t, std::vector<int64_t>> times;
    Until([&] {
      probes->DrainSamples([&](const SampleRecord& record) {
        EXPECT_EQ(record.sample->value, static_cast<uint64_t>(period_ns));
        times[record.sample->cpu].push_back(record.sample->time_ns);
      });
      return times.size() == busy.size() && std::ranges::all_of(times, [](auto& t) { return t.second.size() > 20; });
    });
    for (auto& [cpu, t] : times) {
      // Ticks may be late, or left out on a busy machine. The median gap shows the period.
      std::vector<int64_t> gaps;
      for (size_t i = 1; i < t.size(); ++i) gaps.push_back(t[i] - t[i - 1]);
      std::ranges::sort(gaps);
      EXPECT_NEAR(static_cast<double>(gaps[gaps.size() / 2]), static_cast<double>(period_ns), 0.05 * period_ns) << cpu;
    }
  }
}

TEST(ProbesLive, FollowingHotplugLeavesLiveCpusAlone) {
  Child child([] { SpinForEver(); });
  Metrics metrics;
  auto probes = OpenProbes({.sample_rate_hz = 997}, metrics);
  ASSERT_NE(probes, nullptr);
  probes->FollowHotplug();
  ASSERT_TRUE(probes->StartSampling().ok());
  uint64_t drained = 0;
  auto visit = [&](const SampleRecord&) { ++drained; };
  for (uint64_t target = 50; target <= 500; target += 50) {
    probes->FollowHotplug();
    Until([&] {
      probes->DrainSamples(visit);
      return drained >= target;
    });
  }
  probes->StopSampling();
  probes->FollowHotplug();
  probes->DrainSamples(visit);
  EXPECT_EQ(probes->ReadAccounting().captured.total(), drained);
}

TEST(SamplerLive, DamagedObjectIsOneClearLine) {
  std::string object(embedded::sampler_bpf_object());
  absl::Status status = Sampler::Load({.object = std::string_view(object).substr(0, 100)}).status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(Message(status), testing::StartsWith("load the sampling program: "));
  EXPECT_EQ(Message(status).find('\n'), std::string::npos);
}

TEST(ProbesLive, RefusesImpossibleRates) {
  Metrics metrics;
  EXPECT_TRUE(absl::IsInvalidArgument(Probes::Open({.sample_rate_hz = 0}, metrics).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Probes::Open({.sample_rate_hz = 1'000'000}, metrics).status()));
}

TEST(ProbesLive, YoungerPinSurvivesTheOlderCollector) {
  MountPrivateBpffs();
  Metrics metrics;
  auto older = OpenProbes({}, metrics);
  auto younger = OpenProbes({}, metrics);
  ASSERT_NE(younger, nullptr);
  older.reset();
  EXPECT_EQ(access("/sys/fs/bpf/tributary/counters", F_OK), 0);
  younger.reset();
  EXPECT_NE(access("/sys/fs/bpf/tributary/counters", F_OK), 0);
}

}  // namespace
}  // namespace tributary
