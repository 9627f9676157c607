#include "kernel-collector/unwind/process_publisher.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kernel-collector/probes/fake_unwind_maps_testing.h"
#include "kernel-collector/processes/runtime_binary_testing.h"
#include "kernel-collector/unwind/unwind_testing.h"

namespace tributary {
namespace {

class ProcessPublisherTest : public testing::Test {
 protected:
  static Mapping At(uint64_t start, uint64_t bytes, CodeFilePtr file, uint64_t offset = 0x1000, int64_t learned = 5) {
    return {start, start + bytes, offset, MonotonicNs{learned}, std::move(file)};
  }
  static CodeFilePtr File(std::string_view id) {
    auto file = MakeCodeFile(id, 0x401000, 0x3000);
    file->segments[0].file_offset = 0x1000;
    return file;
  }
  std::span<trib_mapping> MappingsOf(int pid) {
    const trib_process& process = maps.processes.at(pid);
    return maps.mappings().subspan(process.first_mapping, process.mapping_count);
  }
  static std::unique_ptr<ProcessRun> Run(int pid) {
    auto run = std::make_unique<ProcessRun>();
    run->pid = Pid{pid};
    return run;
  }
  bool HasMetric(std::string_view line) { return metrics.PrometheusText().find(line) != std::string::npos; }

  FakeUnwindMaps maps;
  FakeExecutor executor;
  FakeClock clock;
  Metrics metrics;
  UnwindTables tables{maps, executor, clock, metrics, UnwindTables::Options(), std::make_shared<FakeCompiler>()};
  RuntimeSlots slots{maps, clock, metrics};
  ProcessPublisher publisher{maps, tables, slots, executor, clock, metrics};
};

TEST_F(ProcessPublisherTest, PublishesWhereEachFileIsMapped) {
  auto run = Run(1);
  CodeFilePtr file = File("a");
  run->mappings.Insert(At(0x7000'0000, 0x3000, file));
  run->mappings.Insert(At(0x8000'0000, 0x1000, nullptr));
  publisher.Publish(*run, 77, 3);
  ASSERT_EQ(maps.processes.size(), 1u);
  const trib_process& process = maps.processes.at(1);
  EXPECT_EQ(process.start_time_ns, 77u);
  EXPECT_EQ(process.exec_id, 3u);
  EXPECT_NE(process.table, 0u);
  EXPECT_EQ(publisher.MadeAt(process.table), MonotonicNs{5});
  EXPECT_EQ(publisher.MadeAt(process.table + 1), std::nullopt);
  auto mappings = MappingsOf(1);
  ASSERT_EQ(mappings.size(), 2u);
  EXPECT_EQ(mappings[0].start, 0x7000'0000u);
  EXPECT_EQ(mappings[0].end, 0x7000'3000u);
  EXPECT_EQ(mappings[0].start - mappings[0].bias, 0x401000u);
  EXPECT_EQ(mappings[0].first_page, *tables.FirstPage(file));
  EXPECT_EQ(mappings[0].flags, 0u);
  EXPECT_EQ(mappings[1].flags, uint32_t{TRIB_MAPPING_FRAME_POINTERS});
}

TEST_F(ProcessPublisherTest, AForkSharesItsParentsUntilOneChanges) {
  auto parent = Run(1), child = Run(2);
  parent->mappings.Insert(At(0x7000'0000, 0x3000, File("a")));
  child->mappings = parent->mappings;
  publisher.Publish(*parent, 1, 1);
  publisher.Publish(*child, 2, 1);
  EXPECT_EQ(maps.processes.at(1).first_mapping, maps.processes.at(2).first_mapping);
  EXPECT_EQ(maps.processes.at(1).table, maps.processes.at(2).table);
  child->mappings.Insert(At(0x9000'0000, 0x3000, File("b"), 0x1000, 9));
  publisher.Publish(*child, 2, 1);
  EXPECT_EQ(MappingsOf(1).size(), 1u);
  EXPECT_EQ(MappingsOf(2).size(), 2u);
  EXPECT_NE(maps.processes.at(1).table, maps.processes.at(2).table);
  EXPECT_EQ(publisher.MadeAt(maps.processes.at(2).table), MonotonicNs{9});
  publisher.Withdraw(Pid{1});
  publisher.Withdraw(Pid{2});
  EXPECT_TRUE(maps.processes.empty());
  EXPECT_TRUE(HasMetric("walk_mappings 0"));
}

TEST_F(ProcessPublisherTest, NothingIsDoneWhenNothingChanged) {
  auto run = Run(1);
  run->mappings.Insert(At(0x7000'0000, 0x3000, File("a")));
  publisher.Publish(*run, 1, 1);
  uint32_t table = maps.processes.at(1).table;
  publisher.Publish(*run, 1, 1);
  EXPECT_EQ(maps.processes.at(1).table, table);
  publisher.Publish(*run, 1, 2);  // another program, by chance with the same mappings
  EXPECT_EQ(maps.processes.at(1).exec_id, 2u);
}

TEST_F(ProcessPublisherTest, PublishesTheRuntimesOfAProcess) {
  FakeMemories memories;
  auto run = Run(1);
  CodeFilePtr file = File("python"), second = File("second"), third = File("third");
  const RuntimeBinaryPtr binary = std::make_shared<FakeRuntimeBinary>(&memories);
  file->runtime = binary;
  second->runtime = std::make_shared<FakeRuntimeBinary>(&memories);
  third->runtime = std::make_shared<FakeRuntimeBinary>(&memories);
  run->mappings.Insert(At(0x6000'0000, 0x1000, File("libc")));
  publisher.Publish(*run, 1, 1);
  EXPECT_EQ(maps.processes.at(1).runtimes, 0u);
  run->mappings.Insert(At(0x7000'0000, 0x1000, file));
  run->mappings.Insert(At(0x7100'0000, 0x1000, file, 0x2000));  // another part of it
  publisher.Publish(*run, 1, 1);
  const RuntimeSlots::Number number = slots.Use(binary);
  EXPECT_EQ(maps.processes.at(1).runtimes, TRIB_PROCESS_RUNTIMES(number, 0));
  EXPECT_EQ(maps.runtimes()[number].kind, uint32_t{TRIB_RUNTIME_PYTHON});
  run->mappings.Insert(At(0x8000'0000, 0x1000, second));
  run->mappings.Insert(At(0x9000'0000, 0x1000, third));  // two are the limit
  publisher.Publish(*run, 1, 1);
  EXPECT_EQ(maps.processes.at(1).runtimes, TRIB_PROCESS_RUNTIMES(number, slots.Use(second->runtime)));
  EXPECT_EQ(slots.size(), 2u);
}

TEST_F(ProcessPublisherTest, LeavesOutUnreadFiles) {
  auto run = Run(1);
  CodeFilePtr file = File("a");
  file->state = CodeFile::State::kReading;
  run->mappings.Insert(At(0x7000'0000, 0x3000, file));
  publisher.Publish(*run, 1, 1);
  EXPECT_TRUE(MappingsOf(1).empty());
  file->state = CodeFile::State::kFailed;
  publisher.Publish(*run, 1, 1);
  ASSERT_EQ(MappingsOf(1).size(), 1u);
  EXPECT_EQ(MappingsOf(1)[0].flags, uint32_t{TRIB_MAPPING_FRAME_POINTERS});
  file->state = CodeFile::State::kUnread;  // a new location to read from
  uint32_t table = maps.processes.at(1).table;
  publisher.Publish(*run, 1, 1);
  EXPECT_EQ(maps.processes.at(1).table, table);
  file->state = CodeFile::State::kReady;
  publisher.Publish(*run, 1, 1);
  EXPECT_EQ(MappingsOf(1)[0].flags, 0u);
}

TEST_F(ProcessPublisherTest, WalksAddressesOutsideTheTextByFramePointers) {
  auto run = Run(1);
  CodeFilePtr file = File("a"), forged = File("a");
  forged->segments[0].memory_size = forged->segments[0].file_size = 0x9000;  // the same identity, more text
  run->mappings.Insert(At(0x7000'0000, 0x5000, file));
  run->mappings.Insert(At(0x8000'0000, 0x9000, forged));
  publisher.Publish(*run, 1, 1);
  auto mappings = MappingsOf(1);
  ASSERT_EQ(mappings.size(), 3u);
  EXPECT_EQ(mappings[0].end, 0x7000'3000u);
  EXPECT_EQ(mappings[0].flags, 0u);
  EXPECT_EQ(mappings[1].flags, uint32_t{TRIB_MAPPING_FRAME_POINTERS});
  EXPECT_EQ(mappings[2].flags, uint32_t{TRIB_MAPPING_FRAME_POINTERS});
}

TEST_F(ProcessPublisherTest, MappingsAreCapped) {
  auto run = Run(1);
  CodeFilePtr file = MakeCodeFile("a", 0x1000, 0x1000);
  file->segments.clear();
  for (uint64_t i = 0; i < 4; ++i) file->segments.push_back({i * 0x4000, 0x1000, i * 0x5000, 0x1000, true});
  for (uint64_t i = 0; i < 3000; ++i) run->mappings.Insert(At(i * 0x20000, 0x10000, file, 0));
  publisher.Publish(*run, 1, 1);
  EXPECT_EQ(MappingsOf(1).size(), size_t{TRIB_PROCESS_MAPPINGS_MAX});
  EXPECT_TRUE(HasMetric("walk_mappings_refused_total 952"));
}

TEST_F(ProcessPublisherTest, PublishesLaterIfTheSystemHasNoMemoryForMappings) {
  auto run = Run(1);
  run->mappings.Insert(At(0x7000'0000, 0x3000, File("a")));
  maps.has_memory = false;
  publisher.Publish(*run, 1, 1);
  EXPECT_TRUE(maps.processes.empty());
  EXPECT_TRUE(HasMetric("walk_mappings 0"));
  maps.has_memory = true;
  publisher.Publish(*run, 1, 1);
  EXPECT_EQ(MappingsOf(1).size(), 1u);
}

TEST_F(ProcessPublisherTest, EvictsNothingIfTheSystemHasNoMemoryForMappings) {
  std::vector<std::unique_ptr<ProcessRun>> runs;
  for (int pid = 1; pid <= 40; ++pid) {
    runs.push_back(Run(pid));
    runs.back()->mappings.Insert(At(0x7000'0000, 0x3000, File("a")));
    maps.has_memory = pid <= 32;
    publisher.Publish(*runs.back(), 1, 1);
  }
  runs[0]->mappings.Insert(At(0x8000'0000, 0x3000, File("b")));
  publisher.Publish(*runs[0], 1, 1);
  EXPECT_EQ(publisher.processes(), 32u);
  EXPECT_EQ(MappingsOf(1).size(), 1u) << "the earlier ones stay until they are replaced";
  EXPECT_TRUE(HasMetric("walk_mappings 32"));
  EXPECT_TRUE(HasMetric("walk_processes_evicted_total 0"));
  EXPECT_TRUE(HasMetric("walk_processes_refused_total 9"));
  EXPECT_EQ(executor.RunAll(), 0u) << "no wait for a grace period";
  maps.has_memory = true;
  for (const auto& run : runs) publisher.Publish(*run, 1, 1);
  EXPECT_EQ(publisher.processes(), 40u);
  EXPECT_EQ(MappingsOf(1).size(), 2u);
}

TEST_F(ProcessPublisherTest, EvictsTheLeastRecentlySampledForMappings) {
  std::vector<std::unique_ptr<ProcessRun>> runs;
  auto add = [&](int pid) {
    runs.push_back(Run(pid));
    for (uint64_t i = 0; i < 8192; ++i) {  // an eighth of all space
      runs.back()->mappings.Insert(At(0x10000 + i * 0x2000, 0x1000, nullptr, 0));
    }
    publisher.Publish(*runs.back(), 1, 1);
    clock.Advance(1);
  };
  for (int pid = 1; pid <= 8; ++pid) add(pid);
  EXPECT_EQ(maps.processes.size(), 8u);
  publisher.Touch(Pid{1}, MonotonicNs{clock.Monotonic().value + 5});
  add(9);
  EXPECT_FALSE(maps.processes.contains(9)) << "no room before a grace period";
  EXPECT_FALSE(maps.processes.contains(2));
  EXPECT_TRUE(maps.processes.contains(1));
  EXPECT_EQ(maps.graces, 0);
  publisher.Publish(*runs.back(), 1, 1);
  EXPECT_EQ(maps.processes.size(), 7u) << "one is enough";
  executor.RunAll();
  EXPECT_EQ(maps.graces, 1);
  publisher.Publish(*runs.back(), 1, 1);
  EXPECT_TRUE(maps.processes.contains(9));
  EXPECT_TRUE(HasMetric("walk_processes_evicted_total 1"));
  EXPECT_TRUE(HasMetric("walk_processes_refused_total 2"));
}

TEST_F(ProcessPublisherTest, EvictsTheLeastRecentlySampledForProcesses) {
  maps.processes_max = 32;
  std::vector<std::unique_ptr<ProcessRun>> runs;
  for (int pid = 1; pid <= 40; ++pid) {
    runs.push_back(Run(pid));
    runs.back()->mappings.Insert(At(0x7000'0000, 0x3000, File("a")));
    publisher.Publish(*runs.back(), 1, 1);
    clock.Advance(1);
    ASSERT_TRUE(maps.processes.contains(pid));
    ASSERT_EQ(publisher.processes(), maps.processes.size());
  }
  EXPECT_FALSE(maps.processes.contains(1));
  EXPECT_TRUE(maps.processes.contains(39));
}

TEST_F(ProcessPublisherTest, MappingsAndPageEntriesAreReusedOnlyAfterAGrace) {
  auto first = Run(1), second = Run(2);
  CodeFilePtr big = MakeCodeFile("big", 0, 256ull << 22);
  first->mappings.Insert(At(0x7000'0000, 0x3000, big, 0));
  publisher.Publish(*first, 1, 1);
  uint32_t at = maps.processes.at(1).first_mapping;
  publisher.Withdraw(Pid{1});
  second->mappings.Insert(At(0x7000'0000, 0x3000, File("b")));
  publisher.Publish(*second, 1, 1);
  EXPECT_NE(maps.processes.at(2).first_mapping, at);
  // Each file needs half of all page entries. With b's entries there is no space for two more while big's may be seen.
  EXPECT_EQ(tables.FirstPage(MakeCodeFile("big2", 0, 256ull << 22)), std::nullopt);
  for (uint64_t i = 0; i < TRIB_MAPPINGS_MAX / 16; ++i) {  // enough entries for a wait
    second->mappings.Insert(At(0x8000'0000 + i * 0x2000, 0x1000, nullptr, 0));
  }
  publisher.Publish(*second, 1, 1);
  publisher.Withdraw(Pid{2});
  executor.RunAll();
  EXPECT_EQ(maps.graces, 1);
  EXPECT_TRUE(tables.FirstPage(MakeCodeFile("big2", 0, 256ull << 22)));
}

}  // namespace
}  // namespace tributary
