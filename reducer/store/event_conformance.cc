#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/status.h"
#include "reducer/store/store_conformance_testing.h"

// Process events: what a reader gets back, their accounting, and their retention.

namespace tributary::store {

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string Describe(const ProcessEventRow& e) {
  return fmt::format(
      "{} {} {}/{} pid={} parent={} start={} uid={} {} {} {} {} events={} processes={} {}/{}/{}/{} {} {} {} {}",
      e.time.value / kNsPerSecond - kNow.value / kNsPerSecond, ProcessEventKindName(e.kind), std::string(e.node_id),
      std::string(e.host_name), e.pid.value, e.parent.value, e.start_time_ns, e.uid, std::string(e.name),
      std::string(e.executable_path), std::string(e.container_id), std::string(e.cgroup_path), e.events, e.processes,
      e.end.exit_code, e.end.signal, e.end.core_dumped, e.end.oom_killed, e.end.run_ns, e.end.user_ns, e.end.system_ns,
      e.end.peak_rss_bytes);
}

}  // namespace

std::vector<std::string> EventConformance::Events(TimeRange range) {
  std::vector<std::pair<UnixNs, std::string>> rows;
  const auto reader = Reader();
  const absl::Status status = reader->ScanEvents(range, [&](const ProcessEventRow& row) {
    EXPECT_GE(row.time, range.from);
    EXPECT_LT(row.time, range.to);
    rows.emplace_back(row.time, Describe(row));
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> texts;
  for (auto& [time, text] : rows) texts.push_back(std::move(text));
  return texts;
}

std::vector<std::string> EventConformance::Committed(int64_t* cursor, size_t events_max) {
  std::vector<std::string> names;
  const auto reader = Reader();
  const absl::StatusOr<int64_t> next =
      reader->ScanCommittedEvents(*cursor, events_max, [&](const ProcessEventRow& row) {
        names.emplace_back(row.name);
        return absl::OkStatus();
      });
  EXPECT_TRUE(next.ok()) << next.status();
  *cursor = next.value_or(0);
  return names;
}

namespace {

TEST_P(EventConformance, EventsComeBackAsTheyWereSent) {
  TestCollector collector("node-a");
  ProcessEvent start = collector.Event(ProcessEventKind::kStart, 7, "sh");
  start.uid = 1000;
  collector.Add(At(-9), start);
  collector.Add(At(-8), collector.Event(ProcessEventKind::kExec, 7, "make"));
  ProcessEvent exit = collector.Event(ProcessEventKind::kExit, 7, "make");
  exit.end = {.exit_code = 0,
              .signal = 9,
              .core_dumped = true,
              .oom_killed = true,
              .run_ns = 1'000'000'001,
              .user_ns = 2,
              .system_ns = 3,
              .peak_rss_bytes = 4096};
  collector.Add(At(-7), exit);
  collector.Add(At(-6), {.kind = ProcessEventKind::kSeenRunning, .pid = Pid{2}, .start_time_ns = 5});
  collector.Add(At(-5), {.kind = ProcessEventKind::kEndUnknown, .pid = Pid{2}, .start_time_ns = 5});
  ProcessEvent sum = collector.Event(ProcessEventKind::kSum, 0, "true");
  sum.parent = Pid{};
  sum.events = 300;
  sum.processes = 100;
  sum.end = {.exit_code = 1, .run_ns = 700, .peak_rss_bytes = UINT64_MAX};
  collector.Add(At(-4), sum);
  Commit(collector.Take(At(0)));
  EXPECT_THAT(
      Events(),
      ElementsAre("-9 start node-a/host-of-node-a pid=7 parent=1 start=7000 uid=1000 sh /bin/sh c0ffee /docker/c0ffee "
                  "events=1 processes=1 0/0/false/false 0 0 0 0",
                  "-8 exec node-a/host-of-node-a pid=7 parent=1 start=7000 uid=0 make /bin/make c0ffee /docker/c0ffee "
                  "events=1 processes=1 0/0/false/false 0 0 0 0",
                  "-7 exit node-a/host-of-node-a pid=7 parent=1 start=7000 uid=0 make /bin/make c0ffee /docker/c0ffee "
                  "events=1 processes=1 0/9/true/true 1000000001 2 3 4096",
                  "-6 seen_running node-a/host-of-node-a pid=2 parent=0 start=5 uid=0     events=1 processes=1 "
                  "0/0/false/false 0 0 0 0",
                  "-5 end_unknown node-a/host-of-node-a pid=2 parent=0 start=5 uid=0     events=1 processes=1 "
                  "0/0/false/false 0 0 0 0",
                  "-4 sum node-a/host-of-node-a pid=0 parent=0 start=0 uid=0 true /bin/true c0ffee /docker/c0ffee "
                  "events=300 processes=100 1/0/false/false 700 0 0 18446744073709551615"));
  const std::vector<std::string> before = Events();
  Reopen();
  EXPECT_EQ(Events(), before) << "after a restart";
}

// Only sampled processes have a row, and events are not samples.
TEST_P(EventConformance, EventsAddNeitherProcessesNorSampleTypes) {
  TestCollector collector("node-a");
  collector.Add(At(0), collector.Event(ProcessEventKind::kStart, 7, "sh"));
  Commit(collector.Take(At(0)));
  EXPECT_THAT(Events(), SizeIs(1));
  EXPECT_TRUE(Reader()->Processes(kAlways, nullptr)->empty());
  EXPECT_TRUE(Reader()->SampleTypes()->empty());
  EXPECT_EQ(Reader()->Executables()->size(), 1u);
  EXPECT_EQ(CountSamples(*Reader()), 0u);
  EXPECT_EQ(Count("tributary_reducer_committed_samples_total"), 0u);
}

TEST_P(EventConformance, RangesIncludeOnlyTheirBegin) {
  TestCollector collector("node-a");
  for (int i = 0; i < 40; ++i) collector.Add(At(i * 60), collector.Event(ProcessEventKind::kStart, 100 + i, "sh"));
  clock_.Advance(40 * kNsPerMinute);
  Commit(collector.Take(At(40 * 60)));
  EXPECT_THAT(Events({At(120), At(300)}), SizeIs(3));
  EXPECT_THAT(Events({At(-100), At(1)}), SizeIs(1));
  EXPECT_THAT(Events({At(60), At(60)}), IsEmpty());
  EXPECT_THAT(Events({At(120), At(60)}), IsEmpty());
  size_t events = 0;
  for (int64_t at = -100; at < 50 * 60; at += 77) events += Events({At(at), At(at + 77)}).size();
  EXPECT_EQ(events, 40u) << "adjacent ranges share no event";
}

TEST_P(EventConformance, ADuplicateChangesNothing) {
  TestCollector collector("node-a");
  collector.Add(At(-2), collector.Event(ProcessEventKind::kStart, 7, "sh"));
  const RowBatch batch = collector.Take(At(-1));
  Commit(batch);
  collector.StartGeneration();
  const RowBatch again = collector.Resend(batch);
  Commit(again);
  EXPECT_THAT(Events(), SizeIs(1));
  EXPECT_EQ(Stored().events(), 1u);
  EXPECT_EQ(Count("tributary_reducer_committed_events_total"), 1u);
  EXPECT_EQ(Count("tributary_reducer_duplicate_batches_total"), 1u);
}

TEST_P(EventConformance, AnUndefinedTextIsRefused) {
  const auto refused = [this](StringRef ProcessEvent::* text) {
    TestCollector collector("node-a");
    ProcessEvent event = collector.Event(ProcessEventKind::kStart, 7, "sh");
    (event.*text).value = 1000;
    collector.Add(At(0), event);
    return CommitOne(collector.Take(At(0))).need_dictionary;
  };
  EXPECT_TRUE(refused(&ProcessEvent::name));
  EXPECT_TRUE(refused(&ProcessEvent::executable_path));
  EXPECT_TRUE(refused(&ProcessEvent::container_id));
  EXPECT_TRUE(refused(&ProcessEvent::cgroup_path));
  EXPECT_THAT(Events(), IsEmpty());
}

// captured = stored + lost, for events apart from samples.
TEST_P(EventConformance, TheLawHoldsForEvents) {
  TestCollector collector("node-a");
  collector.Add(At(0), collector.Thread(1, "a"), collector.Stack({1}));
  collector.Add(At(0), collector.Event(ProcessEventKind::kStart, 7, "sh"));
  ProcessEvent sum = collector.Event(ProcessEventKind::kSum, 0, "true");
  sum.events = 30;
  collector.Add(At(0), sum);
  SampleCounts lost = 2;
  lost.AddEvents(4);
  collector.Lose(LossReason::kEventOverflow, lost);
  Commit(collector.Take(At(0)));
  for (int i = 0; i < 2; ++i, Reopen()) {
    EXPECT_EQ(Accounting().captured.events(), 35u);
    EXPECT_EQ(Accounting().LostFor(LossReason::kEventOverflow).events(), 4u);
    EXPECT_EQ(Stored().events(), 31u);
    EXPECT_EQ(Accounting().captured.total(), 3u);
    EXPECT_EQ(Accounting().TotalLost().total(), 2u);
    EXPECT_EQ(Stored().total(), 1u);
  }
  EXPECT_EQ(Count("tributary_reducer_committed_events_total"), 31u);
  EXPECT_EQ(Count("tributary_reducer_committed_samples_total"), 1u);
}

TEST_P(EventConformance, MissingEventsOfAClosedSessionAreLost) {
  TestCollector killed("node-a", 1), next("node-a", 2);
  killed.Add(At(0), killed.Event(ProcessEventKind::kStart, 7, "sh"));
  Commit(killed.Take(At(0)));
  next.Add(At(1), next.Event(ProcessEventKind::kStart, 8, "sh"));
  RowBatch batch = next.Take(At(1));
  SampleCounts captured = 3;
  captured.AddEvents(11);
  batch.closes.push_back({killed.info().session_id, captured, LossReason::kCollectorKilled});
  Commit(batch);
  Reopen();
  EXPECT_EQ(Accounting().captured.events(), 12u);
  EXPECT_EQ(Accounting().LostFor(LossReason::kCollectorKilled).events(), 10u);
  EXPECT_EQ(Accounting().LostFor(LossReason::kCollectorKilled).total(), 3u);
  EXPECT_EQ(Stored().events(), 2u);
}

// A machine with more types than the limit still has its events under their own key.
TEST_P(EventConformance, EventsNeedNoPlaceAmongTheTypes) {
  constexpr auto kMine = static_cast<SampleType>(9);
  TestCollector collector("node-a");
  for (uint64_t i = 0; i < kSampleTypesMax + 2; ++i) {
    collector.Add(At(0), collector.Thread(1, "a"), collector.Stack({1}));
    if (i > kSampleTypesMax) collector.Add(At(0), collector.Event(ProcessEventKind::kStart, 7, "sh"));
    RowBatch batch = collector.Take(At(0));
    batch.samples[0].type = kMine;
    batch.sample_types = {{kMine, {"type" + std::to_string(i), "things"}}};
    Commit(batch);
  }
  Reopen();
  EXPECT_EQ(Stored().events(), 1u);
  EXPECT_EQ(Accounting().captured.events(), 1u);
  EXPECT_EQ(Stored().Of(kUndefinedType), 2u);
  EXPECT_EQ(Stored().parts().size(), kSampleTypesMax + 2) << "types, the unknown type, and events";
}

// Neither type number 0 nor an empty type name makes a sample an event.
TEST_P(EventConformance, ASampleWithoutATypeIsNoEvent) {
  constexpr auto kMine = static_cast<SampleType>(9);
  TestCollector collector("node-a");
  for (int i = 0; i < 2; ++i) collector.Add(At(0), collector.Thread(1, "a"), collector.Stack({1}));
  RowBatch batch = collector.Take(At(0));
  batch.samples[0].type = SampleType{};
  batch.samples[1].type = kMine;
  batch.sample_types = {{SampleType{}, SampleTypeInfo{}}, {kMine, SampleTypeInfo{}}};
  Commit(batch);
  EXPECT_EQ(Stored().events(), 0u);
  EXPECT_EQ(Stored().Of(kUndefinedType), 2u);
  EXPECT_TRUE(Reader()->SampleTypes()->empty());
}

TEST_P(EventConformance, EventsOfSeveralMachinesStayApart) {
  TestCollector a("node-a", 1), b("node-b", 2);
  a.Add(At(-2), a.Event(ProcessEventKind::kStart, 7, "sh"));
  b.Add(At(-1), b.Event(ProcessEventKind::kStart, 7, "sh"));
  b.Add(At(0), b.Event(ProcessEventKind::kExit, 7, "sh"));
  const RowBatch group[] = {a.Take(At(0)), b.Take(At(0))};
  ASSERT_TRUE(writer_->Commit(group).ok());
  std::map<std::string, int> events;
  const auto reader = Reader();
  ASSERT_TRUE(reader
                  ->ScanEvents(kAlways,
                               [&](const ProcessEventRow& row) {
                                 ++events[std::string(row.node_id) + " " + std::string(row.host_name)];
                                 return absl::OkStatus();
                               })
                  .ok());
  EXPECT_EQ(events, (std::map<std::string, int>{{"node-a host-of-node-a", 1}, {"node-b host-of-node-b", 2}}));
  const std::vector<NodeStatus> nodes = reader->Nodes().value();
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[0].stored.events() + 2 * nodes[1].stored.events(), 5u);
}

TEST_P(EventConformance, TheVisitorCanStopAScan) {
  TestCollector collector("node-a");
  for (int i = 0; i < 10; ++i) collector.Add(At(i), collector.Event(ProcessEventKind::kStart, 7 + i, "sh"));
  Commit(collector.Take(At(10)));
  int visits = 0;
  const auto stop = [&](const ProcessEventRow&) -> absl::Status {
    return ++visits == 3 ? Error(absl::StatusCode::kCancelled, "enough") : absl::OkStatus();
  };
  EXPECT_EQ(Reader()->ScanEvents(kAlways, stop).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(visits, 3);
  visits = 0;
  EXPECT_EQ(Reader()->ScanCommittedEvents(0, 100, stop).status().code(), absl::StatusCode::kCancelled);
}

// Exporters see chunks in the order of their commits, whatever their time.
TEST_P(EventConformance, CommittedEventsComeInTheOrderOfCommits) {
  TestCollector collector("node-a");
  const int64_t seconds[] = {0, -7200, 5, -3600, 7};
  const char* const names[] = {"a", "b", "c", "d", "e"};
  int64_t cursor = 0;
  EXPECT_THAT(Committed(&cursor, 10), IsEmpty());
  EXPECT_EQ(cursor, 0);
  for (size_t i = 0; i < std::size(names); ++i) {
    collector.Add(At(seconds[i]), collector.Event(ProcessEventKind::kStart, 7, names[i]));
    Commit(collector.Take(At(10)));
  }
  EXPECT_THAT(Committed(&cursor, 2), ElementsAre("a", "b"));
  Reopen();
  collector.StartGeneration();
  EXPECT_THAT(Committed(&cursor, 1), ElementsAre("c"));
  EXPECT_THAT(Committed(&cursor, 10), ElementsAre("d", "e"));
  EXPECT_THAT(Committed(&cursor, 10), IsEmpty());
  int64_t other_store = cursor + 1000;
  EXPECT_THAT(Committed(&other_store, 10), SizeIs(5)) << "a cursor of other data starts over";
  clock_.Advance(7 * kNsPerDay + 3 * 60 * kNsPerMinute);
  Maintain();
  int64_t first = 0;
  EXPECT_THAT(Committed(&first, 10), IsEmpty());
  collector.Add(clock_.Unix(), collector.Event(ProcessEventKind::kStart, 7, "f"));
  Commit(collector.Take(clock_.Unix()));
  EXPECT_THAT(Committed(&cursor, 10), ElementsAre("f"));
}

TEST_P(EventConformance, EventsOfAChunkAreInOrderOfTime) {
  TestCollector collector("node-a");
  for (const char* name : {"c", "a", "b"}) {
    collector.Add(At(name[0] - 'a'), collector.Event(ProcessEventKind::kStart, 7, name));
  }
  Commit(collector.Take(At(10)));
  int64_t cursor = 0;
  EXPECT_THAT(Committed(&cursor, 10), ElementsAre("a", "b", "c"));
}

// Strings get new numbers. Their store ids must move with them.
TEST_P(EventConformance, NamesStayRightAfterAnEviction) {
  TestCollector collector("node-a");
  collector.Add(At(-3), collector.Event(ProcessEventKind::kStart, 1, "first"));
  collector.Add(At(-3), collector.Event(ProcessEventKind::kStart, 2, "second"));
  Commit(collector.Take(At(-3)));
  const Dictionary& d = collector.dictionary();
  std::vector<bool> strings(d.string_count(), true);
  for (uint32_t i = 1; i < strings.size(); ++i) strings[i] = d.string(StringRef{i}) != "first";
  const auto all = [](uint32_t count) { return KeptIds::FromMarks(std::vector<bool>(count, true)); };
  collector.Evict({KeptIds::FromMarks(strings), all(d.executable_count()), all(d.frame_count()), all(d.node_count()),
                   all(d.process_count()), all(d.thread_count())});
  collector.Add(At(-2), collector.Event(ProcessEventKind::kExit, 2, "second"));
  collector.Add(At(-1), collector.Event(ProcessEventKind::kStart, 3, "third"));
  Commit(collector.Take(At(-1)));
  int64_t cursor = 0;
  EXPECT_THAT(Committed(&cursor, 10), ElementsAre("first", "second", "second", "third"));
}

TEST_P(EventConformance, AnImpossibleTimeBecomesTheTimeOfTheBatch) {
  TestCollector collector("node-a");
  collector.Add(At(-3 * 86400), collector.Event(ProcessEventKind::kStart, 1, "old"));
  collector.Add(At(3 * 86400), collector.Event(ProcessEventKind::kStart, 1, "future"));
  collector.Add(At(-5), collector.Event(ProcessEventKind::kStart, 1, "right"));
  Commit(collector.Take(At(-1)));
  EXPECT_THAT(Events({At(-1), UnixNs{At(-1).value + 1}}), SizeIs(2));
  EXPECT_THAT(Events({At(-5), UnixNs{At(-5).value + 1}}), SizeIs(1));
  EXPECT_EQ(Count("tributary_reducer_clamped_times_total"), 2u);
}

TEST_P(EventConformance, AFailedCommitKeepsNoEvents) {
  TestCollector collector("node-a");
  collector.Add(At(-1), collector.Event(ProcessEventKind::kStart, 1, "sh"));
  const RowBatch batch = collector.Take(At(0));
  backend_->FailCommits(true);
  EXPECT_FALSE(writer_->Commit({&batch, 1}).ok());
  EXPECT_THAT(Events(), IsEmpty());
  backend_->FailCommits(false);
  Commit(batch);
  EXPECT_THAT(Events(), SizeIs(1));
  EXPECT_EQ(Stored().events(), 1u);
  EXPECT_EQ(Count("tributary_reducer_committed_events_total"), 1u);
}

// A source without batch numbers, such as an import.
TEST_P(EventConformance, ABatchWithoutANumberMayHaveOnlyEvents) {
  TestCollector collector("node-a");
  for (int i = 0; i < 2; ++i) {
    collector.Add(At(-1), collector.Event(ProcessEventKind::kStart, 1, "sh"));
    RowBatch batch = collector.Take(At(0));
    batch.source = {SourceKind::kImport, "import"};
    batch.sequence = 0;
    batch.accounting = {};
    batch.accounting.captured.AddEvents(1);
    Commit(batch);
  }
  EXPECT_THAT(Events(), SizeIs(2));
  EXPECT_EQ(Stored().events(), 2u);
  EXPECT_EQ(Accounting().captured.events(), 2u);
}

// Events, their texts and their machine stay after all samples of their day have gone.
TEST_P(EventConformance, EventsHaveARetentionOfTheirOwn) {
  options_.raw_age_ns = 60 * kNsPerMinute;
  options_.sum_age_ns = kNsPerDay;
  options_.event_age_ns = 5 * kNsPerDay;
  Reopen();
  TestCollector collector("node-a");
  collector.Add(At(0), collector.Thread(1, "sampled"), collector.Stack({1}));
  collector.Add(At(0), collector.Event(ProcessEventKind::kStart, 7, "sh"));
  Commit(collector.Take(At(0)));
  const std::vector<std::string> before = Events();
  for (int day = 0; day < 4; ++day) {
    clock_.Advance(kNsPerDay);
    Maintain();
  }
  EXPECT_EQ(Total(FromSums(kAlways)), 0u);
  EXPECT_EQ(Events(), before);
  collector.Add(clock_.Unix(), collector.Event(ProcessEventKind::kExit, 7, "sh"));
  Commit(collector.Take(clock_.Unix()));
  EXPECT_THAT(Events(), SizeIs(2));
  Reopen();
  EXPECT_THAT(Events(), SizeIs(2));
}

TEST_P(EventConformance, OldEventsAreRemoved) {
  options_.event_age_ns = 2 * 60 * kNsPerMinute;
  Reopen();
  TestCollector collector("node-a");
  for (int i = 0; i < 30; ++i) {
    clock_.Advance(10 * kNsPerMinute);
    collector.Add(clock_.Unix(), collector.Event(ProcessEventKind::kStart, 7, "sh"));
    collector.Add(clock_.Unix(), collector.Thread(1, "a"), collector.Stack({1}));
    Commit(collector.Take(clock_.Unix()));
    Maintain(3);
  }
  Maintain();
  EXPECT_GE(Events().size(), 12u);
  EXPECT_LE(Events().size(), 14u);
  EXPECT_THAT(Events({UnixNs{0}, UnixNs{clock_.Unix().value - 140 * kNsPerMinute}}), IsEmpty());
  EXPECT_EQ(Total(FromSums(kAlways)), 30u) << "samples stay";
  EXPECT_EQ(Stored().events(), 30u) << "totals stay";
}

TEST_P(EventConformance, SessionsAreRemovedAfterTheirEvents) {
  options_.sum_age_ns = kNsPerDay;
  options_.event_age_ns = 3 * kNsPerDay;
  Reopen();
  TestCollector collector("node-a");
  collector.Add(At(0), collector.Event(ProcessEventKind::kStart, 7, "sh"));
  Commit(collector.Take(At(0)));
  clock_.Advance(3 * kNsPerDay);
  Maintain();
  EXPECT_EQ(Reader()->Nodes()->size(), 1u);
  clock_.Advance(2 * kNsPerDay);
  Maintain();
  EXPECT_TRUE(Reader()->Nodes()->empty());
  EXPECT_THAT(Events(), IsEmpty());
}

TEST_P(EventConformance, RemovesTheOldestEventsAboveTheSizeLimit) {
  options_.bytes_max = 512u << 10;
  Reopen();
  TestCollector collector("node-a");
  std::mt19937_64 random(1);
  for (int minute = 0; minute < 300; ++minute) {
    clock_.Advance(kNsPerMinute);
    for (int i = 0; i < 300; ++i) {
      ProcessEvent event = collector.Event(ProcessEventKind::kExit, static_cast<int>(random() % 100'000), "sh");
      event.start_time_ns = static_cast<int64_t>(random() >> 1);
      event.end = {.run_ns = random(), .user_ns = random(), .system_ns = random(), .peak_rss_bytes = random()};
      collector.Add(clock_.Unix(), event);
    }
    Commit(collector.Take(clock_.Unix()));
    Maintain(3);
  }
  Maintain();
  const size_t left = Events().size();
  EXPECT_LT(left, 300u * 300);
  EXPECT_GE(left, 300u);
  const UnixNs newest{clock_.Unix().value - static_cast<int64_t>(left / 300) * kNsPerMinute + 1};
  EXPECT_EQ(Events({newest, kAlways.to}).size(), left) << "only the newest events remain";
}

// The next start with another number of shards moves the session, so its shard recognises a duplicate.
TEST_P(EventConformance, EventsStayReadableWhenTheShardsChange) {
  TestCollector collector("node-a");
  collector.Add(At(0), collector.Event(ProcessEventKind::kStart, 7, "sh"));
  const RowBatch batch = collector.Take(At(0));
  Commit(batch);
  options_.shards = 2;
  Reopen();
  const uint32_t shard = ShardOf("node-a", 2);
  collector.StartGeneration();
  const RowBatch again = collector.Resend(batch);
  auto second = shard == 0 ? nullptr : store_->OpenWriter(shard).value();
  ShardWriter& writer = shard == 0 ? *writer_ : *second;
  ASSERT_TRUE(writer.Commit({&again, 1}).ok());
  size_t events = 0;
  for (uint32_t i = 0; i < store_->shard_count(); ++i) {
    ASSERT_TRUE(Reader(i)
                    ->ScanEvents(kAlways,
                                 [&](const ProcessEventRow& row) {
                                   EXPECT_EQ(row.node_id, "node-a");
                                   ++events;
                                   return absl::OkStatus();
                                 })
                    .ok());
  }
  EXPECT_EQ(events, 1u);
  EXPECT_EQ(Reader(shard)->Nodes()->at(0).stored.events(), 1u);
}

}  // namespace
}  // namespace tributary::store
