#include "reducer/export/event_attributes.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "reducer/export/export_loop.h"
#include "reducer/store/fake_store_testing.h"
#include "reducer/store/store_times.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr UnixNs kStart{1'700'000'000 * kNsPerSecond};

// Keeps the attributes of the events that it takes.
class FakeSender : public otlp::ProfilesSender, public RecordSender {
 public:
  otlp::SendResult Send(const otlp::ProfilesRequest&, const otlp::RequestIdentity&, int64_t) override {
    ++sample_requests;
    return {};
  }
  void Cancel() override {}
  bool joins_events() const override { return true; }
  RecordResult SendEvents(std::span<const store::EventRecord> events, const otlp::RequestIdentity&, int64_t) override {
    if (!result.status.ok()) return result;
    for (const store::EventRecord& event : events) attributes.push_back(event.attributes);
    return {};
  }
  RecordResult SendLosses(std::span<const store::LossRecord>, const otlp::RequestIdentity&, int64_t) override {
    return {};
  }
  RecordResult SendRollouts(std::span<const Rollout>, const otlp::RequestIdentity&, int64_t) override { return {}; }

  std::vector<std::string> attributes;
  int sample_requests = 0;
  RecordResult result;  // of events
};

// Notes the slots and machines that are scanned.
class SpyReader : public store::MemoryReader {
 public:
  using MemoryReader::MemoryReader;
  absl::Status ScanProcessIds(store::TimeRange range, const store::ScanFilter& filter,
                              const store::ProcessIdsVisitor& visit) override {
    const int32_t slots = store::SlotOf(range.to).value - store::SlotOf(range.from).value;
    scanned.push_back(fmt::format("{} slots, {} machines", slots, filter.machines ? filter.machines->size() : 999));
    return MemoryReader::ScanProcessIds(range, filter, visit);
  }
  std::vector<std::string> scanned;
};

struct HookedStore : store::FakeStore {
  absl::StatusOr<std::unique_ptr<store::StoreReader>> OpenReader(uint32_t shard) override {
    if (on_open) on_open();
    return FakeStore::OpenReader(shard);
  }
  std::function<void()> on_open;
};

class EventAttributesTest : public ::testing::Test {
 protected:
  void AddProcess(int32_t pid, const std::string& attributes, uint32_t exec_sequence = 0,
                  const std::string& node_id = "node-1") {
    std::vector<store::ProcessRow>& processes = store_.shards[0].processes;
    processes.push_back({.no = store::ProcessNo{static_cast<uint32_t>(processes.size() + 1)},
                         .node_id = node_id,
                         .pid = Pid{pid},
                         .start_time_ns = 5,
                         .exec_sequence = exec_sequence,
                         .attributes = attributes});
    // A store returns the processes of its samples.
    store_.shards[0].samples.push_back({.time = kStart, .process = processes.back().no, .node_id = node_id});
  }
  void AddEvent(int32_t pid, int64_t start_time_ns = 5, UnixNs time = kStart) {
    store_.shards[0].events.push_back({.kind = ProcessEventKind::kExit,
                                       .time = time,
                                       .node_id = "node-1",
                                       .pid = Pid{pid},
                                       .start_time_ns = start_time_ns});
  }
  std::vector<std::string> Found() {
    std::vector<store::EventRecord> events;
    SpyReader reader(store_.shards[0]);
    EXPECT_TRUE(reader
                    .ScanCommittedEvents(0, 1'000,
                                         [&](const store::ProcessEventRow& event) {
                                           events.emplace_back(event);
                                           return absl::OkStatus();
                                         })
                    .ok());
    left_out_ = AddProcessAttributes(reader, events).value();
    scanned_ = reader.scanned;
    std::vector<std::string> attributes;
    for (const store::EventRecord& event : events) attributes.push_back(event.attributes);
    return attributes;
  }

  HookedStore store_;
  uint64_t left_out_ = 0;             // by Found
  std::vector<std::string> scanned_;  // by Found
};

TEST_F(EventAttributesTest, AreThoseOfTheProcessWithTheSamePidAndStart) {
  AddProcess(7, "service.name=web");
  AddProcess(8, "service.name=other", 0, "node-2");
  AddEvent(7);
  AddEvent(7, 6);  // the pid was used again
  AddEvent(8);
  AddEvent(9);
  AddEvent(7, 0);  // a sum has no process
  EXPECT_THAT(Found(), ElementsAre("service.name=web", "", "", "", ""));
}

TEST_F(EventAttributesTest, TheLastExecCounts) {
  AddProcess(7, "service.name=a", 1);
  AddProcess(7, "service.name=b", 2);
  AddProcess(7, "", 3);  // not known yet
  AddEvent(7);
  EXPECT_THAT(Found(), ElementsAre("service.name=b"));
}

TEST_F(EventAttributesTest, AreReadForTheMachinesAndTimesOfTheEvents) {
  AddProcess(7, "service.name=web");
  AddProcess(7, "service.name=other", 0, "node-2");
  AddEvent(7);
  EXPECT_THAT(Found(), ElementsAre("service.name=web"));
  EXPECT_THAT(scanned_, ElementsAre("3 slots, 1 machines"));
  EXPECT_EQ(left_out_, 0u);
}

TEST_F(EventAttributesTest, NothingIsReadForSums) {
  AddProcess(7, "service.name=web");
  AddEvent(7, 0);
  EXPECT_THAT(Found(), ElementsAre(""));
  EXPECT_THAT(scanned_, IsEmpty());
}

// A node sends old events of many days at once.
TEST_F(EventAttributesTest, AreReadForFewSlotsAndTheRestIsCounted) {
  AddProcess(7, "service.name=web");
  for (int i = 1; i <= 200; ++i) AddEvent(7, 5, UnixNs{kStart.value - i * 60 * kNsPerMinute});
  AddEvent(7);
  AddEvent(7);
  const std::vector<std::string> found = Found();
  EXPECT_EQ(found.back(), "service.name=web") << "its slot has the most events";
  EXPECT_EQ(scanned_.size(), kAttributeSlotsMax);
  EXPECT_EQ(left_out_, 201 - kAttributeSlotsMax);
}

TEST_F(EventAttributesTest, HaveAMaximumOfBytesAndTheRestIsCounted) {
  AddProcess(7, std::string(kAttributeBytesMax / 2, 'x'));
  for (int i = 0; i < 5; ++i) AddEvent(7);
  const std::vector<std::string> found = Found();
  EXPECT_EQ(found[1].size(), kAttributeBytesMax / 2);
  EXPECT_THAT(found[2], IsEmpty());
  EXPECT_EQ(left_out_, 3u);
}

class HeldEventsTest : public EventAttributesTest {
 protected:
  HeldEventsTest() { Restart({}); }

  void Restart(ExportLoop::Options options) {
    auto sender = std::make_unique<FakeSender>();
    sender_ = sender.get();
    options.cursor_name = "test";
    options.metric_label = "otlp_logs";
    options.records = sender_;
    loop_ = std::make_unique<ExportLoop>(
        std::move(options), store_, [](const ExecutableId&) { return nullptr; }, std::move(sender), clock_, metrics_);
  }

  FakeClock clock_;
  Metrics metrics_;
  FakeSender* sender_ = nullptr;
  std::unique_ptr<ExportLoop> loop_;
};

// The first samples of a process, and with them its attributes, arrive after its start.
TEST_F(HeldEventsTest, WaitForAttributesThatArriveLater) {
  AddEvent(7);
  EXPECT_EQ(loop_->RunOnce(), ExportLoop::kPollNs);
  EXPECT_THAT(sender_->attributes, IsEmpty());
  clock_.Advance(5 * kNsPerSecond);
  AddProcess(7, "service.name=web");
  loop_->RunOnce();
  EXPECT_THAT(sender_->attributes, IsEmpty());
  clock_.Advance(5 * kNsPerSecond);
  loop_->RunOnce();
  EXPECT_THAT(sender_->attributes, ElementsAre("service.name=web"));
  EXPECT_EQ(store_.Cursor("test.events", 0), 1);
}

TEST_F(HeldEventsTest, DoNotShortenTheIntervalOfSamples) {
  Restart({.interval_ns = kNsPerMinute});
  AddProcess(7, "");
  AddEvent(7);
  EXPECT_EQ(loop_->RunOnce(), ExportLoop::kPollNs);
  EXPECT_EQ(sender_->sample_requests, 1);
  for (int i = 0; i < 9; ++i) {
    AddProcess(8 + i, "");
    clock_.Advance(kNsPerSecond);
    EXPECT_EQ(loop_->RunOnce(), ExportLoop::kPollNs);
  }
  clock_.Advance(kNsPerSecond);
  EXPECT_EQ(loop_->RunOnce(), 0) << "more events may have been committed";
  EXPECT_EQ(sender_->attributes.size(), 1u);
  EXPECT_EQ(loop_->RunOnce(), 50 * kNsPerSecond);
  EXPECT_EQ(sender_->sample_requests, 1);
  clock_.Advance(50 * kNsPerSecond);
  EXPECT_EQ(loop_->RunOnce(), kNsPerMinute);
  EXPECT_EQ(sender_->sample_requests, 2);
}

TEST_F(HeldEventsTest, DoNotWaitAtAStop) {
  AddEvent(7);
  loop_->RunOnce();
  EXPECT_TRUE(loop_->Flush(MonotonicNs{INT64_MAX}));
  EXPECT_THAT(sender_->attributes, ElementsAre(""));
}

// The second event was committed while the first one was held back.
TEST_F(HeldEventsTest, AreAllSentAtAStop) {
  AddEvent(7);
  loop_->RunOnce();
  AddEvent(8);
  EXPECT_TRUE(loop_->Flush(MonotonicNs{INT64_MAX}));
  EXPECT_EQ(sender_->attributes.size(), 2u);
  EXPECT_EQ(store_.Cursor("test.events", 0), 2);
}

TEST_F(HeldEventsTest, DoNotWaitIfThereAreMany) {
  for (size_t i = 0; i < RecordExport::kRecordsMax; ++i) AddEvent(7);
  loop_->RunOnce();
  EXPECT_EQ(sender_->attributes.size(), RecordExport::kRecordsMax);
}

// The table of processes is damaged.
TEST_F(HeldEventsTest, AreSentWithoutAttributesIfTheseCannotBeRead) {
  Restart({.interval_ns = 5 * kNsPerMinute});
  AddEvent(7);
  AddProcess(7, "service.name=web");
  loop_->RunOnce();
  store_.shards[0].error = Error(absl::StatusCode::kDataLoss, "damaged");
  clock_.Advance(39 * kNsPerSecond);
  loop_->RunOnce();
  EXPECT_THAT(sender_->attributes, IsEmpty());
  clock_.Advance(kNsPerSecond);
  loop_->RunOnce();
  EXPECT_THAT(sender_->attributes, ElementsAre(""));
  EXPECT_EQ(metrics_.AddCounter("tributary_export_incomplete_events_total", "", {{"exporter", "otlp_logs"}}).value(),
            1u);
}

// The last run was killed while a request of events was in doubt. Its events can be read, but not its processes.
TEST_F(HeldEventsTest, InDoubtComeBeforeOtherData) {
  AddEvent(7);
  loop_->RunOnce();
  clock_.Advance(10 * kNsPerSecond);
  sender_->result.status = Error(absl::StatusCode::kUnavailable, "x");
  sender_->result.may_retry = true;
  loop_->RunOnce();
  Restart({});
  AddProcess(8, "");
  int readers = 0;
  store_.on_open = [&] {
    if (++readers == 2) store_.shards[0].error = Error(absl::StatusCode::kUnavailable, "locked");
  };
  EXPECT_EQ(loop_->RunOnce(), ExportLoop::kPollNs);
  EXPECT_EQ(readers, 2) << "of the events and of the processes";
  store_.on_open = nullptr;
  store_.shards[0].error.reset();
  EXPECT_EQ(sender_->sample_requests, 0);
  loop_->RunOnce();
  EXPECT_THAT(sender_->attributes, ElementsAre(""));
  EXPECT_EQ(sender_->sample_requests, 1);
}

TEST_F(HeldEventsTest, CancelEndsTheLookUp) {
  Restart({.interval_ns = kNsPerMinute});
  AddEvent(7);
  AddProcess(7, "service.name=web");
  loop_->RunOnce();
  clock_.Advance(10 * kNsPerSecond);
  store_.on_open = [this] { loop_->Cancel(); };
  loop_->RunOnce();
  EXPECT_THAT(sender_->attributes, IsEmpty());
  EXPECT_EQ(store_.Cursor("test.events", 0), 0);
}

TEST_F(HeldEventsTest, ReadTheAttributesAgainAfterAnErrorOfTheStore) {
  AddEvent(7);
  AddProcess(7, "service.name=web");
  loop_->RunOnce();
  clock_.Advance(10 * kNsPerSecond);
  store_.shards[0].error = Error(absl::StatusCode::kUnavailable, "locked");
  loop_->RunOnce();
  EXPECT_THAT(sender_->attributes, IsEmpty());
  store_.shards[0].error.reset();
  loop_->RunOnce();
  EXPECT_THAT(sender_->attributes, ElementsAre("service.name=web"));
}

}  // namespace
}  // namespace tributary
