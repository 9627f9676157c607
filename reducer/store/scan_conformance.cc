#include <gtest/gtest.h>

#include <cstdint>
#include <iterator>
#include <random>

#include "reducer/store/store_conformance_testing.h"

// Ranges of time, sums, and retention of old data.

namespace tributary::store {
namespace {

TEST_P(ScanConformance, SamplesAreCutToTheRange) {
  TestCollector collector("node-a");
  const ThreadRef thread = collector.Thread(1, "a");
  for (int i = 0; i < 20; ++i) collector.Add(At(i * 10), thread, collector.Stack({1}), static_cast<uint64_t>(i + 1));
  Commit(collector.Take(At(200)));
  auto values = [&](TimeRange range) {
    std::vector<uint64_t> found;
    for (const SampleColumns& columns : Chunks(*Reader(), range)) {
      EXPECT_EQ(columns.times.size(), columns.values.size());
      EXPECT_EQ(columns.times.size(), columns.cpus.size());
      EXPECT_EQ(columns.times.size(), columns.threads.size());
      found.insert(found.end(), columns.values.begin(), columns.values.end());
    }
    return found;
  };
  EXPECT_EQ(values({At(20), At(50)}), (std::vector<uint64_t>{3, 4, 5})) << "a range includes only its begin";
  EXPECT_EQ(values({At(55), At(75)}), (std::vector<uint64_t>{7, 8}));
  EXPECT_TRUE(values({At(50), At(50)}).empty());
  EXPECT_TRUE(values({At(50), At(20)}).empty());
  EXPECT_EQ(values(kAlways).size(), 20u);
}

TEST_P(ScanConformance, DaysHaveTriesOfTheirOwn) {
  TestCollector collector("node-a");
  const ThreadRef thread = collector.Thread(1, "a");
  const UnixNs midnight{(DayOf(kNow).value + 1) * kNsPerDay};
  clock_.Advance(midnight.value - kNow.value);
  collector.Add(UnixNs{midnight.value - 1}, thread, collector.Stack({1, 2}), 1);
  collector.Add(midnight, thread, collector.Stack({1, 3}), 2);
  Commit(collector.Take(midnight));
  auto reader = Reader();
  std::map<Day, std::vector<uint64_t>> stacks;
  for (const SampleColumns& columns : Chunks(*reader)) {
    ASSERT_EQ(columns.nodes.size(), 1u);
    stacks[columns.day] = StackOf(reader->LoadTrie(columns.day).value(), columns.nodes[0]);
  }
  EXPECT_EQ(stacks, (std::map<Day, std::vector<uint64_t>>{{DayOf(kNow), {2, 1}}, {DayOf(midnight), {3, 1}}}));
}

// Every sample is counted once, for any range, any set of closed minutes, and any delay of a sample.
TEST_P(ScanConformance, SumsEqualSamplesForAnyRange) {
  std::mt19937_64 random(11);
  TestCollector a("node-a", 1), b("node-b", 2);
  const int64_t minutes = 20;
  auto add_batch = [&](TestCollector& collector, int64_t offset_ns) {
    for (int i = 0; i < 40; ++i) {
      ThreadRef thread = collector.Thread(static_cast<int>(1 + random() % 5), "t");
      NodeRef leaf = collector.Stack({1, random() % 4, random() % 6});
      UnixNs time{clock_.Unix().value - offset_ns - static_cast<int64_t>(random() % (5 * kNsPerSecond))};
      collector.Add(time, thread, leaf, 1 + random() % 1000);
    }
    Commit(collector.Take(clock_.Unix()));
  };
  auto compare = [&] {
    for (int i = 0; i < 60; ++i) {
      const int64_t span = minutes * kNsPerMinute;
      int64_t from = static_cast<int64_t>(random() % span), to = static_cast<int64_t>(random() % span);
      if (random() % 3 == 0) from -= from % kNsPerMinute;
      if (random() % 3 == 0) to -= to % kNsPerMinute;
      const TimeRange range{UnixNs{kNow.value + from}, UnixNs{kNow.value + to}};
      ASSERT_EQ(FromSums(range), FromSamples(range)) << from << " " << to;
    }
    ASSERT_EQ(FromSums(kAlways), FromSamples(kAlways));
  };
  for (int64_t step = 0; step < minutes * 4; ++step) {
    clock_.Advance(15 * kNsPerSecond);
    add_batch(random() % 2 == 0 ? a : b, 0);
    if (step == 10) compare();  // nothing closed yet
    if (step > 20) Maintain(1);
    if (step % 7 == 0) add_batch(a, static_cast<int64_t>(random() % 8) * kNsPerMinute);  // late, and some very late
  }
  compare();
  clock_.Advance(10 * kNsPerMinute);
  Maintain();
  compare();
  EXPECT_EQ(Total(FromSums(kAlways)), TotalsOf(*Reader()).stored);
}

TEST_P(ScanConformance, SumsOutliveRawColumnsAndStillTileRanges) {
  options_.raw_age_ns = 10 * kNsPerMinute;
  Reopen();
  TestCollector collector("node-a");
  ThreadRef thread = collector.Thread(1, "a");
  for (int i = 0; i < 30; ++i) {
    clock_.Advance(kNsPerMinute);
    collector.Add(UnixNs{clock_.Unix().value - 10 * kNsPerSecond}, thread, collector.Stack({1}));
    Commit(collector.Take(clock_.Unix()));
  }
  Maintain();

  EXPECT_LT(Total(FromSamples(kAlways)), 12u);
  EXPECT_EQ(Total(FromSums(kAlways)), 30u);
  // Adjacent ranges share no sample, even where only sums are left.
  for (int64_t width : {17, 45, 61, 100}) {
    uint64_t total = 0;
    for (int64_t at = -100; at < 40 * 60; at += width) {
      total +=
          Total(FromSums({UnixNs{kNow.value + at * kNsPerSecond}, UnixNs{kNow.value + (at + width) * kNsPerSecond}}));
    }
    EXPECT_EQ(total, 30u) << width;
  }
}

TEST_P(ScanConformance, SessionsAreRemovedAfterTheirData) {
  options_.sum_age_ns = options_.event_age_ns = 2 * kNsPerDay;
  Reopen();
  TestCollector collector("node-a");
  collector.Add(clock_.Unix(), collector.Thread(1, "a"), collector.Stack({1}));
  Commit(collector.Take(clock_.Unix()));
  clock_.Advance(2 * kNsPerDay);
  Maintain();
  EXPECT_EQ(Reader()->Nodes()->size(), 1u);
  clock_.Advance(2 * kNsPerDay);
  Maintain();
  EXPECT_TRUE(Reader()->Nodes()->empty());
  EXPECT_TRUE(absl::IsNotFound(writer_->FindSession(collector.info().session_id).status()));
}

TEST_P(ScanConformance, RemovesADayWithItsTrieAndItsProcesses) {
  options_.raw_age_ns = 12 * 60 * kNsPerMinute;
  options_.sum_age_ns = 2 * kNsPerDay;
  Reopen();
  TestCollector collector("node-a");
  ThreadRef old_thread = collector.Thread(1, "short-lived"), kept = collector.Thread(2, "long-lived");
  collector.Add(clock_.Unix(), old_thread, collector.Stack({1, 2}));
  collector.Add(clock_.Unix(), kept, collector.Stack({1, 3}));
  Commit(collector.Take(clock_.Unix()));
  auto old_reader = Reader();
  const Day first_day = DayOf(clock_.Unix());
  for (int day = 0; day < 5; ++day) {
    clock_.Advance(kNsPerDay);
    Maintain(5);
    collector.Add(clock_.Unix(), kept, collector.Stack({1, 3}));
    Commit(collector.Take(clock_.Unix()));
    Maintain();
  }
  EXPECT_EQ(Reader()->LoadTrie(first_day).value().parents.size(), 1u);
  EXPECT_EQ(old_reader->LoadTrie(first_day).value().parents.size(), 4u) << "an open reader still sees removed data";
  auto processes = Reader()->Processes(kAlways, nullptr).value();
  ASSERT_EQ(processes.size(), 1u);
  EXPECT_EQ(processes[0].comm, "long-lived");

  // A process that sleeps until its rows have expired comes back under the ids of its session.
  collector.Add(clock_.Unix(), old_thread, collector.Stack({1, 2}));
  Commit(collector.Take(clock_.Unix()));
  EXPECT_EQ(Reader()->Processes(kAlways, nullptr)->size(), 2u);
  EXPECT_FALSE(Reader()->Executables()->back().path.empty());
}

TEST_P(ScanConformance, RemovesTheOldestDataAboveTheSizeLimit) {
  options_.bytes_max = 1u << 20;
  Reopen();
  TestCollector collector("node-a");
  const ThreadRef thread = collector.Thread(1, "a");
  std::mt19937_64 random(1);
  uint64_t committed = 0;
  for (int minute = 0; minute < 300; ++minute) {
    clock_.Advance(kNsPerMinute);
    for (int i = 0; i < 500; ++i, ++committed) {
      collector.Add(clock_.Unix(), thread, collector.Stack({1 + random() % 100}), random());
    }
    Commit(collector.Take(clock_.Unix()));
    Maintain(3);
  }
  Maintain();
  const uint64_t left = Total(FromSums(kAlways));
  EXPECT_LT(left, committed);
  EXPECT_GE(left, 500u);
  const UnixNs newest{clock_.Unix().value - static_cast<int64_t>(left / 500) * kNsPerMinute + 1};
  EXPECT_EQ(Total(FromSums({newest, kAlways.to})), left) << "only the newest samples remain";
}

// Exporters see chunks in the order of their commits, whatever their time. They do not see chunks that have expired.
TEST_P(ScanConformance, CommittedChunksComeInTheOrderOfCommits) {
  TestCollector collector("node-a");
  const ThreadRef thread = collector.Thread(1, "a");
  const int64_t seconds[] = {0, -7200, 5, -3600, 7};
  for (uint64_t i = 0; i < std::size(seconds); ++i) {
    collector.Add(At(seconds[i]), thread, collector.Stack({1}), i + 1);
    Commit(collector.Take(At(static_cast<int64_t>(i) + 10)));
  }
  std::vector<uint64_t> seen;
  const auto take = [&](const SampleColumns& columns, const Cursor&) {
    seen.insert(seen.end(), columns.values.begin(), columns.values.end());
    return absl::OkStatus();
  };
  Cursor cursor = Reader()->ScanCommitted({}, 2, take).value().next;
  EXPECT_EQ(seen, (std::vector<uint64_t>{1, 2}));
  cursor = Reader()->ScanCommitted(cursor, 2, take).value().next;
  EXPECT_EQ(seen, (std::vector<uint64_t>{1, 2, 3, 4}));
  clock_.Advance(7 * kNsPerDay + 2 * 60 * kNsPerMinute);  // the session stays for another day
  Maintain();
  EXPECT_EQ(Reader()->ScanCommitted({}, 100, take).value().expired_chunks, 5u) << "all is gone";
  cursor = Reader()->ScanCommitted(cursor, 100, take).value().next;
  EXPECT_EQ(seen.size(), 4u);
  collector.Add(clock_.Unix(), thread, collector.Stack({1}), 6);
  Commit(collector.Take(clock_.Unix()));
  EXPECT_GT(Reader()->ScanCommitted(cursor, 100, take).value().next.chunk, cursor.chunk);
  EXPECT_EQ(seen, (std::vector<uint64_t>{1, 2, 3, 4, 6}));
}

// An exporter must know how many samples it will never see. Old samples may come after new ones, so chunks in the
// middle expire too.
TEST_P(ScanConformance, CountsTheSamplesThatExpiredBehindACursor) {
  TestCollector collector("node-a");
  const ThreadRef thread = collector.Thread(1, "a");
  const auto commit = [&](UnixNs time, uint32_t count) {
    collector.Add(time, thread, collector.Stack({1}));
    RowBatch batch = collector.Take(clock_.Unix());
    batch.samples[0].count = count;
    batch.accounting.captured += count - 1;
    Commit(batch);
  };
  const auto ignore = [](const SampleColumns&, const Cursor&) { return absl::OkStatus(); };
  const auto late = [&] { return UnixNs{clock_.Unix().value - 40 * kNsPerMinute}; };
  options_.raw_age_ns = 60 * kNsPerMinute;
  Reopen();
  commit(clock_.Unix(), 3);
  const Cursor first = Reader()->ScanCommitted({}, 1, ignore).value().next;
  EXPECT_EQ(first.samples, 3u);
  commit(late(), 10);
  commit(clock_.Unix(), 4);
  commit(late(), 20);
  commit(clock_.Unix(), 5);
  EXPECT_EQ(Reader()->ScanCommitted(first, 0, ignore).value().expired_chunks, 0u);

  clock_.Advance(30 * kNsPerMinute);  // the late samples expire
  Maintain();
  CommittedScan look = Reader()->ScanCommitted(first, 0, ignore).value();
  EXPECT_EQ(look.expired_chunks, 1u) << "only those before the first chunk that is left";
  EXPECT_EQ(look.expired_samples, 10u);
  EXPECT_EQ(look.newest, 5);
  const CommittedScan rest = Reader()->ScanCommitted(look.next, 100, ignore).value();
  EXPECT_EQ(rest.expired_chunks, 1u);
  EXPECT_EQ(rest.expired_samples, 20u);
  EXPECT_EQ(rest.next, (Cursor{.chunk = 5, .samples = 42}));
  const CommittedScan whole = Reader()->ScanCommitted(first, 100, ignore).value();
  EXPECT_EQ(whole.expired_samples, 30u);
  EXPECT_EQ(whole.next, rest.next);

  commit(clock_.Unix(), 6);
  clock_.Advance(3 * 60 * kNsPerMinute);  // everything expires
  Maintain();
  Reopen();
  look = Reader()->ScanCommitted(rest.next, 0, ignore).value();
  EXPECT_EQ(look.expired_chunks, 1u);
  EXPECT_EQ(look.expired_samples, 6u);
  EXPECT_EQ(look.next, (Cursor{.chunk = 6, .samples = 48}));
  EXPECT_EQ(Reader()->ScanCommitted(look.next, 0, ignore).value().expired_chunks, 0u) << "counted once";
  collector.StartGeneration();
  commit(clock_.Unix(), 7);
  EXPECT_EQ(Reader()->ScanCommitted(look.next, 100, ignore).value().next, (Cursor{.chunk = 7, .samples = 55}));
}

// Minutes, slots and days of any range can be computed.
TEST_P(ScanConformance, AnyRangeIsReadOnce) {
  TestCollector collector("node-a");
  const ThreadRef thread = collector.Thread(1, "a");
  for (int i = 0; i < 5; ++i) collector.Add(At(i * 60), thread, collector.Stack({1}), 1);
  Commit(collector.Take(At(300)));
  const TimeRange ranges[] = {
      {UnixNs{INT64_MIN}, UnixNs{INT64_MAX}}, {UnixNs{0}, UnixNs{INT64_MAX}}, {UnixNs{INT64_MIN}, At(241)}};
  for (const TimeRange& range : ranges) {
    auto reader = Reader();
    EXPECT_EQ(CountSamples(*reader, range), 5u) << range.from.value;
    EXPECT_EQ(Total(FromSums(range)), 5u) << range.from.value;
    EXPECT_EQ(reader->Processes(range, nullptr).value().size(), 1u);
    EXPECT_TRUE(reader->ScanEvents(range, [](const ProcessEventRow&) { return absl::OkStatus(); }).ok());
  }
  for (const TimeRange& range :
       {TimeRange{UnixNs{INT64_MAX}, UnixNs{INT64_MIN}}, TimeRange{UnixNs{INT64_MAX - 1}, UnixNs{INT64_MAX}},
        TimeRange{UnixNs{INT64_MIN}, UnixNs{INT64_MIN + 1}}}) {
    EXPECT_EQ(Total(FromSums(range)), 0u);
    EXPECT_EQ(CountSamples(*Reader(), range), 0u);
  }
}

TEST_P(ScanConformance, EachCallEndsWhenTheCallerCancels) {
  TestCollector collector("node-a");
  const ThreadRef thread = collector.Thread(1, "a");
  collector.Add(At(0), thread, collector.Stack({1}), 1);
  Commit(collector.Take(At(1)));
  auto reader = Reader();
  bool cancelled = false;
  reader->CancelIf([&cancelled] { return cancelled; });
  EXPECT_EQ(CountSamples(*reader), 1u);
  cancelled = true;
  const auto ignore = [](const auto&) { return absl::OkStatus(); };
  const auto ignore_both = [](const auto&, const auto&) { return absl::OkStatus(); };
  const absl::Status ends[] = {reader->Nodes().status(),
                               reader->SampleTypes().status(),
                               reader->Processes(kAlways, nullptr).status(),
                               reader->ScanProcesses(kAlways, ignore),
                               reader->ListMachines().status(),
                               reader->ScanProcessIds(kAlways, {}, ignore),
                               reader->ScanIds(kAlways, {}, ignore_both),
                               reader->Threads(kAlways, {ProcessNo{1}}).status(),
                               reader->Executables().status(),
                               reader->LoadTrie(DayOf(kNow)).status(),
                               reader->ScanSamples(kAlways, ignore),
                               reader->ScanThreadWeights(kAlways, {}, ignore),
                               reader->ScanSums(kAlways, ignore),
                               reader->ScanEvents(kAlways, ignore)};
  for (size_t i = 0; i < std::size(ends); ++i) EXPECT_TRUE(absl::IsDeadlineExceeded(ends[i])) << i << ": " << ends[i];
  cancelled = false;
  EXPECT_EQ(CountSamples(*reader), 1u) << "the reader still works";
}

TEST_P(ScanConformance, SaysFromWhenOnItHasSingleSamples) {
  TestCollector collector("node-a");
  const ThreadRef thread = collector.Thread(1, "a");
  collector.Add(At(0), thread, collector.Stack({1}), 1);
  Commit(collector.Take(At(1)));
  EXPECT_EQ(Reader()->RawFrom().value(), UnixNs{0});
  clock_.Advance(2 * kNsPerDay);
  collector.Add(clock_.Unix(), thread, collector.Stack({1}), 1);
  Commit(collector.Take(clock_.Unix()));
  Maintain();
  const UnixNs raw_from = Reader()->RawFrom().value();
  EXPECT_GT(raw_from, At(0));
  EXPECT_LE(raw_from, clock_.Unix());
  EXPECT_EQ(CountSamples(*Reader()), 1u);
}

}  // namespace
}  // namespace tributary::store
