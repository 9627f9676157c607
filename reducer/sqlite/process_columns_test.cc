#include "reducer/sqlite/process_columns.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace tributary::store {
namespace {

StoredProcesses RandomRows(uint64_t seed, size_t processes, size_t threads) {
  std::mt19937_64 random(seed);
  auto id = [&random] { return static_cast<uint32_t>(random() % 3 == 0 ? random() : random() % 100); };
  StoredProcesses rows;
  for (size_t i = 0; i < processes; ++i) {
    rows.processes.push_back({.no = id(),
                              .machine = static_cast<int64_t>(random() % 2 == 0 ? random() : random() % 3),
                              .boot = id(),
                              .pid = static_cast<int32_t>(id()),
                              .parent = static_cast<int32_t>(id()),
                              .start_time_ns = static_cast<int64_t>(random()),
                              .exec_sequence = id(),
                              .comm = id(),
                              .executable_path = id(),
                              .container_id = id(),
                              .cgroup_path = id(),
                              .attributes = id(),
                              .executable = id()});
  }
  for (size_t i = 0; i < threads; ++i) rows.threads.push_back({id(), id(), static_cast<int32_t>(id()), id()});
  return rows;
}

TEST(ProcessColumns, ProcessesAndThreadsRoundTrip) {
  for (size_t count : {0, 1, 2, 500}) {
    const StoredProcesses rows = RandomRows(count, count, count * 2);
    StoredProcesses back = RandomRows(7, 3, 3);
    ASSERT_TRUE(DecodeProcesses(EncodeProcesses(rows), &back).ok());
    ASSERT_EQ(back.processes.size(), rows.processes.size());
    ASSERT_EQ(back.threads.size(), rows.threads.size());
    for (size_t i = 0; i < rows.processes.size(); ++i) {
      const StoredProcess &a = back.processes[i], &b = rows.processes[i];
      EXPECT_EQ(a.no, b.no);
      EXPECT_EQ(a.machine, b.machine);
      EXPECT_EQ(a.boot, b.boot);
      EXPECT_EQ(a.pid, b.pid);
      EXPECT_EQ(a.parent, b.parent);
      EXPECT_EQ(a.start_time_ns, b.start_time_ns);
      EXPECT_EQ(a.exec_sequence, b.exec_sequence);
      EXPECT_EQ(a.comm, b.comm);
      EXPECT_EQ(a.executable_path, b.executable_path);
      EXPECT_EQ(a.container_id, b.container_id);
      EXPECT_EQ(a.cgroup_path, b.cgroup_path);
      EXPECT_EQ(a.attributes, b.attributes);
      EXPECT_EQ(a.executable, b.executable);
    }
    for (size_t i = 0; i < rows.threads.size(); ++i) {
      EXPECT_EQ(back.threads[i].no, rows.threads[i].no);
      EXPECT_EQ(back.threads[i].process, rows.threads[i].process);
      EXPECT_EQ(back.threads[i].tid, rows.threads[i].tid);
      EXPECT_EQ(back.threads[i].name, rows.threads[i].name);
    }
  }
}

// One process as the first version stored it, without a column of attributes.
TEST(ProcessColumns, ReadsTheFirstVersion) {
  StoredProcesses rows;
  rows.processes.push_back({.no = 3, .pid = 42, .comm = 5, .container_id = 6, .executable = 7});
  std::string first = EncodeProcesses(rows);
  first[0] = 1;
  first.resize(first.size() - 2);  // the run of attributes; no threads follow
  StoredProcesses back;
  ASSERT_TRUE(DecodeProcesses(first, &back).ok());
  ASSERT_EQ(back.processes.size(), 1u);
  EXPECT_EQ(back.processes[0].pid, 42);
  EXPECT_EQ(back.processes[0].executable, 7u);
  EXPECT_EQ(back.processes[0].attributes, 0u);
}

TEST(ProcessColumns, DamageIsRefused) {
  const std::string good = EncodeProcesses(RandomRows(1, 20, 30));
  StoredProcesses rows;
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_TRUE(absl::IsDataLoss(DecodeProcesses(good.substr(0, size), &rows))) << size;
  }
  EXPECT_TRUE(absl::IsDataLoss(DecodeProcesses(good + "x", &rows)));
  EXPECT_TRUE(absl::IsDataLoss(DecodeProcesses("\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", &rows)));
  std::mt19937_64 random(2);
  for (int i = 0; i < 20'000; ++i) {
    std::string bad = good;
    for (uint64_t n = 1 + random() % 3; n > 0; --n) bad[random() % bad.size()] = static_cast<char>(random());
    (void)DecodeProcesses(bad, &rows);  // must return, and stay within its bounds
  }
}

TEST(ProcessColumns, SlotsAreTenMinutesRoundedDown) {
  EXPECT_EQ(SlotOf(UnixNs{0}), Slot{0});
  EXPECT_EQ(SlotOf(UnixNs{-1}), Slot{-1});
  EXPECT_EQ(SlotOf(UnixNs{10 * kNsPerMinute - 1}), Slot{0});
  EXPECT_EQ(SlotOf(UnixNs{10 * kNsPerMinute}), Slot{1});
  EXPECT_EQ(DayOf(Slot{kSlotsPerDay - 1}), Day{0});
  EXPECT_EQ(DayOf(Slot{kSlotsPerDay}), Day{1});
  EXPECT_EQ(SlotOf(StartOf(Slot{12'345})), Slot{12'345});
}

TEST(ProcessColumns, ProcessesAreReadWithoutTheirThreads) {
  const StoredProcesses rows = RandomRows(3, 40, 80);
  const std::string bytes = EncodeProcesses(rows);
  StoredProcesses back = RandomRows(7, 3, 3);
  // The threads are not looked at, so it does not matter that some of their bytes are missing.
  ASSERT_TRUE(DecodeProcesses(bytes.substr(0, bytes.size() - 100), &back, PieceParts::kProcesses).ok());
  ASSERT_EQ(back.processes.size(), rows.processes.size());
  for (size_t i = 0; i < rows.processes.size(); ++i)
    EXPECT_EQ(back.processes[i].attributes, rows.processes[i].attributes);
  EXPECT_TRUE(back.threads.empty());
  EXPECT_FALSE(DecodeProcesses(bytes.substr(0, 100), &back, PieceParts::kProcesses).ok());
}

}  // namespace
}  // namespace tributary::store
