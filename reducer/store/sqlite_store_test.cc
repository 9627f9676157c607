#include "reducer/store/sqlite_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "reducer/store/shard_writer.h"
#include "reducer/store/store_testing.h"

namespace tributary::store {
namespace {

using ::testing::HasSubstr;

constexpr UnixNs kNow{1'700'000'040 * kNsPerSecond};  // a whole minute
constexpr TimeRange kAlways{UnixNs{0}, UnixNs{4'000'000'000 * kNsPerSecond}};

class SqliteStoreTest : public ::testing::Test {
 protected:
  SqliteStoreTest() : clock_(MonotonicNs{kNsPerSecond}, kNow) { Reopen(); }

  void Reopen() {
    writer_.reset();
    store_.reset();
    options_.data_dir = directory_.path();
    absl::StatusOr<std::unique_ptr<SqliteStore>> store = SqliteStore::Open(options_, clock_, metrics_);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    writer_ = store_->OpenWriter(0).value();
  }
  std::unique_ptr<StoreReader> Reader(uint32_t shard = 0) { return store_->OpenReader(shard).value(); }
  ShardWriter::Outcome CommitOne(const PendingBatch& batch) {
    absl::StatusOr<std::vector<ShardWriter::Outcome>> outcomes = writer_->Commit({&batch, 1});
    EXPECT_TRUE(outcomes.ok()) << outcomes.status();
    return outcomes.ok() ? outcomes->at(0) : ShardWriter::Outcome{};
  }
  static UnixNs At(int64_t seconds) { return UnixNs{kNow.value + seconds * kNsPerSecond}; }

  TestDirectory directory_;
  FakeClock clock_;
  Metrics metrics_;
  SqliteStoreOptions options_;
  std::unique_ptr<SqliteStore> store_;
  std::unique_ptr<ShardWriter> writer_;
};

uint64_t CountSamples(StoreReader& reader, TimeRange range = kAlways) {
  uint64_t count = 0;
  EXPECT_TRUE(reader
                  .ScanSamples(range,
                               [&](const SampleColumns& columns) {
                                 count += columns.times.size();
                                 return absl::OkStatus();
                               })
                  .ok());
  return count;
}

TEST_F(SqliteStoreTest, SamplesComeBackInStoreIds) {
  TestCollector collector("node-a");
  ThreadRef thread = collector.Thread(42, "worker");
  NodeRef leaf = collector.Stack({0x1000, 0x2000, 0x3000});
  collector.Add(At(-2), thread, leaf, 7);
  collector.Add(At(-1), thread, collector.Stack({0x1000, 0x2000}), 9, Ending::kUnknown);
  collector.Lose(LossReason::kRingFull, 3);
  PendingBatch batch = collector.Take(At(0));
  batch.wire_bytes = 1234;
  EXPECT_EQ(CommitOne(batch).sequence, 1u);

  auto reader = Reader();
  std::vector<SampleColumns> chunks;
  ASSERT_TRUE(reader
                  ->ScanSamples(kAlways,
                                [&](const SampleColumns& c) {
                                  chunks.push_back(c);
                                  EXPECT_EQ(c.node_id, "node-a");
                                  return absl::OkStatus();
                                })
                  .ok());
  ASSERT_EQ(chunks.size(), 1u);
  EXPECT_EQ(chunks[0].times, (std::vector<UnixNs>{At(-2), At(-1)}));
  EXPECT_EQ(chunks[0].values, (std::vector<uint64_t>{7, 9}));
  EXPECT_EQ(chunks[0].endings, (std::vector<Ending>{Ending::kComplete, Ending::kUnknown}));

  auto trie = reader->LoadTrie(chunks[0].day).value();
  ASSERT_EQ(trie->parents.size(), 5u) << "a leaf and a caller at one address are two frames";
  const NodeNo node = chunks[0].nodes[0];
  const FrameRow& frame = trie->frame_rows[trie->frames[node.value]];
  EXPECT_EQ(frame.address, 0x3000u);
  EXPECT_FALSE(frame.is_caller);
  EXPECT_EQ(reader->Executables().value()[frame.executable.value].path, "/lib/libc.so");
  EXPECT_EQ(trie->frame_rows[trie->frames[trie->parents[node.value].value]].address, 0x2000u);

  auto processes = reader->Processes(kAlways, nullptr).value();
  ASSERT_EQ(processes.size(), 1u);
  EXPECT_EQ(processes[0].no, chunks[0].processes[0]);
  EXPECT_EQ(processes[0].pid, Pid{42});
  EXPECT_EQ(processes[0].comm, "worker");
  EXPECT_EQ(processes[0].container_id, "c0ffee");
  EXPECT_EQ(processes[0].host_name, "host-of-node-a");
  EXPECT_EQ(processes[0].as_of, StartOf(SlotOf(At(-1))));
  auto threads = reader->Threads(kAlways, {processes[0].no}).value();
  ASSERT_EQ(threads.size(), 1u);
  EXPECT_EQ(threads[0].no, chunks[0].threads[0]);
  EXPECT_EQ(threads[0].name, "worker");

  auto nodes = reader->Nodes().value();
  ASSERT_EQ(nodes.size(), 1u);
  EXPECT_EQ(nodes[0].accounting.captured, 5u);
  EXPECT_EQ(nodes[0].stored, 2u);
  EXPECT_EQ(nodes[0].accounting.lost[static_cast<size_t>(LossReason::kRingFull)], 3u);
  EXPECT_EQ(nodes[0].endings[static_cast<size_t>(Ending::kComplete)], 1u);
  EXPECT_EQ(nodes[0].wire_bytes, 1234u);
  EXPECT_EQ(nodes[0].last_seen, kNow);
}

TEST_F(SqliteStoreTest, EndingsAreKeptAndCounted) {
  TestCollector collector("node-a");
  ThreadRef thread = collector.Thread(1, "a");
  NodeRef leaf = collector.Stack({1, 2});
  for (uint8_t i = 0; i < kEndingCount; ++i) collector.Add(At(-1), thread, leaf, 7, static_cast<Ending>(i));
  collector.Add(At(-1), thread, leaf, 7, Ending::kBadRow);
  PendingBatch batch = collector.Take(At(0));
  PendingBatch again = collector.Resend(batch);
  EXPECT_EQ(CommitOne(batch).sequence, 1u);
  EXPECT_EQ(CommitOne(again).sequence, 1u);

  auto nodes = Reader()->Nodes().value();
  ASSERT_EQ(nodes.size(), 1u);
  for (uint8_t i = 0; i < kEndingCount; ++i) {
    const auto ending = static_cast<Ending>(i);
    const uint64_t wanted = ending == Ending::kBadRow ? 2 : 1;
    EXPECT_EQ(nodes[0].endings[i], wanted) << EndingName(ending);
    Counter& counter = metrics_.AddCounter("tributary_reducer_samples_by_ending_total", "",
                                           {{"ending", std::string(EndingName(ending))}});
    EXPECT_EQ(counter.value(), wanted) << EndingName(ending);
  }
}

TEST_F(SqliteStoreTest, DuplicateBatchesChangeNothing) {
  TestCollector collector("node-a");
  ThreadRef thread = collector.Thread(1, "a");
  collector.Add(At(-1), thread, collector.Stack({1, 2}));
  PendingBatch first = collector.Take(At(0));
  collector.Add(At(0), thread, collector.Stack({1, 3}));
  PendingBatch second = collector.Take(At(1));
  CommitOne(first);
  CommitOne(second);
  // After a reconnect the dictionary is known: the same samples come without definitions.
  PendingBatch first_again = collector.Resend(first), second_again = collector.Resend(second);
  EXPECT_EQ(CommitOne(first_again).sequence, 2u);
  EXPECT_EQ(CommitOne(second_again).sequence, 2u);
  EXPECT_EQ(CountSamples(*Reader()), 2u);
  EXPECT_EQ(TotalsOf(*Reader()).stored, 2u);
}

TEST_F(SqliteStoreTest, OneGroupMayHoldABatchTwice) {
  TestCollector collector("node-a");
  collector.Add(At(-1), collector.Thread(1, "a"), collector.Stack({1, 2}));
  PendingBatch batch = collector.Take(At(0));
  PendingBatch again = collector.Resend(batch);
  std::vector<PendingBatch> group;
  group.push_back(batch);
  group.push_back(again);
  auto outcomes = writer_->Commit(group).value();
  ASSERT_EQ(outcomes.size(), 2u);
  EXPECT_FALSE(outcomes[1].need_dictionary);
  EXPECT_EQ(TotalsOf(*Reader()).stored, 1u);
}

TEST_F(SqliteStoreTest, AsksForTheDictionaryWhenDefinitionsDoNotContinue) {
  TestCollector collector("node-a");
  ThreadRef thread = collector.Thread(1, "a");
  collector.Add(At(-2), thread, collector.Stack({1, 2}));
  CommitOne(collector.Take(At(-2)));
  collector.Add(At(-1), thread, collector.Stack({1, 3}));
  PendingBatch second = collector.Take(At(-1));  // lost on the way
  collector.Add(At(0), thread, collector.Stack({1, 4}));
  PendingBatch third = collector.Take(At(0));
  ShardWriter::Outcome outcome = CommitOne(third);
  EXPECT_TRUE(outcome.need_dictionary);
  EXPECT_EQ(outcome.sequence, 1u);
  EXPECT_EQ(TotalsOf(*Reader()).stored, 1u);

  collector.StartGeneration();
  EXPECT_FALSE(CommitOne(collector.Resend(second)).need_dictionary);
  EXPECT_FALSE(CommitOne(collector.Resend(third)).need_dictionary);
  EXPECT_EQ(TotalsOf(*Reader()).stored, 3u);
  auto processes = Reader()->Processes(kAlways, nullptr).value();
  ASSERT_EQ(processes.size(), 2u) << "a generation starts with numbers of its own";
  EXPECT_EQ(processes[0].pid, processes[1].pid);
  EXPECT_EQ(processes[0].start_time_ns, processes[1].start_time_ns);
}

TEST_F(SqliteStoreTest, RefusesReferencesToWhatIsNotDefined) {
  TestCollector collector("node-a");
  collector.Add(At(0), ThreadRef{7}, NodeRef{});
  EXPECT_TRUE(CommitOne(collector.Take(At(0))).need_dictionary);
  collector.Add(At(0), ThreadRef{}, NodeRef{1000});
  EXPECT_TRUE(CommitOne(collector.Take(At(0))).need_dictionary);
  TestCollector liar("node-b", 2);
  PendingBatch batch = liar.Take(At(0));
  batch.batch.definitions.nodes.push_back({NodeRef{5}, FrameRef{}});
  EXPECT_TRUE(CommitOne(batch).need_dictionary);
  EXPECT_TRUE(Reader()->Nodes()->empty());
}

TEST_F(SqliteStoreTest, ARestartKeepsMarksAndAsksForDictionaries) {
  TestCollector collector("node-a");
  ThreadRef thread = collector.Thread(1, "a");
  collector.Add(At(-2), thread, collector.Stack({1, 2}));
  CommitOne(collector.Take(At(-2)));
  collector.Add(At(-1), thread, collector.Stack({1, 2}));
  PendingBatch second = collector.Take(At(-1));
  Reopen();
  EXPECT_EQ(writer_->FindSession(collector.info().session_id)->durable_sequence, 1u);
  const uint8_t unknown[16] = {9};
  EXPECT_TRUE(absl::IsNotFound(writer_->FindSession(unknown).status()));
  EXPECT_TRUE(CommitOne(second).need_dictionary);
  collector.StartGeneration();
  EXPECT_EQ(CommitOne(collector.Resend(second)).sequence, 2u);
  Totals totals = TotalsOf(*Reader());
  EXPECT_EQ(totals.captured, totals.stored);
  EXPECT_EQ(Reader()->LoadTrie(DayOf(kNow)).value()->parents.size(), 3u) << "the day's trie goes on where it was";
}

TEST_F(SqliteStoreTest, DefinitionsMayComeBeforeTheirBatch) {
  TestCollector collector("node-a");
  ThreadRef thread = collector.Thread(1, "a");
  NodeRef leaf = collector.Stack({1, 2});
  PendingBatch definitions = collector.Take(At(0));
  definitions.batch.sequence = 0;
  EXPECT_FALSE(CommitOne(definitions).need_dictionary);
  collector.Add(At(0), thread, leaf);
  PendingBatch batch = collector.Take(At(0));
  batch.batch.sequence = 1;
  EXPECT_EQ(CommitOne(batch).sequence, 1u);
  EXPECT_EQ(CountSamples(*Reader()), 1u);
}

// Of the tables' ids, all but the nodes from `first` to `last`.
Eviction WithoutNodes(const Dictionary& d, uint32_t first, uint32_t last) {
  auto all = [](uint32_t count) { return KeptIds::FromMarks(std::vector<bool>(count, true)); };
  std::vector<bool> nodes(d.node_count(), true);
  for (uint32_t i = first; i <= last; ++i) nodes[i] = false;
  return {all(d.string_count()),     all(d.executable_count()), all(d.frame_count()),
          KeptIds::FromMarks(nodes), all(d.process_count()),    all(d.thread_count())};
}

TEST_F(SqliteStoreTest, FollowsAnEviction) {
  TestCollector collector("node-a");
  ThreadRef thread = collector.Thread(1, "a");
  collector.Add(At(-3), thread, collector.Stack({1, 2}));
  collector.Add(At(-3), thread, collector.Stack({3, 4, 5}));
  CommitOne(collector.Take(At(-3)));
  // The stack 1, 2 is nodes 1 and 2: the others become 1, 2, 3.
  collector.Evict(WithoutNodes(collector.dictionary(), 1, 2));
  EXPECT_EQ(collector.Stack({3, 4, 5}), NodeRef{3});
  collector.Add(At(-2), thread, NodeRef{3});
  collector.Add(At(-2), thread, collector.Stack({1, 2}));
  EXPECT_FALSE(CommitOne(collector.Take(At(-2))).need_dictionary);
  EXPECT_EQ(CountSamples(*Reader()), 4u);
  EXPECT_EQ(Reader()->LoadTrie(DayOf(kNow)).value()->parents.size(), 6u) << "the same nodes, by whatever number";
}

// Strings move to other numbers as everything does: their rows must move with them.
TEST_F(SqliteStoreTest, NamesAreTheRightOnesAfterAnEviction) {
  TestCollector collector("node-a");
  collector.Add(At(-3), collector.Thread(1, "first"), collector.Stack({1}));
  collector.Add(At(-3), collector.Thread(2, "second"), collector.Stack({1}));
  CommitOne(collector.Take(At(-3)));
  const Dictionary& d = collector.dictionary();
  auto without = [](uint32_t count, auto&& drop) {
    std::vector<bool> marks(count, true);
    for (uint32_t i = 1; i < count; ++i) marks[i] = !drop(i);
    return KeptIds::FromMarks(marks);
  };
  auto none = [](uint32_t) { return false; };
  // The first process, with its thread and its name.
  collector.Evict({without(d.string_count(), [&](uint32_t i) { return d.string(StringRef{i}) == "first"; }),
                   without(d.executable_count(), none), without(d.frame_count(), none), without(d.node_count(), none),
                   without(d.process_count(), [](uint32_t i) { return i == 1; }),
                   without(d.thread_count(), [](uint32_t i) { return i == 1; })});
  collector.Add(At(-2), collector.Thread(3, "third"), collector.Stack({1}));
  EXPECT_FALSE(CommitOne(collector.Take(At(-2))).need_dictionary);
  std::vector<std::string> names;
  const std::vector<ProcessRow> processes = Reader()->Processes(kAlways, nullptr).value();
  for (const ProcessRow& process : processes) names.push_back(process.comm);
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"first", "second", "third"}));
}

TEST_F(SqliteStoreTest, AnEvictionThatDoesNotFitIsRefusedAndChangesNothing) {
  TestCollector collector("node-a");
  ThreadRef thread = collector.Thread(1, "a");
  collector.Add(At(-3), thread, collector.Stack({1, 2, 3}));
  CommitOne(collector.Take(At(-3)));
  PendingBatch next = collector.Take(At(-2));
  const Eviction ok = WithoutNodes(collector.dictionary(), 3, 3);
  auto derived = [&](uint32_t from, const Eviction& eviction) {
    PendingBatch batch = next;
    batch.batch.generation = 2;
    batch.batch.derived = intake::DerivedFrom{from, eviction};
    batch.batch.before = intake::CountsAfter(eviction);
    return batch;
  };
  EXPECT_TRUE(CommitOne(derived(7, ok)).need_dictionary) << "from a generation that is not held";
  EXPECT_TRUE(CommitOne(derived(1, WithoutNodes(collector.dictionary(), 2, 2))).need_dictionary) << "3 grows from 2";
  Eviction other = ok;
  other.frames = KeptIds();
  EXPECT_TRUE(CommitOne(derived(1, other)).need_dictionary) << "of a table of another size";
  EXPECT_FALSE(CommitOne(derived(1, ok)).need_dictionary);
}

// A batch that was refused must not be overtaken: acknowledgements are cumulative, and would cover it.
TEST_F(SqliteStoreTest, RefusesABatchThatSkipsOneItsSenderStillHolds) {
  TestCollector collector("node-a");
  ThreadRef thread = collector.Thread(1, "a");
  collector.Add(At(-2), thread, collector.Stack({1}));
  CommitOne(collector.Take(At(-2)));
  collector.Add(At(-1), thread, collector.Stack({1}));
  collector.Take(At(-1));
  collector.StartGeneration();
  collector.Add(At(0), thread, collector.Stack({1}));
  PendingBatch third = collector.Take(At(0));
  ShardWriter::Outcome outcome = CommitOne(third);
  EXPECT_TRUE(outcome.need_dictionary);
  EXPECT_EQ(outcome.sequence, 1u);
  // Unless the sender had dropped the second, and counted it, when it connected.
  third.oldest_held = 3;
  EXPECT_EQ(CommitOne(third).sequence, 3u);
}

TEST_F(SqliteStoreTest, AbsurdTimesAreClampedToTheBatch) {
  TestCollector collector("node-a");
  ThreadRef thread = collector.Thread(1, "a");
  NodeRef leaf = collector.Stack({1});
  collector.Add(At(2 * 3600), thread, leaf);
  collector.Add(UnixNs{kNsPerSecond}, thread, leaf);
  PendingBatch batch = collector.Take(At(-5));
  batch.batch.samples[1].time = MonotonicNs{std::numeric_limits<int64_t>::min()};
  CommitOne(batch);
  EXPECT_EQ(CountSamples(*Reader(), {At(-5), UnixNs{At(-5).value + 1}}), 2u);

  // A batch whose own clock makes no sense is stored at the time of its arrival.
  collector.Add(At(0), thread, leaf);
  PendingBatch absurd = collector.Take(At(0));
  absurd.batch.clock.unix = UnixNs{std::numeric_limits<int64_t>::max()};
  CommitOne(absurd);
  EXPECT_EQ(CountSamples(*Reader(), {kNow, UnixNs{kNow.value + 1}}), 1u);
}

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

TEST_F(SqliteStoreTest, AReaderSeesTheMomentItWasOpened) {
  TestCollector collector("node-a");
  ThreadRef thread = collector.Thread(1, "a");
  collector.Add(At(-1), thread, collector.Stack({1, 2}));
  CommitOne(collector.Take(At(-1)));
  auto before = Reader();
  auto trie_before = before->LoadTrie(DayOf(kNow)).value();
  collector.Add(At(0), thread, collector.Stack({1, 3}));
  CommitOne(collector.Take(At(0)));
  EXPECT_EQ(CountSamples(*before), 1u);
  EXPECT_EQ(TotalsOf(*before).stored, 1u);
  auto after = Reader();
  EXPECT_EQ(CountSamples(*after), 2u);
  EXPECT_EQ(trie_before->parents.size(), 3u);
  EXPECT_EQ(after->LoadTrie(DayOf(kNow)).value()->parents.size(), 4u);
  // The older reader may be given the longer trie: ids keep their meaning.
  EXPECT_GE(before->LoadTrie(DayOf(kNow)).value()->parents.size(), 3u);
}

TEST_F(SqliteStoreTest, ExportersGoOnWhereTheyStopped) {
  TestCollector collector("node-a");
  ThreadRef thread = collector.Thread(1, "a");
  for (int i = 0; i < 10; ++i) {
    collector.Add(At(i), thread, collector.Stack({1}));
    CommitOne(collector.Take(At(i)));
  }
  EXPECT_EQ(store_->cursors().LoadCursor("otlp", 0).value(), 0);
  uint64_t seen = 0;
  auto count = [&](const SampleColumns& columns) {
    seen += columns.times.size();
    return absl::OkStatus();
  };
  int64_t cursor = Reader()->ScanCommitted(0, 4, count).value();
  EXPECT_EQ(seen, 4u);
  ASSERT_TRUE(store_->cursors().SaveCursor("otlp", 0, cursor).ok());
  Reopen();
  cursor = store_->cursors().LoadCursor("otlp", 0).value();
  cursor = Reader()->ScanCommitted(cursor, 1000, count).value();
  EXPECT_EQ(seen, 10u);
  EXPECT_EQ(Reader()->ScanCommitted(cursor, 1000, count).value(), cursor);
  EXPECT_EQ(seen, 10u);
  // A cursor beyond what was ever committed belongs to a file that is gone.
  Reader()->ScanCommitted(cursor + 100, 1000, count).value();
  EXPECT_EQ(seen, 20u);
}

TEST_F(SqliteStoreTest, ACallbacksErrorStopsAScan) {
  TestCollector collector("node-a");
  collector.Add(At(0), collector.Thread(1, "a"), collector.Stack({1}));
  CommitOne(collector.Take(At(0)));
  auto refuse = [](const auto&) { return absl::CancelledError("enough"); };
  EXPECT_TRUE(absl::IsCancelled(Reader()->ScanSamples(kAlways, refuse)));
  EXPECT_TRUE(absl::IsCancelled(Reader()->ScanSums(kAlways, refuse)));
  EXPECT_TRUE(absl::IsCancelled(Reader()->ScanCommitted(0, 10, refuse).status()));
}

TEST_F(SqliteStoreTest, OnlyOneReducerUsesADirectory) {
  auto second = SqliteStore::Open(options_, clock_, metrics_);
  ASSERT_TRUE(absl::IsAlreadyExists(second.status()));
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(std::to_string(getpid())));
  EXPECT_TRUE(absl::IsFailedPrecondition(store_->OpenWriter(0).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(store_->OpenWriter(1).status()));
}

TEST_F(SqliteStoreTest, AFileWhereTheDirectoryShouldBeIsOneClearError) {
  SqliteStoreOptions options;
  options.data_dir = directory_.path() + "/LOCK/below";
  absl::Status status = SqliteStore::Open(options, clock_, metrics_).status();
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("create data directory"));
}

TEST_F(SqliteStoreTest, RefusesAFileOfANewerRelease) {
  auto* writer = static_cast<SqliteShardWriter*>(writer_.get());
  ASSERT_TRUE(writer->database().Execute("PRAGMA user_version = 99").ok());
  writer_.reset();
  store_.reset();
  store_ = SqliteStore::Open(options_, clock_, metrics_).value();
  absl::Status status = store_->OpenWriter(0).status();
  ASSERT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("newer release"));
}

// A full disk, played by a limit on the file's pages: nothing of the group is kept, neither on disk nor in memory, and
// the same group goes in once there is room.
TEST_F(SqliteStoreTest, AFullDiskKeepsNothingAndLosesNothing) {
  auto* writer = static_cast<SqliteShardWriter*>(writer_.get());
  TestCollector collector("node-a");
  ThreadRef thread = collector.Thread(1, "a");
  collector.Add(At(-10), thread, collector.Stack({1, 2}));
  CommitOne(collector.Take(At(-10)));
  ASSERT_TRUE(writer->database().Execute("PRAGMA incremental_vacuum").ok()) << "what migrations left over";
  const int64_t pages = writer->database().QueryInt("PRAGMA page_count").value();
  ASSERT_TRUE(writer->database().QueryInt("PRAGMA max_page_count = " + std::to_string(pages)).ok());

  std::vector<PendingBatch> group;
  for (uint64_t i = 0; i < 5; ++i) {
    for (uint64_t j = 0; j < 2000; ++j) {
      // Values and stacks that do not compress, so that the pages run out.
      const uint64_t noise = (i * 2000 + j) * 0x9e3779b97f4a7c15;
      collector.Add(At(-5 + static_cast<int64_t>(i)), collector.Thread(static_cast<int>(2 + j % 50), "t"),
                    collector.Stack({1, noise}), noise);
    }
    group.push_back(collector.Take(At(-4 + static_cast<int64_t>(i))));
  }
  for (int attempt = 0; attempt < 3; ++attempt) {
    EXPECT_TRUE(absl::IsResourceExhausted(writer_->Commit(group).status()));
    EXPECT_EQ(TotalsOf(*Reader()).stored, 1u);
    EXPECT_EQ(CountSamples(*Reader()), 1u);
  }
  EXPECT_EQ(writer_->FindSession(collector.info().session_id)->durable_sequence, 1u);

  ASSERT_TRUE(writer->database().QueryInt("PRAGMA max_page_count = 1000000").ok());
  auto outcomes = writer_->Commit(group);
  ASSERT_TRUE(outcomes.ok()) << outcomes.status();
  for (const ShardWriter::Outcome& outcome : *outcomes) EXPECT_FALSE(outcome.need_dictionary);
  EXPECT_EQ(outcomes->back().sequence, 6u);
  Totals totals = TotalsOf(*Reader());
  EXPECT_EQ(totals.stored, 10'001u);
  EXPECT_EQ(totals.captured, totals.stored);
  EXPECT_EQ(CountSamples(*Reader()), totals.stored);
  EXPECT_EQ(Reader()->Processes(kAlways, nullptr)->size(), 51u);
}

TEST_F(SqliteStoreTest, SessionsThatDoNotFitInMemoryAreAskedForTheirDictionaryAgain) {
  options_.sessions_max = 2;
  Reopen();
  std::vector<std::unique_ptr<TestCollector>> collectors;
  for (uint8_t i = 1; i <= 3; ++i) {
    collectors.push_back(std::make_unique<TestCollector>("node-" + std::to_string(i), i));
    collectors.back()->Add(At(0), collectors.back()->Thread(1, "a"), collectors.back()->Stack({1}));
    EXPECT_FALSE(CommitOne(collectors.back()->Take(At(0))).need_dictionary);
  }
  ThreadRef thread = collectors[0]->Thread(1, "a");
  collectors[0]->Add(At(1), thread, collectors[0]->Stack({1}));
  PendingBatch batch = collectors[0]->Take(At(1));
  ShardWriter::Outcome outcome = CommitOne(batch);
  EXPECT_TRUE(outcome.need_dictionary);
  EXPECT_EQ(outcome.sequence, 1u);
  collectors[0]->StartGeneration();
  EXPECT_EQ(CommitOne(collectors[0]->Resend(batch)).sequence, 2u);
  EXPECT_EQ(TotalsOf(*Reader()).stored, 4u);
}

TEST_F(SqliteStoreTest, AFullTrieCutsStacksAndDropsNoSample) {
  options_.nodes_per_day_max = 4;  // the root and three more
  Reopen();
  TestCollector collector("node-a");
  ThreadRef thread = collector.Thread(1, "a");
  collector.Add(At(0), thread, collector.Stack({1, 2, 3}));
  collector.Add(At(0), thread, collector.Stack({1, 2, 4, 5}));
  CommitOne(collector.Take(At(0)));
  std::vector<NodeNo> nodes;
  ASSERT_TRUE(Reader()
                  ->ScanSamples(kAlways,
                                [&](const SampleColumns& columns) {
                                  nodes = columns.nodes;
                                  return absl::OkStatus();
                                })
                  .ok());
  auto trie = Reader()->LoadTrie(DayOf(kNow)).value();
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(trie->parents.size(), 4u);
  EXPECT_EQ(trie->parents[nodes[0].value], nodes[1]) << "the second sample stands at the deepest node they share";
}

TEST_F(SqliteStoreTest, SessionsFollowTheirNodeWhenTheNumberOfShardsChanges) {
  std::vector<std::unique_ptr<TestCollector>> collectors;
  for (uint8_t i = 1; i <= 8; ++i) {
    collectors.push_back(std::make_unique<TestCollector>("node-" + std::to_string(i), i));
    collectors.back()->Add(At(0), collectors.back()->Thread(1, "a"), collectors.back()->Stack({1}));
    collectors.back()->Lose(LossReason::kRingFull, i);
    CommitOne(collectors.back()->Take(At(0)));
  }
  writer_.reset();
  store_.reset();
  options_.shards = 3;
  store_ = SqliteStore::Open(options_, clock_, metrics_).value();
  ASSERT_EQ(store_->shard_count(), 3u);
  std::vector<std::unique_ptr<ShardWriter>> writers;
  for (uint32_t shard = 0; shard < 3; ++shard) writers.push_back(store_->OpenWriter(shard).value());
  Totals totals;
  for (uint32_t shard = 0; shard < 3; ++shard) {
    Totals of_shard = TotalsOf(*Reader(shard));
    totals.captured += of_shard.captured;
    totals.stored += of_shard.stored;
    totals.lost += of_shard.lost;
  }
  EXPECT_EQ(totals.captured, 8u + 36u);
  EXPECT_EQ(totals.stored, 8u);
  EXPECT_EQ(totals.lost, 36u);
  EXPECT_EQ(CountSamples(*Reader(0)), 8u) << "data stay where they were written";
  for (const auto& collector : collectors) {
    const uint32_t shard = ShardOf(collector->info().node_id, 3);
    EXPECT_EQ(writers[shard]->FindSession(collector->info().session_id)->durable_sequence, 1u);
  }
  // Fewer again: the files of more shards stay readable.
  writers.clear();
  store_.reset();
  options_.shards = 1;
  store_ = SqliteStore::Open(options_, clock_, metrics_).value();
  EXPECT_EQ(store_->shard_count(), 3u);
  EXPECT_EQ(TotalsOf(*Reader(0)).stored, 8u);
}

}  // namespace
}  // namespace tributary::store
