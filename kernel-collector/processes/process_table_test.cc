#include "kernel-collector/processes/process_table.h"

#include <gtest/gtest.h>

#include "kernel-collector/processes/fakes_testing.h"

namespace tributary {
namespace {

class ProcessTableTest : public testing::Test {
 protected:
  void Exec(int64_t time, int pid, std::string_view comm) {
    table.OnComm({.time = MonotonicNs{time}, .pid = Pid{pid}, .tid = Tid{pid}, .exec = true, .comm = comm});
  }
  void Rename(int pid, int tid, std::string_view comm) {
    table.OnComm({.time = MonotonicNs{1}, .pid = Pid{pid}, .tid = Tid{tid}, .comm = comm});
  }
  MmapEvent Map(int64_t time, int pid, uint64_t start, std::string_view path) {
    MmapEvent event{.time = MonotonicNs{time}, .pid = Pid{pid}, .start = start, .length = 0x1000};
    event.inode = std::hash<std::string_view>()(path) | 1;
    event.executable = true;
    event.path = path;
    return event;
  }
  std::string PathAt(int pid, uint64_t address) {
    auto run = table.Find(Pid{pid});
    const Mapping* mapping = run == nullptr ? nullptr : run->mappings.Find(address);
    if (mapping == nullptr) return "none";
    return mapping->executable == nullptr ? "anonymous" : mapping->executable->path;
  }

  ExecutableId IdAt(int pid, uint64_t address) {
    const Mapping* mapping = table.Find(Pid{pid})->mappings.Find(address);
    return mapping == nullptr || mapping->executable == nullptr ? ExecutableId() : mapping->executable->id;
  }

  FakeClock clock;
  Metrics metrics;
  CodeFileTable files{metrics};
  ProcessTable table{files, metrics};
};

TEST_F(ProcessTableTest, TheFirstFileAfterExecIsTheProgram) {
  Exec(10, 5, "prog");
  table.OnMmap(Map(11, 5, 0x1000, "/bin/prog"));
  table.OnMmap(Map(12, 5, 0x5000, "/lib/ld.so"));
  auto run = table.Find(Pid{5});
  EXPECT_EQ(run->executable_path, "/bin/prog");
  EXPECT_EQ(run->executable->path, "/bin/prog");
  EXPECT_TRUE(run->complete);
  Exec(20, 5, "next");
  EXPECT_EQ(table.Find(Pid{5})->executable_path, "");
  EXPECT_EQ(PathAt(5, 0x1000), "none");
  EXPECT_EQ(run->executable_path, "/bin/prog");  // holders of the run still see it
}

TEST_F(ProcessTableTest, DeletedFilesKeepTheirName) {
  Exec(10, 5, "prog");
  table.OnMmap(Map(11, 5, 0x1000, "/bin/prog (deleted)"));
  EXPECT_EQ(PathAt(5, 0x1000), "/bin/prog");
}

TEST_F(ProcessTableTest, IgnoresInvalidMappings) {
  MmapEvent data = Map(1, 5, 0x1000, "/data");
  data.executable = false;
  table.OnMmap(data);
  MmapEvent wraps = Map(1, 5, ~uint64_t{0} - 10, "/wraps");
  table.OnMmap(wraps);
  MmapEvent empty = Map(1, 5, 0x1000, "/empty");
  empty.length = 0;
  table.OnMmap(empty);
  EXPECT_EQ(table.size(), 0u);
}

TEST_F(ProcessTableTest, AnonymousAndVdsoMappings) {
  auto vdso = std::make_shared<CodeFile>();
  vdso->path = "[vdso]";
  files.SetVdso(vdso);
  Exec(1, 5, "prog");
  MmapEvent jit = Map(2, 5, 0x1000, "//anon");
  jit.inode = 0;
  table.OnMmap(jit);
  EXPECT_EQ(PathAt(5, 0x1000), "anonymous");
  MmapEvent event = Map(3, 5, 0x7fff00000000, "[vdso]");
  event.inode = 0;
  table.OnMmap(event);
  EXPECT_EQ(PathAt(5, 0x7fff00000000), "[vdso]");
  event.start = 0xf7000000;  // a 32-bit process has another vdso
  table.OnMmap(event);
  EXPECT_EQ(PathAt(5, 0xf7000000), "anonymous");
  EXPECT_EQ(table.Find(Pid{5})->executable, nullptr);
}

TEST_F(ProcessTableTest, NamesFollowTheLeaderUntilSampled) {
  Exec(1, 5, "one");
  Rename(5, 6, "thread");
  EXPECT_EQ(table.Find(Pid{5})->comm, "one");
  Rename(5, 5, "two");
  EXPECT_EQ(table.Find(Pid{5})->comm, "two");
  table.Find(Pid{5})->sampled = true;
  Rename(5, 5, "three");
  EXPECT_EQ(table.Find(Pid{5})->comm, "two");
}

TEST_F(ProcessTableTest, ASampleProvidesTheStartTime) {
  Exec(1, 5, "prog");
  auto run = table.ForSample(Pid{5}, 12'345'678'901, MonotonicNs{2});
  EXPECT_EQ(run, table.Find(Pid{5}));
  EXPECT_EQ(run->start_time_ns, 12'345'678'901);
  EXPECT_EQ(table.ForSample(Pid{5}, 12'345'678'901, MonotonicNs{3}), run);
  auto next = table.ForSample(Pid{5}, 13'000'000'000, MonotonicNs{4});
  EXPECT_NE(next, run);
  EXPECT_FALSE(next->complete);
  EXPECT_EQ(table.Find(Pid{5}), next);
  // A late sample of the first owner must not bring it back.
  EXPECT_NE(table.ForSample(Pid{5}, 12'345'678'901, MonotonicNs{5}), next);
  EXPECT_EQ(table.Find(Pid{5}), next);
}

ProcSnapshot Snapshot(int pid, int64_t read_at, uint64_t ticks) {
  ProcSnapshot snapshot;
  snapshot.pid = Pid{pid};
  snapshot.read_at = MonotonicNs{read_at};
  snapshot.stat = {"scanned", Pid{3}, ticks, false};
  snapshot.executable_path = "/bin/s";
  snapshot.code = {{.start = 0x1000, .end = 0x2000, .inode = 77, .executable = true, .path = "/bin/s"}};
  return snapshot;
}

TEST_F(ProcessTableTest, AScanFillsUnknownFields) {
  table.ForSample(Pid{5}, 1'234'567'890, MonotonicNs{2});
  EXPECT_TRUE(table.Find(Pid{5})->NeedsScan());
  table.Merge(Snapshot(5, 10, 123));
  EXPECT_FALSE(table.Find(Pid{5})->NeedsScan());
  EXPECT_EQ(PathAt(5, 0x1000), "/bin/s");
  EXPECT_EQ(table.Find(Pid{5})->executable->path, "/bin/s");
  EXPECT_EQ(table.Find(Pid{5})->parent, Pid{3});
}

TEST_F(ProcessTableTest, AScanKeepsFilesIdentifiedByEvents) {
  Exec(1, 5, "s");
  MmapEvent event = Map(2, 5, 0x1000, "/bin/s");
  event.build_id = BuildId("s");
  table.OnMmap(event);
  ProcSnapshot same = Snapshot(5, 10, 123);
  same.code[0].path = "/bin/s (deleted)";
  table.Merge(same);
  EXPECT_EQ(IdAt(5, 0x1000), BuildId("s"));
  EXPECT_EQ(table.Find(Pid{5})->executable->id, BuildId("s"));
  // A part that mprotect has cut off still belongs to the same file.
  ProcSnapshot part = Snapshot(5, 11, 123);
  part.code[0] = {
      .start = 0x1800, .end = 0x2000, .file_offset = 0x800, .inode = 77, .executable = true, .path = "/bin/s"};
  table.Merge(part);
  EXPECT_EQ(IdAt(5, 0x1800), BuildId("s"));
  EXPECT_EQ(PathAt(5, 0x1000), "none");
  // Another place in the file, or another file: mremap moved it there, and mremap causes no event.
  part.code[0].file_offset = 0;
  table.Merge(part);
  EXPECT_FALSE(IdAt(5, 0x1800).known());
}

TEST_F(ProcessTableTest, AScanTakesPrecedenceAfterALoss) {
  Exec(1, 5, "s");
  MmapEvent event = Map(2, 5, 0x1000, "/bin/s");
  event.build_id = BuildId("s");
  table.OnMmap(event);
  table.OnLost({1});
  table.Merge(Snapshot(5, 10, 123));
  EXPECT_FALSE(IdAt(5, 0x1000).known());
  EXPECT_EQ(PathAt(5, 0x1000), "/bin/s");
}

TEST_F(ProcessTableTest, IgnoresAScanOfAnotherProcess) {
  table.ForSample(Pid{5}, 1'234'567'890, MonotonicNs{2});
  table.Merge(Snapshot(5, 10, 124));
  EXPECT_TRUE(table.Find(Pid{5})->NeedsScan());
  Exec(20, 6, "prog");
  table.Merge(Snapshot(6, 10, 1));  // read before the exec
  EXPECT_EQ(PathAt(6, 0x1000), "none");
}

TEST_F(ProcessTableTest, DoesNotApplyEventsOlderThanAScan) {
  table.Merge(Snapshot(5, 10, 1));
  table.OnMmap(Map(9, 5, 0x1000, "/old"));
  Exec(9, 5, "old");
  EXPECT_EQ(PathAt(5, 0x1000), "/bin/s");
  EXPECT_EQ(table.Find(Pid{5})->exec_sequence, 0u);
  table.OnMmap(Map(11, 5, 0x1000, "/new"));
  EXPECT_EQ(PathAt(5, 0x1000), "/new");
}

// The sideband counts them, so each counts once.
TEST_F(ProcessTableTest, DoesNotCountLostEvents) {
  table.OnLost({3});
  EXPECT_EQ(metrics.PrometheusText().find("lost_events"), std::string::npos);
}

TEST_F(ProcessTableTest, LostEventsMakeEveryTableStale) {
  Exec(1, 5, "prog");
  table.OnLost({3});
  EXPECT_TRUE(table.Find(Pid{5})->NeedsScan());
  EXPECT_TRUE(table.TakeLost());
  EXPECT_FALSE(table.TakeLost());
  table.OnFork({MonotonicNs{2}, Pid{6}, Pid{5}, Tid{6}, Tid{5}});
  EXPECT_TRUE(table.Find(Pid{6})->NeedsScan());
}

TEST_F(ProcessTableTest, AnExitedProcessStaysForAWhile) {
  Exec(1, 5, "prog");
  table.OnExit({MonotonicNs{100}, Pid{5}, Tid{7}});  // a thread
  table.DropExited(MonotonicNs{100 + 2 * ProcessTable::kGraceNs});
  EXPECT_NE(table.Find(Pid{5}), nullptr);
  table.OnExit({MonotonicNs{200}, Pid{5}, Tid{5}});
  table.DropExited(MonotonicNs{200 + ProcessTable::kGraceNs});
  EXPECT_NE(table.Find(Pid{5}), nullptr);
  table.DropExited(MonotonicNs{201 + ProcessTable::kGraceNs});
  EXPECT_EQ(table.Find(Pid{5}), nullptr);
}

TEST_F(ProcessTableTest, ReadsAnUnmappedInodeWithoutABuildIdAgain) {
  FileKey key{.device_major = 1, .inode = 9};
  CodeFilePtr first = files.Intern(key, {Pid{1}, 0, 1, "/x"});
  EXPECT_EQ(files.Intern(key, {Pid{2}, 0, 1, "/x"}), first);
  first->state = CodeFile::State::kReady;
  first.reset();
  EXPECT_EQ(files.Intern(key, {Pid{3}, 0, 1, "/x"})->state, CodeFile::State::kUnread);
  // A build-id identifies the file, regardless of its mappings.
  FileKey named{.build_id = BuildId("b")};
  files.Intern(named, {Pid{1}, 0, 1, "/y"})->state = CodeFile::State::kReady;
  EXPECT_EQ(files.Intern(named, {Pid{2}, 0, 1, "/y"})->state, CodeFile::State::kReady);
  EXPECT_EQ(files.LocationsOf(BuildId("b")).size(), 2u);
}

TEST_F(ProcessTableTest, FilesAreCapped) {
  std::vector<CodeFilePtr> held;
  for (uint64_t i = 1; i <= CodeFileTable::kFilesMax; ++i) {
    held.push_back(files.Intern(FileKey{.inode = i}, {Pid{1}, 0, 1, "/x"}));
    ASSERT_NE(held.back(), nullptr);
  }
  EXPECT_EQ(files.Intern(FileKey{.inode = 1'000'000}, {Pid{1}, 0, 1, "/x"}), nullptr);
  held.pop_back();  // no longer used, so it can be evicted
  EXPECT_NE(files.Intern(FileKey{.inode = 1'000'000}, {Pid{1}, 0, 1, "/x"}), nullptr);
}

TEST_F(ProcessTableTest, MemoryWithCodeHasAName) {
  Exec(10, 5, "prog");
  const auto name_of = [&](std::string_view path, uint64_t inode) {
    MmapEvent event = Map(11, 5, 0x1000, path);
    event.inode = inode;
    table.OnMmap(event);
    const std::string* memory = table.Find(Pid{5})->mappings.Find(0x1000)->memory;
    return memory == nullptr ? "" : *memory;
  };
  EXPECT_EQ(name_of("//anon", 0), "[anonymous code]");
  EXPECT_EQ(name_of("/dev/zero (deleted)", 7), "[anonymous code]");
  EXPECT_EQ(name_of("[anon:v8]", 0), "[anon:v8]");
  EXPECT_EQ(name_of("[heap]", 0), "[heap]");
  EXPECT_EQ(name_of("/memfd:doublemapper (deleted)", 8), "[memfd:doublemapper]");
  EXPECT_EQ(name_of("/bin/prog", 9), "");
  EXPECT_EQ(name_of("[vsyscall]", 0), "");
  for (size_t i = 0; i < 2 * ProcessTable::kMemoryNamesMax; ++i) name_of("/memfd:" + std::to_string(i), 8);
  EXPECT_EQ(name_of("/memfd:another", 8), "[anonymous code]");
  EXPECT_EQ(name_of("/memfd:" + std::string(200, 'x'), 8), "[anonymous code]");
  EXPECT_EQ(name_of("/memfd:doublemapper", 8), "[memfd:doublemapper]");
}

}  // namespace
}  // namespace tributary
