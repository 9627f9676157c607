// Events of processes from the running kernel, as root.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "kernel-collector/probes/bpf_code.h"
#include "kernel-collector/probes/live_testing.h"
#include "kernel-collector/probes/perf_event.h"
#include "kernel-collector/probes/sideband.h"

namespace tributary {
namespace {

// Keeps every event as text, in the order of delivery.
class Recorder : public SidebandVisitor {
 public:
  struct Entry {
    char kind;  // m, f, c, x (exit), k and g (kernel code added, removed), d (cgroup), l
    MonotonicNs time;
    Pid pid, parent;
    Tid tid;
    std::string text;  // comm or path
    std::string build_id;
    bool exec = false;
    uint64_t lost = 0;
    uint64_t id = 0;
  };
  void OnMmap(const MmapEvent& e) override {
    entries.push_back({.kind = 'm',
                       .time = e.time,
                       .pid = e.pid,
                       .tid = e.tid,
                       .text = std::string(e.path),
                       .build_id = e.build_id.ToString()});
    EXPECT_TRUE(e.executable);
  }
  void OnFork(const ForkEvent& e) override {
    entries.push_back({.kind = 'f', .time = e.time, .pid = e.pid, .parent = e.parent, .tid = e.tid});
  }
  void OnComm(const CommEvent& e) override {
    entries.push_back(
        {.kind = 'c', .time = e.time, .pid = e.pid, .tid = e.tid, .text = std::string(e.comm), .exec = e.exec});
  }
  void OnExit(const ExitEvent& e) override {
    entries.push_back({.kind = 'x', .time = e.time, .pid = e.pid, .tid = e.tid});
  }
  void OnKernelCode(const KernelCodeEvent& e) override {
    entries.push_back({.kind = e.gone ? 'g' : 'k', .time = e.time, .text = std::string(e.name)});
  }
  void OnCgroup(const CgroupEvent& e) override {
    entries.push_back({.kind = 'd', .time = e.time, .text = std::string(e.path), .id = e.id});
  }
  void OnLost(const LostEvent& e) override { entries.push_back({.kind = 'l', .lost = e.events}); }

  std::vector<Entry> Of(Pid pid) const {
    std::vector<Entry> of;
    for (const Entry& entry : entries) {
      if (entry.pid == pid) of.push_back(entry);
    }
    return of;
  }
  bool Has(char kind, Pid pid) const {
    return std::ranges::any_of(entries, [&](const Entry& e) { return e.kind == kind && e.pid == pid; });
  }

  std::vector<Entry> entries;
};

TEST(SidebandLive, ReportsCgroupsBeforeTheirFirstProcess) {
  // The mount of the hierarchy with perf_event: the unified hierarchy, unless a v1 hierarchy has perf_event.
  std::string root;
  std::ifstream mounts("/proc/self/mounts");
  for (std::string device, where, type, mount_options, rest; mounts >> device >> where >> type >> mount_options;) {
    std::getline(mounts, rest);
    const bool is_v1 = type == "cgroup" && ("," + mount_options + ",").find(",perf_event,") != std::string::npos;
    if (is_v1 || (type == "cgroup2" && root.empty())) root = where;
  }
  ASSERT_FALSE(root.empty()) << "no cgroup hierarchy with perf_event";
  Metrics metrics;
  auto probes = OpenProbes({}, metrics);
  ASSERT_NE(probes, nullptr);
  const std::string name = "tributary-live-" + std::to_string(getpid());
  ASSERT_TRUE(std::filesystem::create_directories(root + "/" + name + "/inner"));
  struct stat inner{};
  ASSERT_EQ(stat((root + "/" + name + "/inner").c_str(), &inner), 0);
  std::filesystem::remove(root + "/" + name + "/inner");
  std::filesystem::remove(root + "/" + name);
  Recorder recorder;
  probes->DrainSideband(recorder);
  const auto found = std::ranges::find_if(
      recorder.entries, [&](const Recorder::Entry& e) { return e.kind == 'd' && e.id == inner.st_ino; });
  ASSERT_NE(found, recorder.entries.end());
  EXPECT_THAT(found->text, testing::EndsWith("/" + name + "/inner"));
}

TEST(SidebandLive, ReportsTheLifeOfAProcess) {
  Metrics metrics;
  auto probes = OpenProbes({}, metrics);
  ASSERT_NE(probes, nullptr);
  Child child([] { execl("/usr/bin/true", "true", nullptr); });
  Pid pid = child.pid();
  child.Wait();
  Tid thread_id;
  std::thread([&] { thread_id = Tid{gettid()}; }).join();
  Recorder recorder;
  probes->DrainSideband(recorder);

  std::vector<Recorder::Entry> life = recorder.Of(pid);
  ASSERT_GE(life.size(), 4u);
  EXPECT_EQ(life.front().kind, 'f');
  EXPECT_EQ(life.front().parent, Pid{getpid()});
  EXPECT_EQ(life.back().kind, 'x');
  EXPECT_EQ(life.back().tid.value, pid.value);
  EXPECT_TRUE(std::ranges::any_of(life, [](auto& e) { return e.kind == 'c' && e.exec && e.text == "true"; }));
  auto mapping = std::ranges::find_if(life, [](auto& e) { return e.kind == 'm' && e.text == "/usr/bin/true"; });
  ASSERT_NE(mapping, life.end());
  int major = 0, minor = 0;
  sscanf(ReadFile("/proc/sys/kernel/osrelease").c_str(), "%d.%d", &major, &minor);
  EXPECT_EQ(probes->has_build_ids(), std::pair(major, minor) >= std::pair(5, 12));
  if (probes->has_build_ids()) {
    EXPECT_EQ(mapping->build_id.size(), 40u);
    EXPECT_THAT(OutputOf("readelf --notes /usr/bin/true"), testing::HasSubstr("Build ID: " + mapping->build_id));
  } else {
    EXPECT_EQ(mapping->build_id, "unknown");
  }
  EXPECT_TRUE(std::ranges::any_of(recorder.entries, [&](auto& e) {
    return e.kind == 'f' && e.pid == Pid{getpid()} && e.parent == e.pid && e.tid == thread_id;
  })) << "a thread is a fork within its process";

  // In order of time over all CPUs.
  for (size_t i = 1; i < recorder.entries.size(); ++i) {
    EXPECT_LE(recorder.entries[i - 1].time, recorder.entries[i].time);
  }
}

TEST(SidebandLive, DeliversTheRecordsOfARemovedCpu) {
  std::vector<int> cpus = OnlineCpus();
  Metrics metrics;
  Sideband sideband(metrics);
  for (int cpu : cpus) ASSERT_TRUE(sideband.AddCpu(cpu).ok());
  EXPECT_EQ(sideband.cpus(), cpus);
  bool build_ids = sideband.has_build_ids();
  EXPECT_FALSE(sideband.AddCpu(8000).ok()) << "no such CPU";
  EXPECT_EQ(sideband.has_build_ids(), build_ids);
  Child child([] {});
  Pid pid = child.pid();
  child.Wait();
  for (int cpu : cpus) sideband.RemoveCpu(cpu);
  EXPECT_FALSE(sideband.has_cpu(cpus[0]));
  Child unseen([] {});
  Pid unseen_pid = unseen.pid();
  unseen.Wait();
  Recorder recorder;
  sideband.Drain(recorder, Clock::Real().Monotonic());
  EXPECT_TRUE(recorder.Has('f', pid));
  EXPECT_TRUE(recorder.Has('x', pid));
  recorder.entries.clear();
  sideband.Drain(recorder, Clock::Real().Monotonic());
  EXPECT_TRUE(recorder.entries.empty()) << "the rings are gone";
  // The CPU can come back.
  for (int cpu : cpus) ASSERT_TRUE(sideband.AddCpu(cpu).ok());
  sideband.NoteGap();
  Child again([] {});
  Pid again_pid = again.pid();
  again.Wait();
  sideband.Drain(recorder, Clock::Real().Monotonic());
  EXPECT_TRUE(recorder.Has('x', again_pid));
  EXPECT_FALSE(recorder.Has('f', unseen_pid)) << "nobody listened then";
  EXPECT_EQ(recorder.entries.front().kind, 'l') << "and that is reported";
}

TEST(SidebandLive, ClockOfAnEventStopsWithIt) {
  absl::StatusOr<Fd> event = OpenSidebandEvent(OnlineCpus().front(), /*build_id=*/false);
  ASSERT_TRUE(event.ok()) << event.status();
  int64_t begin = *ReadEnabledNs(*event);
  Until([&] { return *ReadEnabledNs(*event) > begin + 10 * kNsPerMs; });
  // Disabling the event stops its clock, as taking the CPU offline does.
  DisableEvent(*event);
  int64_t end = *ReadEnabledNs(*event);
  usleep(20'000);
  EXPECT_EQ(*ReadEnabledNs(*event), end);
}

TEST(SidebandLive, ReportsBpfPrograms) {
  Metrics metrics;
  auto sideband_probes = OpenProbes({}, metrics);
  ASSERT_NE(sideband_probes, nullptr);
  // Another collector's program; it exists as long as `other`.
  Metrics other_metrics;
  auto other = OpenProbes({}, other_metrics);
  ASSERT_NE(other, nullptr);
  Recorder recorder;
  auto reported = [&](char kind) {
    sideband_probes->DrainSideband(recorder);
    return std::ranges::any_of(recorder.entries, [&](const Recorder::Entry& e) {
      return e.kind == kind && e.text.starts_with("bpf_prog_") && e.text.ends_with("_trib_sample_cpu");
    });
  };
  EXPECT_TRUE(reported('k'));
  EXPECT_FALSE(reported('g'));
  other.reset();
  Until([&] { return reported('g'); });
}

TEST(BpfCodeLive, ReportsTheLengthOfPrograms) {
  Metrics metrics;
  auto probes = OpenProbes({}, metrics);
  ASSERT_NE(probes, nullptr);
  const std::vector<BpfCode> code = ListBpfCode();
  const std::string listed = OutputOf("grep '_trib_sample_cpu' /proc/kallsyms");
  ASSERT_NE(listed, "");
  const uint64_t begin = std::stoull(listed, nullptr, 16);
  auto it = std::ranges::find_if(code, [&](const BpfCode& each) { return each.begin == begin; });
  ASSERT_NE(it, code.end());
  EXPECT_GT(it->bytes, 100u);
  EXPECT_LT(it->bytes, 1u << 20);
}

TEST(SidebandLive, KeepsYoungerRecordsForTheNextDrain) {
  Metrics metrics;
  Sideband sideband(metrics);
  for (int cpu : OnlineCpus()) ASSERT_TRUE(sideband.AddCpu(cpu).ok());
  MonotonicNs before = Clock::Real().Monotonic();
  Child child([] {});
  Pid pid = child.pid();
  child.Wait();
  Recorder recorder;
  sideband.Drain(recorder, before);
  EXPECT_FALSE(recorder.Has('f', pid));
  sideband.Drain(recorder, Clock::Real().Monotonic());
  EXPECT_TRUE(recorder.Has('f', pid));
}

TEST(SidebandLive, ReportsTheSizeOfAnOverrun) {
  int cpu = OnlineCpus().front();
  Metrics metrics;
  Sideband sideband(metrics);
  ASSERT_TRUE(sideband.AddCpu(cpu).ok());
  constexpr int kRenames = 20'000;  // of 56 bytes each: far more than a ring holds
  auto rename = [&](int times) {
    Child child([&] {
      PinTo(cpu);
      for (int i = 0; i < times; ++i) prctl(PR_SET_NAME, "renamed");
    });
    child.Wait();
  };
  rename(kRenames);
  Recorder recorder;
  sideband.Drain(recorder, Clock::Real().Monotonic());
  // The kernel reports a loss before the next record that fits.
  rename(1);
  sideband.Drain(recorder, Clock::Real().Monotonic());
  uint64_t renamed = 0, lost = 0;
  for (auto& entry : recorder.entries) {
    if (entry.kind == 'c' && entry.text == "renamed") ++renamed;
    lost += entry.lost;
  }
  EXPECT_GT(renamed, 1'000u);
  EXPECT_GT(lost, 0u);
  EXPECT_GE(renamed + lost, uint64_t{kRenames} + 1);
  EXPECT_THAT(metrics.PrometheusText(),
              testing::HasSubstr("tributary_collector_sideband_lost_events_total " + std::to_string(lost) + "\n"));
}

}  // namespace
}  // namespace tributary
