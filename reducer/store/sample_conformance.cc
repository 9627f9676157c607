#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "reducer/store/store_conformance_testing.h"

// Batches, their definitions and their outcomes.

namespace tributary::store {
namespace {

TEST_P(SampleConformance, SamplesComeBackInStoreIds) {
  TestCollector collector("node-a");
  ThreadRef thread = collector.Thread(42, "worker");
  NodeRef leaf = collector.Stack({0x1000, 0x2000, 0x3000});
  collector.Add(At(-2), thread, leaf, 7);
  collector.Add(At(-1), thread, collector.Stack({0x1000, 0x2000}), 9, Ending::kUnknown);
  collector.Lose(LossReason::kRingFull, 3);
  RowBatch batch = collector.Take(At(0));
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
  ASSERT_EQ(trie.parents.size(), 5u) << "a leaf and a caller at one address are two frames";
  const NodeNo node = chunks[0].nodes[0];
  const FrameRow& frame = trie.frame_rows[trie.frames[node.value]];
  EXPECT_EQ(frame.address, 0x3000u);
  EXPECT_FALSE(frame.is_caller);
  EXPECT_EQ(reader->Executables().value()[frame.executable.value].path, "/lib/libc.so");
  EXPECT_EQ(reader->Executable(frame.executable)->path, "/lib/libc.so");
  EXPECT_EQ(reader->Executable(frame.executable)->id, reader->Executables().value()[frame.executable.value].id);
  EXPECT_EQ(reader->Executable(ExecutableNo{})->path, "");
  EXPECT_EQ(reader->Executable(ExecutableNo{999})->path, "");
  EXPECT_EQ(trie.frame_rows[trie.frames[trie.parents[node.value].value]].address, 0x2000u);

  auto processes = reader->Processes(kAlways, nullptr).value();
  ASSERT_EQ(processes.size(), 1u);
  EXPECT_EQ(processes[0].no, chunks[0].processes[0]);
  EXPECT_EQ(processes[0].pid, Pid{42});
  EXPECT_EQ(processes[0].comm, "worker");
  EXPECT_EQ(processes[0].container_id, "c0ffee");
  EXPECT_EQ(processes[0].host_name, "host-of-node-a");
  EXPECT_LE(processes[0].as_of, At(-1));
  EXPECT_GT(processes[0].as_of, At(-700)) << "within a slot";
  auto threads = reader->Threads(kAlways, {processes[0].no}).value();
  ASSERT_EQ(threads.size(), 1u);
  EXPECT_EQ(threads[0].no, chunks[0].threads[0]);
  EXPECT_EQ(threads[0].name, "worker");

  auto nodes = reader->Nodes().value();
  ASSERT_EQ(nodes.size(), 1u);
  EXPECT_NE(nodes[0].booted.value, 0);
  EXPECT_EQ(nodes[0].accounting.captured, 5u);
  EXPECT_EQ(nodes[0].stored, 2u);
  EXPECT_EQ(nodes[0].accounting.lost[static_cast<size_t>(LossReason::kRingFull)], 3u);
  EXPECT_EQ(nodes[0].endings[static_cast<size_t>(Ending::kComplete)], 1u);
  EXPECT_EQ(nodes[0].wire_bytes, 1234u);
  EXPECT_EQ(nodes[0].last_seen, kNow);
}

TEST_P(SampleConformance, EndingsAreKeptAndCounted) {
  TestCollector collector("node-a");
  ThreadRef thread = collector.Thread(1, "a");
  NodeRef leaf = collector.Stack({1, 2});
  for (uint8_t i = 0; i < kEndingCount; ++i) collector.Add(At(-1), thread, leaf, 7, static_cast<Ending>(i));
  collector.Add(At(-1), thread, leaf, 7, Ending::kBadRow);
  RowBatch batch = collector.Take(At(0));
  RowBatch again = collector.Resend(batch);
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

TEST_P(SampleConformance, DuplicateBatchesChangeNothing) {
  TestCollector collector("node-a");
  ThreadRef thread = collector.Thread(1, "a");
  collector.Add(At(-1), thread, collector.Stack({1, 2}));
  RowBatch first = collector.Take(At(0));
  collector.Add(At(0), thread, collector.Stack({1, 3}));
  RowBatch second = collector.Take(At(1));
  CommitOne(first);
  CommitOne(second);
  // After a reconnect the dictionary is known, so the same samples come without definitions.
  RowBatch first_again = collector.Resend(first), second_again = collector.Resend(second);
  EXPECT_EQ(CommitOne(first_again).sequence, 2u);
  EXPECT_EQ(CommitOne(second_again).sequence, 2u);
  EXPECT_EQ(CountSamples(*Reader()), 2u);
  EXPECT_EQ(TotalsOf(*Reader()).stored, 2u);
}

TEST_P(SampleConformance, OneGroupMayHoldABatchTwice) {
  TestCollector collector("node-a");
  collector.Add(At(-1), collector.Thread(1, "a"), collector.Stack({1, 2}));
  RowBatch batch = collector.Take(At(0));
  RowBatch again = collector.Resend(batch);
  std::vector<RowBatch> group;
  group.push_back(batch);
  group.push_back(again);
  auto outcomes = writer_->Commit(group).value();
  ASSERT_EQ(outcomes.size(), 2u);
  EXPECT_FALSE(outcomes[1].need_dictionary);
  EXPECT_EQ(TotalsOf(*Reader()).stored, 1u);
}

TEST_P(SampleConformance, AsksForTheDictionaryWhenDefinitionsDoNotContinue) {
  TestCollector collector("node-a");
  ThreadRef thread = collector.Thread(1, "a");
  collector.Add(At(-2), thread, collector.Stack({1, 2}));
  CommitOne(collector.Take(At(-2)));
  collector.Add(At(-1), thread, collector.Stack({1, 3}));
  RowBatch second = collector.Take(At(-1));  // lost on the way
  collector.Add(At(0), thread, collector.Stack({1, 4}));
  RowBatch third = collector.Take(At(0));
  ShardWriter::Outcome outcome = CommitOne(third);
  EXPECT_TRUE(outcome.need_dictionary);
  EXPECT_EQ(outcome.sequence, 1u);
  EXPECT_EQ(TotalsOf(*Reader()).stored, 1u);

  collector.StartGeneration();
  EXPECT_FALSE(CommitOne(collector.Resend(second)).need_dictionary);
  EXPECT_FALSE(CommitOne(collector.Resend(third)).need_dictionary);
  EXPECT_EQ(TotalsOf(*Reader()).stored, 3u);
  auto processes = Reader()->Processes(kAlways, nullptr).value();
  ASSERT_EQ(processes.size(), 2u) << "each generation defines its processes again";
  EXPECT_EQ(processes[0].pid, processes[1].pid);
  EXPECT_EQ(processes[0].start_time_ns, processes[1].start_time_ns);
}

TEST_P(SampleConformance, RefusesUndefinedReferences) {
  TestCollector collector("node-a");
  collector.Add(At(0), ThreadRef{7}, NodeRef{});
  EXPECT_TRUE(CommitOne(collector.Take(At(0))).need_dictionary);
  collector.Add(At(0), ThreadRef{}, NodeRef{1000});
  EXPECT_TRUE(CommitOne(collector.Take(At(0))).need_dictionary);
  TestCollector liar("node-b", 2);
  RowBatch batch = liar.Take(At(0));
  batch.definitions.nodes.push_back({NodeRef{5}, FrameRef{}});
  EXPECT_TRUE(CommitOne(batch).need_dictionary);
  EXPECT_TRUE(Reader()->Nodes()->empty());
}

TEST_P(SampleConformance, ARestartKeepsMarksAndAsksForDictionaries) {
  TestCollector collector("node-a");
  ThreadRef thread = collector.Thread(1, "a");
  collector.Add(At(-2), thread, collector.Stack({1, 2}));
  CommitOne(collector.Take(At(-2)));
  collector.Add(At(-1), thread, collector.Stack({1, 2}));
  RowBatch second = collector.Take(At(-1));
  Reopen();
  EXPECT_EQ(writer_->FindSession(collector.info().session_id)->durable_sequence, 1u);
  const uint8_t unknown[16] = {9};
  EXPECT_TRUE(absl::IsNotFound(writer_->FindSession(unknown).status()));
  EXPECT_TRUE(CommitOne(second).need_dictionary);
  collector.StartGeneration();
  EXPECT_EQ(CommitOne(collector.Resend(second)).sequence, 2u);
  Totals totals = TotalsOf(*Reader());
  EXPECT_EQ(totals.captured, totals.stored);
  EXPECT_EQ(Reader()->LoadTrie(DayOf(kNow)).value().parents.size(), 3u) << "the new sample uses the stored nodes";
}

TEST_P(SampleConformance, DefinitionsMayComeBeforeTheirBatch) {
  TestCollector collector("node-a");
  ThreadRef thread = collector.Thread(1, "a");
  NodeRef leaf = collector.Stack({1, 2});
  RowBatch definitions = collector.Take(At(0));
  definitions.sequence = 0;
  EXPECT_FALSE(CommitOne(definitions).need_dictionary);
  collector.Add(At(0), thread, leaf);
  RowBatch batch = collector.Take(At(0));
  batch.sequence = 1;
  EXPECT_EQ(CommitOne(batch).sequence, 1u);
  EXPECT_EQ(CountSamples(*Reader()), 1u);
}

// Keeps all ids of the tables except the nodes from `first` to `last`.
Eviction WithoutNodes(const Dictionary& d, uint32_t first, uint32_t last) {
  auto all = [](uint32_t count) { return KeptIds::FromMarks(std::vector<bool>(count, true)); };
  std::vector<bool> nodes(d.node_count(), true);
  for (uint32_t i = first; i <= last; ++i) nodes[i] = false;
  return {all(d.string_count()),     all(d.executable_count()), all(d.frame_count()),
          KeptIds::FromMarks(nodes), all(d.process_count()),    all(d.thread_count())};
}

TEST_P(SampleConformance, FollowsAnEviction) {
  TestCollector collector("node-a");
  ThreadRef thread = collector.Thread(1, "a");
  collector.Add(At(-3), thread, collector.Stack({1, 2}));
  collector.Add(At(-3), thread, collector.Stack({3, 4, 5}));
  CommitOne(collector.Take(At(-3)));
  // The stack 1, 2 has the nodes 1 and 2. The other nodes become 1, 2, 3.
  collector.Evict(WithoutNodes(collector.dictionary(), 1, 2));
  EXPECT_EQ(collector.Stack({3, 4, 5}), NodeRef{3});
  collector.Add(At(-2), thread, NodeRef{3});
  collector.Add(At(-2), thread, collector.Stack({1, 2}));
  EXPECT_FALSE(CommitOne(collector.Take(At(-2))).need_dictionary);
  EXPECT_EQ(CountSamples(*Reader()), 4u);
  EXPECT_EQ(Reader()->LoadTrie(DayOf(kNow)).value().parents.size(), 6u) << "the same stacks make no new nodes";
}

// Strings get new numbers, as all definitions do. Their store ids must move with them.
TEST_P(SampleConformance, NamesStayRightAfterAnEviction) {
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
  // Evicts the first process, with its thread and its name.
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

TEST_P(SampleConformance, AMismatchedEvictionIsRefusedAndChangesNothing) {
  TestCollector collector("node-a");
  ThreadRef thread = collector.Thread(1, "a");
  collector.Add(At(-3), thread, collector.Stack({1, 2, 3}));
  CommitOne(collector.Take(At(-3)));
  RowBatch next = collector.Take(At(-2));
  const Eviction ok = WithoutNodes(collector.dictionary(), 3, 3);
  auto derived = [&](uint32_t from, const Eviction& eviction) {
    RowBatch batch = next;
    batch.generation = 2;
    batch.derived = DerivedFrom{from, eviction};
    batch.before = eviction.after();
    return batch;
  };
  EXPECT_TRUE(CommitOne(derived(7, ok)).need_dictionary) << "the writer does not have generation 7";
  EXPECT_TRUE(CommitOne(derived(1, WithoutNodes(collector.dictionary(), 2, 2))).need_dictionary) << "3 grows from 2";
  Eviction other = ok;
  other.frames = KeptIds();
  EXPECT_TRUE(CommitOne(derived(1, other)).need_dictionary) << "the eviction expects a table of another size";
  EXPECT_FALSE(CommitOne(derived(1, ok)).need_dictionary);
}

// No batch may overtake a refused batch: acknowledgements are cumulative, and would cover the refused one.
TEST_P(SampleConformance, RefusesToSkipABatchHeldByItsSender) {
  TestCollector collector("node-a");
  ThreadRef thread = collector.Thread(1, "a");
  collector.Add(At(-2), thread, collector.Stack({1}));
  CommitOne(collector.Take(At(-2)));
  collector.Add(At(-1), thread, collector.Stack({1}));
  collector.Take(At(-1));
  collector.StartGeneration();
  collector.Add(At(0), thread, collector.Stack({1}));
  RowBatch third = collector.Take(At(0));
  ShardWriter::Outcome outcome = CommitOne(third);
  EXPECT_TRUE(outcome.need_dictionary);
  EXPECT_EQ(outcome.sequence, 1u);
  // The store accepts the batch if the sender had dropped and counted the second one when it connected.
  third.oldest_held = 3;
  EXPECT_EQ(CommitOne(third).sequence, 3u);
}

TEST_P(SampleConformance, AbsurdTimesAreClampedToTheBatch) {
  TestCollector collector("node-a");
  ThreadRef thread = collector.Thread(1, "a");
  NodeRef leaf = collector.Stack({1});
  collector.Add(At(2 * 3600), thread, leaf);
  collector.Add(UnixNs{kNsPerSecond}, thread, leaf);
  RowBatch batch = collector.Take(At(-5));
  batch.samples[1].time = MonotonicNs{std::numeric_limits<int64_t>::min()};
  CommitOne(batch);
  EXPECT_EQ(CountSamples(*Reader(), {At(-5), UnixNs{At(-5).value + 1}}), 2u);

  // A batch with an absurd clock is stored at the time of its arrival.
  collector.Add(At(0), thread, leaf);
  RowBatch absurd = collector.Take(At(0));
  absurd.clock.unix = UnixNs{std::numeric_limits<int64_t>::max()};
  CommitOne(absurd);
  EXPECT_EQ(CountSamples(*Reader(), {kNow, UnixNs{kNow.value + 1}}), 1u);
}

TEST_P(SampleConformance, AReaderSeesTheMomentItWasOpened) {
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
  EXPECT_EQ(trie_before.parents.size(), 3u);
  EXPECT_EQ(after->LoadTrie(DayOf(kNow)).value().parents.size(), 4u);
  // The older reader may get the longer trie, because ids keep their meaning.
  EXPECT_GE(before->LoadTrie(DayOf(kNow)).value().parents.size(), 3u);
}

TEST_P(SampleConformance, ExportersContinueAtTheirCursor) {
  TestCollector collector("node-a");
  ThreadRef thread = collector.Thread(1, "a");
  for (int i = 0; i < 10; ++i) {
    collector.Add(At(i), thread, collector.Stack({1}));
    CommitOne(collector.Take(At(i)));
  }
  EXPECT_EQ(store_->positions().LoadPosition("otlp", 0).value(), std::nullopt);
  uint64_t seen = 0;
  auto count = [&](const SampleColumns& columns, const Cursor& begin) {
    EXPECT_EQ(begin.samples, seen % 10);
    EXPECT_EQ(begin.rows, 0u);
    seen += columns.times.size();
    return absl::OkStatus();
  };
  Cursor cursor = Reader()->ScanCommitted({}, 4, count).value().next;
  EXPECT_EQ(seen, 4u);
  ASSERT_TRUE(store_->positions().SavePosition("otlp", 0, {.cursor = cursor}).ok());
  Reopen();
  EXPECT_EQ(store_->positions().LoadPosition("otlp", 0).value()->cursor, cursor);
  cursor = Reader()->ScanCommitted(cursor, 1000, count).value().next;
  EXPECT_EQ(seen, 10u);
  EXPECT_EQ(cursor.samples, 10u);
  EXPECT_EQ(Reader()->ScanCommitted(cursor, 1000, count).value().next, cursor);
  EXPECT_EQ(seen, 10u);
  // A cursor beyond everything ever committed belongs to a file that no longer exists.
  cursor.chunk += 100;
  EXPECT_EQ(Reader()->ScanCommitted(cursor, 1000, count).value().expired_chunks, 0u);
  EXPECT_EQ(seen, 20u);
}

TEST_P(SampleConformance, ACallbacksErrorStopsAScan) {
  TestCollector collector("node-a");
  collector.Add(At(0), collector.Thread(1, "a"), collector.Stack({1}));
  CommitOne(collector.Take(At(0)));
  auto refuse = [](const auto&...) { return absl::CancelledError("enough"); };
  EXPECT_TRUE(absl::IsCancelled(Reader()->ScanSamples(kAlways, refuse)));
  EXPECT_TRUE(absl::IsCancelled(Reader()->ScanSums(kAlways, refuse)));
  EXPECT_TRUE(absl::IsCancelled(Reader()->ScanCommitted({}, 10, refuse).status()));
}

}  // namespace
}  // namespace tributary::store
