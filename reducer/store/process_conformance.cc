#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "reducer/store/store_conformance_testing.h"

// Processes and threads as a reader returns them.

namespace tributary::store {
namespace {

// A reader may return processes that ran shortly before or after a range. So the processes that it must not return are
// an hour away.
UnixNs AtMinute(int64_t minutes) { return UnixNs{kNow.value + minutes * kNsPerMinute}; }

std::vector<std::string> NamesIn(StoreReader& reader, int64_t from_minute, int64_t to_minute,
                                 const ProcessSet* only = nullptr) {
  std::vector<std::string> names;
  const TimeRange range{AtMinute(from_minute), AtMinute(to_minute)};
  const std::vector<ProcessRow> rows = reader.Processes(range, only).value();
  for (const ProcessRow& row : rows) names.push_back(row.comm);
  if (only == nullptr) {
    std::vector<std::string> scanned;
    const auto visit = [&scanned](const ProcessRow& row) {
      scanned.push_back(row.comm);
      return absl::OkStatus();
    };
    EXPECT_TRUE(reader.ScanProcesses(range, visit).ok());
    EXPECT_THAT(scanned, testing::UnorderedElementsAreArray(names));
  }
  return names;
}

// A process is described in every slot that has a sample of it, under one number, and a reader finds it there.
TEST_P(ProcessConformance, FindsProcessesInTheRangesOfTheirSamples) {
  TestCollector collector("node-a");
  ThreadRef early = collector.Thread(1, "early"), both = collector.Thread(2, "both"),
            late = collector.Thread(3, "late");
  NodeRef leaf = collector.Stack({1});
  collector.Add(AtMinute(-180), early, leaf);
  collector.Add(AtMinute(-174), both, leaf);
  collector.Add(AtMinute(-12), both, leaf);
  collector.Add(AtMinute(-6), late, leaf);
  Commit(collector.Take(AtMinute(0)));
  EXPECT_THAT(NamesIn(*Reader(), -180, -120), testing::UnorderedElementsAre("early", "both"));
  EXPECT_THAT(NamesIn(*Reader(), -60, 0), testing::UnorderedElementsAre("both", "late"));
  EXPECT_THAT(NamesIn(*Reader(), -240, 0), testing::UnorderedElementsAre("early", "both", "late")) << "each once";
  const auto refuse = [](const ProcessRow&) { return absl::CancelledError("enough"); };
  EXPECT_TRUE(absl::IsCancelled(Reader()->ScanProcesses({AtMinute(-240), AtMinute(0)}, refuse)));
  EXPECT_THAT(NamesIn(*Reader(), -120, -60), testing::IsEmpty());
  EXPECT_THAT(NamesIn(*Reader(), -60, -60), testing::IsEmpty());

  std::vector<ProcessRow> rows = Reader()->Processes({AtMinute(-60), AtMinute(0)}, nullptr).value();
  ASSERT_EQ(rows.size(), 2u);
  const ProcessRow& last = rows[rows[0].comm == "late" ? 0 : 1];
  const ProcessSet only{last.no};
  EXPECT_THAT(NamesIn(*Reader(), -240, 0, &only), testing::ElementsAre("late"));
  std::vector<ThreadRow> threads = Reader()->Threads({AtMinute(-240), AtMinute(0)}, only).value();
  ASSERT_EQ(threads.size(), 1u);
  EXPECT_EQ(threads[0].tid, Tid{3});
  EXPECT_EQ(threads[0].process, last.no);
}

TEST_P(ProcessConformance, NumbersAreNotGivenTwiceAcrossRestarts) {
  NodeRef leaf;
  for (uint8_t session = 1; session <= 3; ++session) {
    TestCollector collector("node-a", session);
    leaf = collector.Stack({1});
    collector.Add(AtMinute(-6), collector.Thread(session, "p" + std::to_string(session)), leaf);
    Commit(collector.Take(AtMinute(0)));
    Reopen();
  }
  ProcessSet numbers;
  const std::vector<ProcessRow> rows = Reader()->Processes({AtMinute(-60), AtMinute(0)}, nullptr).value();
  for (const ProcessRow& row : rows) numbers.insert(row.no);
  EXPECT_EQ(numbers.size(), 3u);
}

TEST_P(ProcessConformance, ProcessAttributesLearnedLateReachOldSamples) {
  TestCollector collector("node-a");
  Dictionary& dictionary = collector.dictionary();
  Process process;
  process.key = {Pid{5}, 100, 0};
  process.comm = dictionary.InternString("sh");
  ThreadRef before = dictionary.InternThread({dictionary.InternProcess(process), Tid{5}, StringRef{}});
  collector.Add(At(-1), before, collector.Stack({1}));
  CommitOne(collector.Take(At(-1)));
  process.container_id = dictionary.InternString("abc");
  ThreadRef after = dictionary.InternThread({dictionary.InternProcess(process), Tid{5}, StringRef{}});
  collector.Add(At(0), after, collector.Stack({1}));
  CommitOne(collector.Take(At(0)));
  auto processes = Reader()->Processes(kAlways, nullptr).value();
  ASSERT_EQ(processes.size(), 1u);
  EXPECT_EQ(processes[0].container_id, "abc");
}

TEST_P(ProcessConformance, ProcessAttributesLearnedAfterTheLastSampleReachIt) {
  TestCollector collector("node-a");
  Dictionary& dictionary = collector.dictionary();
  Process process;
  process.key = {Pid{5}, 100, 0};
  ThreadRef thread = dictionary.InternThread({dictionary.InternProcess(process), Tid{5}, StringRef{}});
  collector.Add(At(-1), thread, collector.Stack({1}));
  CommitOne(collector.Take(At(-1)));
  process.attributes = dictionary.InternString("service.name=web");
  dictionary.InternProcess(process);
  CommitOne(collector.Take(At(0)));  // no sample of it, nor of any other process
  auto processes = Reader()->Processes(kAlways, nullptr).value();
  ASSERT_EQ(processes.size(), 1u);
  EXPECT_EQ(processes[0].attributes, "service.name=web");
}

TEST_P(ProcessConformance, KeepsAttributesOfProcesses) {
  TestCollector collector("node-a");
  Dictionary& dictionary = collector.dictionary();
  Process process;
  process.key = {Pid{5}, 100, 0};
  process.attributes = dictionary.InternString("service.name=web");
  const ThreadRef thread = dictionary.InternThread({dictionary.InternProcess(process), Tid{5}, StringRef{}});
  collector.Add(At(0), thread, collector.Stack({1}));
  CommitOne(collector.Take(At(0)));
  auto processes = Reader()->Processes(kAlways, nullptr).value();
  ASSERT_EQ(processes.size(), 1u);
  EXPECT_EQ(processes[0].attributes, "service.name=web");
}

// Samples stay in the container where their process ran, also after the process has moved to another container. This
// holds in one batch, and in a later batch of the same generation.
TEST_P(ProcessConformance, AMovedProcessIsReturnedForBothContainers) {
  TestCollector collector("node-a");
  const NodeRef leaf = collector.Stack({1});
  Process process;
  process.key = {Pid{5}, 100, 0};
  auto thread_in = [&](std::string_view container) {
    Dictionary& dictionary = collector.dictionary();
    process.container_id = dictionary.InternString(container);
    return dictionary.InternThread({dictionary.InternProcess(process), Tid{5}, StringRef{}});
  };
  collector.Add(At(-4), thread_in(""), leaf);
  collector.Add(At(-3), thread_in("first"), leaf);
  collector.Add(At(-2), thread_in("second"), leaf);
  CommitOne(collector.Take(At(-2)));
  collector.Add(At(-1), thread_in("first"), leaf);
  CommitOne(collector.Take(At(-1)));

  std::map<uint32_t, std::string> container_of;
  const std::vector<ProcessRow> rows = Reader()->Processes(kAlways, nullptr).value();
  for (const ProcessRow& row : rows) {
    container_of[row.no.value] = row.container_id;
  }
  std::vector<std::string> containers;
  ASSERT_TRUE(Reader()
                  ->ScanSamples(kAlways,
                                [&](const SampleColumns& columns) {
                                  for (ProcessNo no : columns.processes) containers.push_back(container_of[no.value]);
                                  return absl::OkStatus();
                                })
                  .ok());
  EXPECT_THAT(containers, testing::ElementsAre("first", "first", "second", "first"));
}

}  // namespace
}  // namespace tributary::store
