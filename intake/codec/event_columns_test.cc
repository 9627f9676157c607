#include "intake/codec/event_columns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "base/status.h"
#include "intake/codec/codec_testing.h"
#include "intake/testing/batch_generator_testing.h"
#include "intake/wire/wire.h"

namespace tributary::intake {
namespace {

using testing::HasSubstr;

std::vector<ProcessEvent> Received(std::vector<ProcessEvent> events) {
  std::stable_sort(events.begin(), events.end(),
                   [](const ProcessEvent& a, const ProcessEvent& b) { return a.time < b.time; });
  for (ProcessEvent& event : events) event.time = RoundToWire(event.time);
  return events;
}

// Numbers of all sizes, and mostly numbers that were there before.
class RandomEvents {
 public:
  explicit RandomEvents(uint64_t seed, Dictionary& dictionary) : random_(seed), dictionary_(dictionary) {}

  ProcessEvent Next() {
    ProcessEvent event;
    event.kind = static_cast<ProcessEventKind>(1 + random_() % kProcessEventKindMax);
    event.time = MonotonicNs{static_cast<int64_t>(Number() % (uint64_t{1} << 62))};
    event.parent = Pid{static_cast<int32_t>(Number())};
    event.uid = static_cast<uint32_t>(Number());
    ForEachString(event, [this](StringRef& ref) {
      if (random_() % 4 != 0) ref = dictionary_.InternString("s" + std::to_string(random_() % 50));
    });
    if (event.kind == ProcessEventKind::kSum) {
      event.events = std::max(static_cast<uint32_t>(Number()), 1u);
      event.processes = std::max(static_cast<uint32_t>(Number()), 1u);
    } else {
      event.pid = Pid{static_cast<int32_t>(Number())};
      event.start_time_ns = static_cast<int64_t>(Number());
    }
    if (event.has_end()) {
      event.end = {.exit_code = static_cast<uint8_t>(Number()),
                   .signal = static_cast<uint8_t>(Number()),
                   .core_dumped = random_() % 2 == 0,
                   .oom_killed = random_() % 2 == 0,
                   .run_ns = Number() >> 1,
                   .user_ns = Number() >> 1,
                   .system_ns = Number() >> 1,
                   .peak_rss_bytes = Number() >> 1};
    }
    return event;
  }

 private:
  uint64_t Number() {
    if (!numbers_.empty() && random_() % 2 == 0) return numbers_[random_() % numbers_.size()];
    numbers_.push_back(random_() >> random_() % 64);
    if (numbers_.size() > 20) numbers_.erase(numbers_.begin());
    return numbers_.back();
  }

  std::mt19937_64 random_;
  Dictionary& dictionary_;
  std::vector<uint64_t> numbers_;
};

TEST(EventColumns, DecodeOfEncodeGivesTheSameForRandomEvents) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    Batch batch{.sequence = 1, .dictionary = std::make_shared<Dictionary>()};
    auto dictionary = std::make_shared<Dictionary>();
    batch.dictionary = dictionary;
    RandomEvents random(seed, *dictionary);
    for (uint64_t n = seed % 7 == 0 ? 500 : seed % 20; n > 0; --n) batch.events.push_back(random.Next());
    BatchDecoder decoder(1);
    Dictionary other;
    const IncomingBatch in = DecodeAll(BatchEncoder(1).Encode(batch), decoder, other);
    EXPECT_EQ(in.events, Received(batch.events));
    EXPECT_EQ(in.unknown_values, 0u);
    EXPECT_TRUE(in.samples.empty());
  }
}

TEST(EventColumns, DecodeOfEncodeGivesTheSameOverManyBatches) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    BatchGenerator generator(seed);
    BatchEncoder encoder(1);
    BatchDecoder decoder(1);
    Dictionary other;
    for (int i = 0; i < 10; ++i) {
      const Batch batch = generator.Next(i * 7 % 50, static_cast<size_t>(i) * 40);
      const IncomingBatch in = DecodeAll(encoder.Encode(batch), decoder, other);
      EXPECT_EQ(in.samples, Rounded(batch.samples));
      EXPECT_EQ(in.events, batch.events);
      EXPECT_EQ(in.accounting, batch.accounting);
      EXPECT_EQ(in.accounting.captured.events() > 0, i > 0);
    }
  }
}

TEST(EventColumns, CarriesExtremes) {
  auto dictionary = std::make_shared<Dictionary>();
  const StringRef name = dictionary->InternString(std::string("nul\0 newline\n \xff", 15));
  const ProcessEnd most{UINT8_MAX,        UINT8_MAX,       true, true, kProcessUsageMax, kProcessUsageMax,
                        kProcessUsageMax, kProcessUsageMax};
  Batch batch{.sequence = 1, .clock = {MonotonicNs{INT64_MAX}, UnixNs{}}, .dictionary = dictionary};
  for (const int64_t start : {INT64_MIN, int64_t{-1}, int64_t{0}, INT64_MAX}) {
    batch.events.push_back({.time = MonotonicNs{INT64_MIN / 4},
                            .kind = ProcessEventKind::kExit,
                            .pid = Pid{INT32_MIN},
                            .parent = Pid{INT32_MAX},
                            .start_time_ns = start,
                            .uid = UINT32_MAX,
                            .name = name,
                            .executable_path = name,
                            .container_id = name,
                            .cgroup_path = name,
                            .end = most});
    batch.events.push_back({.time = MonotonicNs{INT64_MIN / 4}, .pid = Pid{INT32_MAX}, .parent = Pid{INT32_MIN}});
  }
  batch.events.push_back({.time = MonotonicNs{INT64_MAX / 4},
                          .kind = ProcessEventKind::kSum,
                          .events = UINT32_MAX,
                          .processes = UINT32_MAX,
                          .end = most});
  BatchDecoder decoder(1);
  Dictionary other;
  EXPECT_EQ(DecodeAll(BatchEncoder(1).Encode(batch), decoder, other).events, Received(batch.events));
}

TEST(EventColumns, LimitsUsage) {
  Batch batch{.sequence = 1, .dictionary = std::make_shared<Dictionary>()};
  const ProcessEnd end{.run_ns = UINT64_MAX, .user_ns = UINT64_MAX, .peak_rss_bytes = kProcessUsageMax + 1};
  batch.events = {{.kind = ProcessEventKind::kExit, .pid = Pid{1}, .end = end}};
  BatchDecoder decoder(1);
  Dictionary other;
  const IncomingBatch in = DecodeAll(BatchEncoder(1).Encode(batch), decoder, other);
  ASSERT_EQ(in.events.size(), 1u);
  EXPECT_EQ(in.events[0].end.run_ns, kProcessUsageMax);
  EXPECT_EQ(in.events[0].end.user_ns, kProcessUsageMax);
  EXPECT_EQ(in.events[0].end.peak_rss_bytes, kProcessUsageMax);
}

// A build starts thousands of short processes.
TEST(EventColumns, ShortProcessNeedsFewBytes) {
  auto dictionary = std::make_shared<Dictionary>();
  const StringRef sh = dictionary->InternString("sh"), cc = dictionary->InternString("cc1"),
                  path = dictionary->InternString("/usr/libexec/gcc/cc1"), bin = dictionary->InternString("/bin/sh");
  std::mt19937_64 random(1);
  Batch batch{.sequence = 1, .dictionary = dictionary};
  int64_t now = 1'000 * kNsPerSecond;
  constexpr int kProcesses = 1'000;
  for (int i = 0; i < kProcesses; ++i) {
    now += static_cast<int64_t>(random() % 2'000'000);
    ProcessEvent event{.time = MonotonicNs{now},
                       .kind = ProcessEventKind::kStart,
                       .pid = Pid{5'000 + 2 * i},
                       .parent = Pid{77},
                       .start_time_ns = now,
                       .uid = 1000,
                       .name = sh,
                       .executable_path = bin};
    batch.events.push_back(event);
    event.kind = ProcessEventKind::kExec;
    event.time.value += 300'000;
    event.name = cc;
    event.executable_path = path;
    batch.events.push_back(event);
    event.kind = ProcessEventKind::kExit;
    event.time.value += static_cast<int64_t>(random() % 100'000'000);
    event.end = {.run_ns = static_cast<uint64_t>(event.time.value - event.start_time_ns),
                 .user_ns = random() % 50'000'000,
                 .system_ns = random() % 5'000'000,
                 .peak_rss_bytes = 4096 * (2'000 + random() % 5'000)};
    batch.events.push_back(event);
  }
  const std::vector<std::string> frames = BatchEncoder(1).Encode(batch);
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_LT(frames[0].size(), kProcesses * 24u);
}

TEST(EventColumns, LargestBatchesFitIntoAMessage) {
  EXPECT_TRUE(BatchEncoder::Fits(100'000, 0));
  EXPECT_FALSE(BatchEncoder::Fits(100'001, 0));
  EXPECT_TRUE(BatchEncoder::Fits(50'000, kProcessEventsPerBatchMax));
  EXPECT_FALSE(BatchEncoder::Fits(0, kProcessEventsPerBatchMax + 1));
  EXPECT_FALSE(BatchEncoder::Fits(100'000, kProcessEventsPerBatchMax));
  auto dictionary = std::make_shared<Dictionary>();
  std::mt19937_64 random(1);
  while (!dictionary->full()) dictionary->InternString(std::to_string(random()));
  Batch batch{.sequence = 1, .dictionary = dictionary};
  auto any_string = [&] { return StringRef{static_cast<uint32_t>(random() % dictionary->string_count())}; };
  batch.samples.resize(50'000);
  for (Sample& sample : batch.samples) {
    sample = {.time = MonotonicNs{static_cast<int64_t>(random())},
              .cpu = static_cast<uint16_t>(random()),
              .count = static_cast<uint32_t>(random()),
              .value = random(),
              .attributes = any_string()};
  }
  batch.events.resize(kProcessEventsPerBatchMax);
  for (ProcessEvent& event : batch.events) {
    event = {.time = MonotonicNs{static_cast<int64_t>(random())},
             .kind = ProcessEventKind::kExit,
             .pid = Pid{static_cast<int32_t>(random())},
             .parent = Pid{static_cast<int32_t>(random())},
             .start_time_ns = static_cast<int64_t>(random()),
             .uid = static_cast<uint32_t>(random()),
             .name = any_string(),
             .executable_path = any_string(),
             .container_id = any_string(),
             .cgroup_path = any_string(),
             .end = {static_cast<uint8_t>(random()), static_cast<uint8_t>(random()), true, true, random() >> 1,
                     random() >> 1, random() >> 1, random() >> 1}};
  }
  BatchDecoder decoder(1);
  Dictionary other;
  EXPECT_EQ(DecodeAll(BatchEncoder(1).Encode(batch), decoder, other).events, Received(batch.events));
}

TEST(EventColumns, WithoutEventsRemovesAllTheirNumbers) {
  Batch batch;
  batch.events.resize(2);
  batch.accounting.captured = 5;
  batch.accounting.captured.AddEvents(7);
  batch.accounting.LostFor(LossReason::kEventOverflow).AddEvents(3);
  batch.accounting.LostFor(LossReason::kRingFull).Add(SampleType::kOffCpu, 2);
  batch.closes.resize(1);
  batch.closes[0].captured = 4;
  batch.closes[0].captured.AddEvents(9);
  const Batch without = WithoutEvents(batch);
  EXPECT_TRUE(without.events.empty());
  EXPECT_EQ(without.accounting.captured, SampleCounts(5));
  EXPECT_EQ(without.accounting.Counted().events(), 0u);
  EXPECT_EQ(without.accounting.LostFor(LossReason::kRingFull).Of(SampleType::kOffCpu), 2u);
  EXPECT_EQ(without.closes[0].captured, SampleCounts(4));
}

// The hostile messages: a batch of two events, with something changed.

using Columns = std::vector<std::string>;

std::string Numbers(const std::vector<uint64_t>& numbers) {
  std::string out;
  for (uint64_t number : numbers) AppendVarint(out, number);
  return out;
}

std::string& In(Columns& columns, EventColumn column) { return columns[static_cast<size_t>(column)]; }

// Two processes start, one exits, and there is a sum.
Columns Valid() {
  Columns columns(kEventColumnNames.size());
  In(columns, EventColumn::kTimes) = Numbers({2, 1, 1, 1});
  In(columns, EventColumn::kKinds) = Numbers({1, 1, 3, 6});
  In(columns, EventColumn::kProcesses) = Numbers({0, 0, 2});
  In(columns, EventColumn::kPids) = Numbers({20, 2});
  In(columns, EventColumn::kStarts) = Numbers({0, 0, 0, 0});
  for (const EventColumn column :
       {EventColumn::kRunTimes, EventColumn::kUserTimes, EventColumn::kSystemTimes, EventColumn::kPeakBytes}) {
    In(columns, column) = Numbers({0, 4});
  }
  In(columns, EventColumn::kEvents) = Numbers({6});
  In(columns, EventColumn::kEnded) = Numbers({2});
  return columns;
}

absl::StatusOr<IncomingBatch> Decode(const std::function<void(wire::Batch::Builder)>& fill) {
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<wire::Batch>();
  root.initDefinitions().setGeneration(1);
  fill(root);
  return BatchDecoder(1).Decode(MessageType::kBatch, 1, ToPayload(message));
}

absl::StatusOr<IncomingBatch> DecodeColumns(const Columns& columns) {
  ColumnWriter writer;
  for (size_t i = 1; i < columns.size(); ++i) writer.Put(static_cast<EventColumn>(i), columns[i]);
  return Decode([&](wire::Batch::Builder root) {
    auto family = root.initFamilies(1)[0];
    family.setNumber(kFamilyProcessEvents);
    family.setColumns(DataOf(writer.bytes()));
  });
}

TEST(EventColumns, ReadsPlainColumns) {
  const auto in = DecodeColumns(Valid());
  ASSERT_TRUE(in.ok()) << in.status();
  ASSERT_EQ(in->events.size(), 4u);
  EXPECT_EQ(in->events[0].pid, Pid{10});
  EXPECT_EQ(in->events[1].pid, Pid{11});
  EXPECT_EQ(in->events[2].pid, Pid{10});
  EXPECT_EQ(in->events[2].start_time_ns, in->events[0].start_time_ns);
  EXPECT_EQ(in->events[3].events, 6u);
  EXPECT_EQ(in->events[3].end.user_ns, 4u);
}

TEST(EventColumns, RefusesMalformedColumns) {
  struct Case {
    EventColumn column;
    std::vector<uint64_t> numbers;
    const char* message;
  };
  constexpr uint64_t kMost = UINT64_MAX;
  for (const Case& c : {
           Case{EventColumn::kTimes, {2, 1, 1}, "differ in length"},
           Case{EventColumn::kTimes, {2, 1, 1, 1, 1}, "column kinds"},
           Case{EventColumn::kTimes, {2, 1, 1, kMost}, "out of range"},
           Case{EventColumn::kKinds, {1, 1, 3, 0}, "unknown kind"},
           Case{EventColumn::kKinds, {1, 1, 3, kProcessEventKindMax + 1}, "unknown kind"},
           Case{EventColumn::kKinds, {1, 1, 3, kMost}, "unknown kind"},
           Case{EventColumn::kKinds, {1, 1, 1, 6}, "differ in length"},
           Case{EventColumn::kKinds, {1, 1, 3}, "column kinds"},
           Case{EventColumn::kProcesses, {1, 0, 2}, "process 1"},
           Case{EventColumn::kProcesses, {0, 0, 3}, "process 3"},
           Case{EventColumn::kProcesses, {0, 0}, "column processes"},
           Case{EventColumn::kProcesses, {0, 0, 2, 0}, "differ in length"},
           Case{EventColumn::kPids, {20, kMost}, "out of range"},
           Case{EventColumn::kPids, {20}, "column pids"},
           Case{EventColumn::kStarts, {kMost, 0, 0, 0}, "out of range"},
           Case{EventColumn::kStarts, {0, kMost, kMost - 1, kMost}, "out of range"},
           Case{EventColumn::kStarts, {0, 0, 0}, "column starts"},
           Case{EventColumn::kParents, {0, 0, kMost, 0, 0}, "out of range"},
           Case{EventColumn::kParents, {0, 0, 0}, "column parents"},
           Case{EventColumn::kUids, {0, 0, 0, 0, uint64_t{UINT32_MAX} + 2}, "column uids"},
           Case{EventColumn::kNames, {0, 0, 0, 0, 2}, "string 1"},
           Case{EventColumn::kPaths, {0, 2, 0, 0, 0}, "string 1"},
           Case{EventColumn::kContainers, {0, 0, 0, uint64_t{UINT32_MAX} + 1, 0}, "string"},
           Case{EventColumn::kCgroups, {0, 0, 0, 70'000, 0}, "string 69999"},
           Case{EventColumn::kExitCodes, {0, 256, 0}, "column exitCodes"},
           Case{EventColumn::kSignals, {0, 0, 256}, "column signals"},
           Case{EventColumn::kEndFlags, {0, 0}, "column endFlags"},
           Case{EventColumn::kRunTimes, {0, 1}, "more than is possible"},
           Case{EventColumn::kRunTimes, {0}, "column runTimes"},
           Case{EventColumn::kUserTimes, {0, kMost}, "more than is possible"},
           Case{EventColumn::kSystemTimes, {0, kMost}, "more than is possible"},
           Case{EventColumn::kPeakBytes, {kMost, 0}, "more than is possible"},
           Case{EventColumn::kPeakBytes, {0, 0, 0}, "differ in length"},
           Case{EventColumn::kEvents, {0}, "wrong number of events"},
           Case{EventColumn::kEvents, {uint64_t{UINT32_MAX} + 1}, "wrong number of events"},
           Case{EventColumn::kEnded, {0}, "wrong number of events"},
           Case{EventColumn::kEnded, {}, "column ended"},
       }) {
    Columns columns = Valid();
    In(columns, c.column) = Numbers(c.numbers);
    const auto in = DecodeColumns(columns);
    EXPECT_EQ(in.status().code(), absl::StatusCode::kInvalidArgument) << c.message;
    EXPECT_THAT(Message(in.status()), HasSubstr(c.message));
  }
}

TEST(EventColumns, RefusesMoreEventsThanTheLimit) {
  Columns columns(kEventColumnNames.size());
  for (size_t i = 0; i <= kProcessEventsPerBatchMax; ++i) {
    AppendVarint(In(columns, EventColumn::kTimes), 0);
    AppendVarint(In(columns, EventColumn::kKinds), 1);
    AppendVarint(In(columns, EventColumn::kProcesses), i == 0 ? 0 : 1);
  }
  In(columns, EventColumn::kPids) = Numbers({2});
  In(columns, EventColumn::kStarts) = Numbers({0, 0});
  EXPECT_THAT(Message(DecodeColumns(columns).status()), HasSubstr("more than 20000 process events"));
  for (const EventColumn column : {EventColumn::kTimes, EventColumn::kKinds, EventColumn::kProcesses}) {
    In(columns, column).pop_back();
  }
  EXPECT_TRUE(DecodeColumns(columns).ok());
}

TEST(EventColumns, KeepsEventsWithUnknownFlagsAndColumns) {
  Columns columns = Valid();
  In(columns, EventColumn::kEndFlags) = Numbers({0, 7, 0});
  columns.push_back("a column of a later release");
  const auto in = DecodeColumns(columns);
  ASSERT_TRUE(in.ok()) << in.status();
  EXPECT_TRUE(in->events[2].end.core_dumped);
  EXPECT_TRUE(in->events[2].end.oom_killed);
  EXPECT_EQ(in->unknown_values, 2u);
}

TEST(EventColumns, SurvivesDamagedColumns) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 20'000; ++i) {
    Columns columns = Valid();
    std::string& column = columns[1 + random() % (columns.size() - 1)];
    if (column.empty() || random() % 4 == 0) {
      column += static_cast<char>(random());
    } else {
      column[random() % column.size()] = static_cast<char>(random());
    }
    const auto in = DecodeColumns(columns);
    if (!in.ok()) continue;
    for (const ProcessEvent& event : in->events) {
      ForEachString(event, [](StringRef ref) { ASSERT_EQ(ref.value, 0u); });
      ASSERT_GE(event.events, 1u);
    }
  }
}

TEST(Families, RefusesMalformedLists) {
  struct Case {
    std::vector<uint8_t> numbers;
    const char* message;
  };
  for (const Case& c : {Case{{0}, "number 0"}, Case{{1, 1}, "twice"}, Case{{7, 7}, "twice"},
                        Case{{2, 3, 4, 5, 6, 7, 8, 9, 10}, "too many families"}}) {
    const auto in = Decode([&](wire::Batch::Builder root) {
      auto families = root.initFamilies(static_cast<unsigned>(c.numbers.size()));
      for (unsigned i = 0; i < c.numbers.size(); ++i) families[i].setNumber(c.numbers[i]);
    });
    EXPECT_EQ(in.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(Message(in.status()), HasSubstr(c.message));
  }
}

TEST(Families, SkipsAndCountsUnknownFamilies) {
  const auto in = Decode([](wire::Batch::Builder root) {
    auto families = root.initFamilies(kFamiliesMax);
    for (unsigned i = 0; i < kFamiliesMax; ++i) {
      families[i].setNumber(static_cast<uint8_t>(i + 1));
      if (i > 0) families[i].setPackedColumns(DataOf("of a later release"));
    }
  });
  ASSERT_TRUE(in.ok()) << in.status();
  EXPECT_TRUE(in->events.empty());
  EXPECT_EQ(in->unknown_values, kFamiliesMax - 1);
}

TEST(Families, RefusesColumnsThatUnpackToMoreThanTheLimit) {
  ColumnWriter writer;
  writer.Put(EventColumn::kTimes, std::string(3u << 20, '\0'));
  const std::string packed = writer.Packed(kEventPackings, kEventColumnsAlways);
  ASSERT_GT(writer.bytes().size(), UnpackedBytesMax(packed.size()));
  const auto in = Decode([&](wire::Batch::Builder root) {
    auto family = root.initFamilies(1)[0];
    family.setNumber(kFamilyProcessEvents);
    family.setPackedColumns(DataOf(packed));
  });
  EXPECT_THAT(Message(in.status()), HasSubstr("cannot be decoded"));
}

TEST(BatchDecoder, RefusesSamplesWithTheTypeOfProcessEvents) {
  Batch batch{.sequence = 1, .dictionary = std::make_shared<Dictionary>()};
  batch.samples = {Sample{.type = SampleType::kProcessEvent}};
  const Frame frame = Unframe(BatchEncoder(1).Encode(batch).back());
  EXPECT_EQ(BatchDecoder(1).Decode(frame.type, 1, frame.payload).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tributary::intake
