#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "reducer/sqlite/sqlite_store_testing.h"

namespace tributary::store {
namespace {

TEST_F(SqliteStoreTest, ProcessAttributesLearnedLateReachOldSamples) {
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

TEST_F(SqliteStoreTest, ProcessAttributesLearnedAfterTheLastSampleReachIt) {
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

TEST_F(SqliteStoreTest, WhatAProcessSaysOfItselfIsKept) {
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

// What ran in one container stays there when the process has moved to another, also in one batch, and in a generation
// that continues the first.
TEST_F(SqliteStoreTest, AProcessThatMovesIsToldOfInBothContainers) {
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
