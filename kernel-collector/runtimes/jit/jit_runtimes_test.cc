#include "kernel-collector/runtimes/jit/jit_runtimes.h"

#include <gtest/gtest.h>

#include "kernel-collector/runtimes/jit/jit_dump_testing.h"
#include "kernel-collector/runtimes/jit/jit_testing.h"

namespace tributary {
namespace {

constexpr int kPid = JitProc::kPid, kChild = 4712;

class JitRuntimesTest : public testing::Test {
 protected:
  JitRuntimesTest() { Begin(kPid); }

  void Begin(int pid) {
    processes.OnComm({.time = clock.Monotonic(), .pid = Pid{pid}, .tid = Tid{pid}, .exec = true, .comm = "jit"});
  }
  // Returns the name of an address in a sample that was taken now.
  std::string Find(uint64_t address, int pid = kPid) {
    ProcessRun& run = *processes.Find(Pid{pid});
    if (run.generated_code == nullptr) run.generated_code = jit.Make(run);
    frames.clear();
    switch (run.generated_code->Find({.address = address, .time = clock.Monotonic()}, &frames)) {
      case Runtime::Found::kLater:
        return "later";
      case Runtime::Found::kUnknown:
        return "unknown";
      case Runtime::Found::kFrames:
        break;
    }
    EXPECT_EQ(frames.size(), 1u);
    EXPECT_EQ(frames[0].kind, FrameKind::kJit);
    EXPECT_EQ(frames[0].address, 0u);
    EXPECT_FALSE(frames[0].is_caller);
    return std::string(frames[0].name);
  }
  void Turn(int64_t advance_ns = 0) {
    clock.Advance(advance_ns);
    jit.Tick(processes);
    executor.RunAll();
    clock.Advance(1);
    jit.Tick(processes);
  }
  // Finds the name of a sample, which waits if it must.
  std::string FindAfter(uint64_t address, int pid = kPid) {
    std::string name = Find(address, pid);
    const MonotonicNs time = clock.Monotonic();
    for (int i = 0; i < 4 && name == "later"; ++i) {
      Turn(200 * kNsPerMs);
      frames.clear();
      const auto found = processes.Find(Pid{pid})->generated_code->Find({.address = address, .time = time}, &frames);
      name = found == Runtime::Found::kFrames    ? std::string(frames[0].name)
             : found == Runtime::Found::kUnknown ? "unknown"
                                                 : "later";
    }
    return name;
  }
  double Metric(std::string_view name) {
    const std::string text = metrics.PrometheusText();
    const size_t at = text.find("\n" + std::string(name) + " ");
    return at == std::string::npos ? -1 : std::stod(text.substr(at + name.size() + 2));
  }

  JitProc proc;
  FakeClock clock{MonotonicNs{100 * kNsPerSecond}};
  Metrics metrics;
  FakeExecutor executor;
  CodeFileTable files{metrics};
  ProcessTable processes{files, metrics};
  JitRuntimes jit{proc.proc(), executor, clock, metrics};
  std::vector<ResolvedFrame> frames;
};

TEST_F(JitRuntimesTest, TheFirstSampleWaitsForTheMap) {
  proc.WriteMap("1000 10 a\n2000 10 JS:*f /srv/app.js:12:3\n");
  EXPECT_EQ(FindAfter(0x1000), "a");
  EXPECT_EQ(frames[0].executable, nullptr);
  EXPECT_EQ(Find(0x2000), "f");
  ASSERT_NE(frames[0].executable, nullptr);
  EXPECT_EQ(frames[0].executable->path, "/srv/app.js");
  EXPECT_EQ(frames[0].position, 12u);
  CodeFile* const file = frames[0].executable;
  EXPECT_EQ(Find(0x2001), "f");
  EXPECT_EQ(frames[0].executable, file);
}

TEST_F(JitRuntimesTest, NewCodeIsFoundByTheNextReading) {
  proc.WriteMap("1000 10 a\n");
  EXPECT_EQ(FindAfter(0x1000), "a");
  proc.AppendMap("2000 10 b\n");
  EXPECT_EQ(FindAfter(0x2000), "b");
  EXPECT_EQ(FindAfter(0x3000), "unknown");
  EXPECT_EQ(Metric("tributary_collector_jit_unnamed_frames_total"), 1);
  // The next sample on this page does not wait, unless there are more names.
  EXPECT_EQ(Find(0x3008), "unknown");
  proc.AppendMap("3000 10 c\n");
  Turn(kNsPerSecond);
  EXPECT_EQ(Find(0x3008), "c");
}

TEST_F(JitRuntimesTest, NamesThatAreUsedAreRefreshed) {
  proc.WriteMap("1000 10 old\n");
  EXPECT_EQ(FindAfter(0x1000), "old");
  proc.AppendMap("1000 10 new\n");
  EXPECT_EQ(Find(0x1000), "old");
  clock.Advance(JitRuntimes::kRefreshNs + kNsPerSecond);
  EXPECT_EQ(Find(0x1000), "old");
  Turn();
  EXPECT_EQ(Find(0x1000), "new");
}

TEST_F(JitRuntimesTest, AProcessWithoutFilesIsSeldomRead) {
  for (int i = 0; i < 600; ++i) {
    FindAfter(0x1000 * static_cast<uint64_t>(i + 1));
    Turn(100 * kNsPerMs);
  }
  EXPECT_LE(Metric("tributary_collector_jit_readings_total"), 9);
  EXPECT_GE(Metric("tributary_collector_jit_readings_total"), 5);
  proc.WriteMap("1000 10 a\n");
  clock.Advance(JitRuntimes::kReadAgainMaxNs);
  Find(0x1000);
  Turn();
  EXPECT_EQ(Find(0x1000), "a");
}

TEST_F(JitRuntimesTest, AJitdumpIsFoundByItsMapping) {
  proc.AddFile("/work/jit-7.dump", JitDumpText().Load(1, 0x1000, 0x10, "dumped").bytes);
  MmapEvent event{.time = clock.Monotonic(), .pid = Pid{kPid}, .tid = Tid{kPid}, .start = 0x70000, .length = 0x1000};
  event.inode = 5;
  event.executable = true;
  event.path = "/work/jit-7.dump";
  processes.OnMmap(event);
  EXPECT_EQ(FindAfter(0x1000), "dumped");
}

TEST_F(JitRuntimesTest, AnEndedProcessIsNotWaitedFor) {
  proc.RemoveProcess(kPid);
  EXPECT_EQ(FindAfter(0x1000), "unknown");
  EXPECT_EQ(Find(0x2000), "unknown");
}

TEST_F(JitRuntimesTest, ANewProgramDoesNotGetTheNamesOfTheOldOne) {
  proc.WriteMap("1000 10 a\n");
  EXPECT_EQ(Find(0x1000), "later");
  const ProcessRunPtr old = processes.Find(Pid{kPid});
  jit.Tick(processes);
  executor.RunAll();  // reads, while the process calls exec
  Begin(kPid);
  Turn();
  EXPECT_EQ(old->generated_code->Find({.address = 0x1000, .time = clock.Monotonic()}, &frames),
            Runtime::Found::kUnknown);
  proc.WriteMap("1000 10 b\n");
  EXPECT_EQ(FindAfter(0x1000), "b");
}

TEST_F(JitRuntimesTest, AForkedProcessHasItsParentsNames) {
  proc.WriteMap("1000 10 a\n2000 10 b\n");
  clock.Advance(kNsPerSecond);
  proc.AddJitProcess(kChild, 8);
  processes.OnFork({clock.Monotonic(), Pid{kChild}, Pid{kPid}, Tid{kChild}, Tid{kPid}});
  clock.Advance(kNsPerSecond);
  FakeProc::Write(proc.files() + "/tmp/perf-8.map", "2000 10 own\n");
  // No sample of the parent had an address in this code.
  EXPECT_EQ(FindAfter(0x1000, kChild), "a");
  EXPECT_EQ(FindAfter(0x2000, kChild), "own");
  // Names that the parent adds later are of its own code.
  proc.AppendMap("3000 10 c\n");
  EXPECT_EQ(FindAfter(0x3000, kPid), "c");
  EXPECT_EQ(FindAfter(0x3000, kChild), "unknown");
}

TEST_F(JitRuntimesTest, TheMemoryForNamesIsFreedWithTheProcess) {
  proc.WriteMap("1000 10 a\n");
  EXPECT_EQ(FindAfter(0x1000), "a");
  EXPECT_GT(Metric("tributary_collector_jit_memory_bytes"), 0);
  processes.OnExit({clock.Monotonic(), Pid{kPid}, Tid{kPid}});
  clock.Advance(ProcessTable::kGraceNs + kNsPerSecond);
  processes.DropExited(clock.Monotonic());
  Turn();
  EXPECT_EQ(Metric("tributary_collector_jit_memory_bytes"), 0);
}

TEST_F(JitRuntimesTest, OnlyAParentInTheSameContainerIsRead) {
  proc.WriteMap("1000 10 a\n");
  const auto fork = [&](int pid) {
    proc.AddJitProcess(pid, pid);
    processes.OnFork({clock.Monotonic(), Pid{pid}, Pid{kPid}, Tid{pid}, Tid{kPid}});
    clock.Advance(kNsPerMs);
  };
  const auto set_container = [&](int pid, const std::string& id) {
    processes.Find(Pid{pid})->cgroup_known = true;
    processes.Find(Pid{pid})->container_id = id;
  };
  // Another container may have opted out of profiling. Its files must not be opened.
  const auto is_parent_read = [&] { return processes.Find(Pid{kPid})->generated_code != nullptr; };
  const auto path = [](char digit) {
    return fmt::format("0::/system.slice/docker-{}.scope\n", std::string(64, digit));
  };
  // /proc tells the containers.
  fork(5001);
  FakeProc::Write(fmt::format("{}/{}/cgroup", proc.proc(), kPid), path('a'));
  FakeProc::Write(proc.proc() + "/5001/cgroup", path('b'));
  EXPECT_EQ(FindAfter(0x1000, 5001), "unknown");
  EXPECT_FALSE(is_parent_read());
  fork(5002);
  ASSERT_TRUE(std::filesystem::remove(proc.proc() + "/5002/cgroup"));
  EXPECT_EQ(FindAfter(0x1000, 5002), "unknown");
  EXPECT_FALSE(is_parent_read());
  // Samples told them.
  fork(5003);
  FakeProc::Write(proc.proc() + "/5003/cgroup", path('a'));
  set_container(kPid, "a");
  set_container(5003, "b");
  EXPECT_EQ(FindAfter(0x1000, 5003), "unknown");
  EXPECT_FALSE(is_parent_read());
  fork(5004);
  set_container(5004, "a");
  EXPECT_EQ(FindAfter(0x1000, 5004), "a");
  EXPECT_TRUE(is_parent_read());
  fork(5005);
  FakeProc::Write(proc.proc() + "/5005/cgroup", path('a'));
  EXPECT_EQ(FindAfter(0x1000, 5005), "a");
}

TEST_F(JitRuntimesTest, NamesThatAForkedProcessKeepsCountAsMemory) {
  std::string text;
  for (int i = 1; i <= 1000; ++i) text += fmt::format("{:x} 10 function number {}\n", i * 0x10, i);
  proc.WriteMap(text);
  EXPECT_EQ(FindAfter(0x10), "function number 1");
  const double bytes = Metric("tributary_collector_jit_memory_bytes");
  proc.AddJitProcess(kChild, 8);
  processes.OnFork({clock.Monotonic(), Pid{kChild}, Pid{kPid}, Tid{kChild}, Tid{kPid}});
  Turn(kNsPerSecond);
  EXPECT_EQ(FindAfter(0x20, kChild), "function number 2");
  EXPECT_EQ(Metric("tributary_collector_jit_memory_bytes"), bytes);
  // The parent's file is written anew. The child still has the old names.
  proc.WriteMap("f0000 10 a\n");
  EXPECT_EQ(FindAfter(0xf0000), "a");
  EXPECT_EQ(FindAfter(0x20, kChild), "function number 2");
  EXPECT_GT(Metric("tributary_collector_jit_memory_bytes"), bytes);
}

TEST_F(JitRuntimesTest, ReadingsAtTheSameTimeShareTheLimitOfBytes) {
  for (int i = 0; i < static_cast<int>(JitRuntimes::kReadingsMax); ++i) {
    const int pid = 5000 + i;
    proc.AddJitProcess(pid, pid);
    const std::string map = fmt::format("{}/tmp/perf-{}.map", proc.files(), pid);
    FakeProc::Write(map, "1000 10 a\n");
    ASSERT_EQ(truncate(map.c_str(), 32 << 20), 0);  // sparse
    Begin(pid);
    Find(0x1000, pid);
  }
  jit.Tick(processes);
  EXPECT_GE(executor.waiting(), 8u);
  executor.RunAll();
  jit.Tick(processes);
  const double burst = Metric("tributary_collector_jit_read_bytes_total");
  EXPECT_GT(burst, 3.0 * JitRuntimes::kReadBytesBurst / 4);
  EXPECT_LE(burst, 1.0 * JitRuntimes::kReadBytesBurst);
  Turn(kNsPerSecond);
  EXPECT_LE(Metric("tributary_collector_jit_read_bytes_total"),
            1.0 * JitRuntimes::kReadBytesBurst + JitRuntimes::kReadBytesPerSecond);
  EXPECT_GT(Metric("tributary_collector_jit_read_bytes_total"), burst);
}

TEST_F(JitRuntimesTest, MemoryWithoutNamesHasTheNameOfTheMemory) {
  FakeProc::Write(fmt::format("{}/{}/maps", proc.proc(), kPid),
                  "1000-2000 r-xp 00000000 00:00 0 [anon:heap of code]\n2000-3000 r-xp 00000000 00:00 0\n"
                  "3000-4000 rw-p 00000000 00:00 0 [anon:data]\n");
  EXPECT_EQ(FindAfter(0x1000), "[anon:heap of code]");
  EXPECT_EQ(FindAfter(0x2000), "unknown");
  EXPECT_EQ(FindAfter(0x3000), "unknown");
}

TEST_F(JitRuntimesTest, ARefusedFileIsCountedOnce) {
  ASSERT_EQ(symlink("/etc/passwd", proc.map_path().c_str()), 0);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(FindAfter(0x1000 * static_cast<uint64_t>(i + 1)), "unknown");
  EXPECT_EQ(Metric("tributary_collector_jit_files_refused_total{file=\"perf_map\"}"), 1);
}

}  // namespace
}  // namespace tributary
