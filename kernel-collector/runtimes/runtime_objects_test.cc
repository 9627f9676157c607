#include "kernel-collector/runtimes/runtime_objects.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "kernel-collector/processes/fakes_testing.h"
#include "kernel-collector/processes/runtime_binary_testing.h"

namespace tributary {
namespace {

class RuntimeObjectsTest : public testing::Test {
 protected:
  RuntimeObjectsTest() {
    file->id = BuildId("python");
    file->segments = {{.file_offset = 0x1000, .file_size = 0x1000, .address = 0x401000, .memory_size = 0x1000}};
    file->runtime = runtime;
  }
  ProcessRunPtr MakeRun(int pid) {
    auto run = std::make_shared<ProcessRun>();
    run->pid = Pid{pid};
    run->mappings.Insert(Mapping{0x7000001000, 0x7000002000, 0x1000, MonotonicNs{}, file});
    return run;
  }
  ProcessRunPtr Fork(const ProcessRunPtr& parent, int pid) {
    ProcessRunPtr child = MakeRun(pid);
    child->copied_from = parent;
    if (parent->code_objects != nullptr) child->code_objects = parent->code_objects->Fork();
    return child;
  }
  // Returns the name; "refused" if too many other reads are waiting, "later" if it must be read first, "" if there is
  // none.
  std::string Find(const ProcessRunPtr& run, uint64_t address, uint32_t check = 1, MayRead may_read = MayRead::kYes) {
    const RuntimeObjects::Found found = objects.Find(*run, runtime, {address, check}, clock.Monotonic(), may_read);
    if (found.is_later) return "later";
    if (found.is_refused) return "refused";
    return found.function == nullptr ? "" : found.function->function->name;
  }
  size_t Run() {
    objects.Tick();
    return executor.RunAll();
  }
  uint64_t CounterValue(const std::string& name, Metrics::Labels labels = {}) {
    return metrics.AddCounter(name, "", std::move(labels)).value();
  }

  FakeExecutor executor;
  FakeClock clock;
  Metrics metrics;
  FakeMemories memories;
  std::shared_ptr<FakeRuntimeBinary> runtime = std::make_shared<FakeRuntimeBinary>(&memories);
  CodeFilePtr file = std::make_shared<CodeFile>();
  std::vector<std::string> groups;  // of the opened memories
  RuntimeObjects objects{{.open_memory =
                              [this](Pid pid, const std::string& group) {
                                groups.push_back(group);
                                return memories.Open(pid.value);
                              }},
                         executor,
                         clock,
                         metrics};
};

TEST_F(RuntimeObjectsTest, ReadsAnObjectOnce) {
  memories.processes[7] = {{0x10, {1, "work"}}, {0x20, {1, "main"}}};
  const ProcessRunPtr run = MakeRun(7);
  EXPECT_EQ(Find(run, 0x10), "later");
  EXPECT_EQ(Find(run, 0x20), "later");
  EXPECT_EQ(Find(run, 0x10), "later");
  EXPECT_EQ(Run(), 1u);  // one job for the process
  EXPECT_EQ(Find(run, 0x10), "work");
  EXPECT_EQ(Find(run, 0x20), "main");
  EXPECT_EQ(Run(), 0u);
  EXPECT_EQ(memories.opened.size(), 1u);
  EXPECT_EQ(runtime->last_bias, 0x7000001000u - 0x401000u);
  EXPECT_EQ(CounterValue("tributary_collector_code_objects_read_total", {{"runtime", "python"}}), 2u);
}

TEST_F(RuntimeObjectsTest, AChangedObjectHasNoName) {
  memories.processes[7] = {{0x10, {2, "other"}}, {0x20, {1, ""}}};
  const ProcessRunPtr run = MakeRun(7);
  Find(run, 0x10);
  Find(run, 0x20);
  Run();
  EXPECT_EQ(Find(run, 0x10), "");
  EXPECT_EQ(Find(run, 0x20), "");
  EXPECT_EQ(Run(), 0u);
  const std::string unknown = "tributary_collector_code_objects_unknown_total";
  EXPECT_EQ(CounterValue(unknown, {{"runtime", "python"}, {"reason", "changed"}}), 1u);
  EXPECT_EQ(CounterValue(unknown, {{"runtime", "python"}, {"reason", "malformed"}}), 1u);
  // The object comes back.
  memories.processes[7][0x10] = {1, "work"};
  clock.Advance(CodeObjectTable::kRetryNs);
  EXPECT_EQ(Find(run, 0x10), "later");
  Run();
  EXPECT_EQ(Find(run, 0x10), "work");
}

TEST_F(RuntimeObjectsTest, AnEndedForkIsReadFromItsParent) {
  memories.processes[7] = {{0x10, {1, "work"}}};
  const ProcessRunPtr parent = MakeRun(7);
  const ProcessRunPtr child = Fork(Fork(parent, 8), 9);
  EXPECT_EQ(Find(child, 0x10), "later");
  Run();
  EXPECT_EQ(Find(child, 0x10), "");  // its own parent has ended, and nothing else leads to process 7
  const ProcessRunPtr direct = Fork(parent, 10);
  EXPECT_EQ(Find(direct, 0x10), "later");
  Run();
  EXPECT_EQ(Find(direct, 0x10), "work");
  EXPECT_EQ(Find(parent, 0x10), "work");
  EXPECT_EQ(Find(Fork(parent, 11), 0x10), "work");
  // The parent has another object there.
  memories.processes[7][0x30] = {5, "other"};
  Find(direct, 0x30);
  Run();
  EXPECT_EQ(Find(direct, 0x30), "");
  // The parent is in another container, which may have opted out.
  const ProcessRunPtr contained = Fork(parent, 12);
  contained->container_id = "c";
  memories.processes[7][0x40] = {1, "secret"};
  Find(contained, 0x40);
  Run();
  EXPECT_EQ(Find(contained, 0x40), "");
}

// The processes of a group may occupy one thread together. So a process must not be able to choose its group.
TEST_F(RuntimeObjectsTest, TheContainerIsTheGroup) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "unknown"},
      {"/", ""},
      {"/init.scope", ""},
      {"/system.slice/cron.service", ""},
  };
  int pid = 0;
  std::vector<ProcessRunPtr> runs;
  for (const auto& [path, group] : cases) {
    runs.push_back(MakeRun(++pid));
    runs.back()->cgroup_path = path;
    Find(runs.back(), 0x10);
    Run();
    ASSERT_FALSE(groups.empty());
    EXPECT_EQ(groups.back(), group) << path;
    runs.push_back(MakeRun(++pid));
    runs.back()->cgroup_path = path;
    runs.back()->container_id = "c";
    Find(runs.back(), 0x10);
    Run();
    EXPECT_EQ(groups.back(), "c") << path;
  }
}

TEST_F(RuntimeObjectsTest, AnAncestorThatHasEndedIsNotRead) {
  memories.processes[7] = {{0x10, {1, "of another process with this pid"}}};
  const ProcessRunPtr parent = MakeRun(7);
  parent->exited = true;
  const ProcessRunPtr child = Fork(parent, 8);
  Find(child, 0x10);
  Run();
  EXPECT_EQ(Find(child, 0x10), "");
  EXPECT_EQ(memories.opened, std::vector<int32_t>{8});
}

TEST_F(RuntimeObjectsTest, ReadsNothingWithoutPermission) {
  memories.processes[7] = {{0x10, {1, "work"}}};
  const ProcessRunPtr run = MakeRun(7);
  EXPECT_EQ(Find(run, 0x10, 1, MayRead::kNotYet), "later");
  EXPECT_EQ(Run(), 0u);
  EXPECT_EQ(Find(run, 0x10, 1, MayRead::kNo), "");
  EXPECT_EQ(run->code_objects, nullptr);
  RuntimeObjects off({}, executor, clock, metrics);
  const RuntimeObjects::Found found = off.Find(*run, runtime, {0x10, 1}, clock.Monotonic(), MayRead::kYes);
  EXPECT_FALSE(found.is_later);
  EXPECT_EQ(found.function, nullptr);
}

TEST_F(RuntimeObjectsTest, AnUnmappedRuntimeIsNotRead) {
  const ProcessRunPtr run = MakeRun(7);
  run->mappings.Clear();
  EXPECT_EQ(Find(run, 0x10), "");
  EXPECT_EQ(Run(), 0u);
}

TEST_F(RuntimeObjectsTest, AProcessThatCannotBeReadCostsOneRead) {
  memories.broken[7] = absl::PermissionDeniedError("no");
  const ProcessRunPtr run = MakeRun(7);
  for (uint64_t i = 0; i < 50; ++i) Find(run, i);
  Run();
  EXPECT_EQ(
      CounterValue("tributary_collector_code_objects_unknown_total", {{"runtime", "python"}, {"reason", "unreadable"}}),
      50u);
  EXPECT_EQ(CounterValue("tributary_collector_code_object_read_bytes_total"), 100u);
}

TEST_F(RuntimeObjectsTest, StaysBelowItsBudget) {
  const ProcessRunPtr run = MakeRun(7);
  for (uint64_t i = 0; i < 500; ++i) memories.processes[7][i] = {1, fmt::format("f{}", i), 50'000};
  for (int tick = 0; tick < 50; ++tick) {
    for (uint64_t i = 0; i < 500; ++i) Find(run, i);  // the samples wait
    Run();
    clock.Advance(200 * kNsPerMs);
  }
  // 10 s at 1 MiB/s, the first second's budget, and jobs that are submitted together.
  const uint64_t bytes = CounterValue("tributary_collector_code_object_read_bytes_total");
  EXPECT_GT(bytes, 8u << 20);
  EXPECT_LE(bytes, (11u << 20) + RuntimeObjects::kJobsMax * (RuntimeObjects::kJobBytesMax + 50'000));
}

TEST_F(RuntimeObjectsTest, RefusesObjectsThatAreTooLarge) {
  memories.processes[7] = {{0x10, {1, "huge", RuntimeBinary::kObjectBytesMax + 1}}};
  const ProcessRunPtr run = MakeRun(7);
  Find(run, 0x10);
  Run();
  EXPECT_EQ(Find(run, 0x10), "");
}

TEST_F(RuntimeObjectsTest, OneProcessCannotFillTheQueue) {
  const ProcessRunPtr flood = MakeRun(7), other = MakeRun(8);
  memories.processes[7] = {};
  memories.processes[8] = {{0x10, {1, "work"}}};
  for (uint64_t i = 0; i < 3 * RuntimeObjects::kQueueMax; ++i) {
    ASSERT_EQ(Find(flood, i), i < RuntimeObjects::kProcessQueueMax ? "later" : "refused") << i;
  }
  Find(other, 0x10);
  Run();
  EXPECT_EQ(Find(other, 0x10), "work");
  // The refused ones can be requested again.
  for (int i = 0; i < 10; ++i) Run();
  EXPECT_EQ(Find(flood, 3 * RuntimeObjects::kQueueMax - 1), "later");
  Run();
  EXPECT_EQ(Find(flood, 3 * RuntimeObjects::kQueueMax - 1), "");
}

TEST_F(RuntimeObjectsTest, SearchesTheMappingsOnceUntilTheyChange) {
  const ProcessRunPtr run = MakeRun(7);
  memories.processes[7] = {{0x10, {1, "a"}}, {0x20, {1, "b"}}, {0x30, {1, "c"}}, {0x40, {1, "d"}}};
  Find(run, 0x10);
  Run();
  run->mappings.Clear();  // without a change of mapping_changes, so that a search would find nothing
  EXPECT_EQ(Find(run, 0x20), "later");
  Run();
  ++run->mapping_changes;
  EXPECT_EQ(Find(run, 0x30), "");
  run->mappings.Insert(Mapping{0x7000001000, 0x7000002000, 0x1000, MonotonicNs{}, file});
  EXPECT_EQ(Find(run, 0x40), "");
  clock.Advance(CodeObjectTable::kRetryNs);  // the file of a mapping may have been read meanwhile
  EXPECT_EQ(Find(run, 0x40), "later");
}

TEST_F(RuntimeObjectsTest, AFullWorkerIsTriedAgain) {
  memories.processes[7] = {{0x10, {1, "work"}}};
  const ProcessRunPtr run = MakeRun(7);
  Find(run, 0x10);
  executor.capacity = 0;
  Run();
  EXPECT_EQ(Find(run, 0x10), "later");
  executor.capacity = 10;
  Run();
  EXPECT_EQ(Find(run, 0x10), "work");
}

TEST_F(RuntimeObjectsTest, MemoryIsStableWhileProcessesComeAndGo) {
  for (int pid = 1; pid <= 1000; ++pid) {
    for (uint64_t i = 0; i < 20; ++i) memories.processes[pid][0x1000 + i] = {1, fmt::format("f{}", i)};
    const ProcessRunPtr run = MakeRun(pid);
    for (uint64_t i = 0; i < 20; ++i) Find(run, 0x1000 + i);
    Run();
    ASSERT_EQ(Find(run, 0x1000), "f0");
    ASSERT_EQ(objects.store().functions.size(), 20u);  // shared by content
    memories.processes.erase(pid);
    clock.Advance(20 * kNsPerMs);
  }
  EXPECT_EQ(objects.store().entries, 0u);
  EXPECT_EQ(objects.store().functions.bytes(), 0u);
}

TEST_F(RuntimeObjectsTest, EmptiesTheTablesThatWereNotUsedForLongest) {
  std::vector<ProcessRunPtr> runs;
  const std::string name(100'000, 'n');  // 1000 of them need 100 MB
  for (int pid = 1; pid <= 500; ++pid) {
    memories.processes[pid] = {{0x10, {1, name + std::to_string(pid)}}};
    runs.push_back(MakeRun(pid));
    Find(runs.back(), 0x10);
    clock.Advance(kNsPerSecond);
    Run();
  }
  EXPECT_LE(objects.store().functions.bytes(), RuntimeObjects::kBytesMax);
  EXPECT_EQ(Find(runs.back(), 0x10), name + "500");
  EXPECT_EQ(Find(runs.front(), 0x10), "later");
  EXPECT_GT(CounterValue("tributary_collector_code_object_tables_evicted_total"), 0u);
}

TEST_F(RuntimeObjectsTest, ALargeContainerDoesNotRemoveTheNamesOfOthers) {
  memories.processes[1] = {{0x10, {1, "honest"}}};
  const ProcessRunPtr honest = MakeRun(1);
  honest->container_id = "honest";
  Find(honest, 0x10);
  Run();
  std::vector<ProcessRunPtr> large;
  const std::string name(100'000, 'n');
  for (int pid = 2; pid <= 400; ++pid) {  // the processes of one container
    memories.processes[pid] = {{0x10, {1, name + std::to_string(pid)}}};
    large.push_back(MakeRun(pid));
    large.back()->container_id = "large";
    Find(large.back(), 0x10);
    clock.Advance(kNsPerSecond);
    Run();
    ASSERT_EQ(honest->code_objects->size(), 1u) << pid;
  }
  EXPECT_LE(objects.store().functions.bytes(), RuntimeObjects::kBytesMax);
  EXPECT_GT(CounterValue("tributary_collector_code_object_tables_evicted_total"), 0u);
}

TEST_F(RuntimeObjectsTest, FailuresCountAsEntries) {
  const ProcessRunPtr run = MakeRun(7);
  memories.processes[7] = {};
  for (uint64_t i = 0; i < 10; ++i) Find(run, i);
  Run();
  EXPECT_EQ(objects.store().entries, 10u);
}

}  // namespace
}  // namespace tributary
