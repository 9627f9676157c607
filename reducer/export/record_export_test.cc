#include "reducer/export/event_export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "base/status.h"
#include "reducer/export/events_text.h"
#include "reducer/export/export_loop.h"
#include "reducer/store/fake_store_testing.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Takes process events. Answers from a script, then OK when the script is used up.
class FakeSender : public otlp::ProfilesSender, public EventSender {
 public:
  otlp::SendResult Send(const otlp::ProfilesRequest&, const otlp::RequestIdentity&, int64_t) override { return {}; }
  void Cancel() override {}
  EventResult SendEvents(std::span<const store::EventRecord> events, const otlp::RequestIdentity& identity,
                         int64_t) override {
    identities.push_back(identity);
    if (on_send) on_send();
    EventResult result;
    if (!script.empty()) {
      result = script.front();
      script.pop_front();
    }
    for (const store::EventRecord& event : events) {
      (result.status.ok() ? taken : failed).push_back(event.pid.value);
    }
    return result;
  }

  std::deque<EventResult> script;
  std::function<void()> on_send;
  std::vector<int32_t> taken, failed;
  std::vector<otlp::RequestIdentity> identities;  // of all attempts
};

class EventExportTest : public ::testing::Test {
 protected:
  EventExportTest() { Restart(true); }

  void Restart(bool takes_events) {
    auto sender = std::make_unique<FakeSender>();
    sender_ = sender.get();
    ExportLoop::Options options{.cursor_name = "test", .metric_label = "console"};
    if (takes_events) options.events = sender_;
    loop_ = std::make_unique<ExportLoop>(
        std::move(options), store_, [](const ExecutableId&) { return nullptr; }, std::move(sender), clock_, metrics_);
  }
  void Add(int32_t pid, size_t shard = 0) {
    store_.shards[shard].events.push_back({.kind = ProcessEventKind::kExec, .time = UnixNs{1}, .pid = Pid{pid}});
  }
  int64_t Cursor(uint32_t shard = 0) { return store_.Cursor("test.events", shard); }
  static EventResult Fails(bool may_retry) {
    EventResult result;
    result.status = Error(absl::StatusCode::kUnavailable, "x");
    result.may_retry = may_retry;
    return result;
  }

  store::FakeStore store_{2};
  FakeClock clock_;
  Metrics metrics_;
  FakeSender* sender_ = nullptr;
  std::unique_ptr<ExportLoop> loop_;
};

TEST_F(EventExportTest, SendsCommittedEventsOnceAndSavesTheCursor) {
  Add(1);
  Add(2, 1);
  EXPECT_EQ(loop_->RunOnce(), ExportLoop::kPollNs);
  EXPECT_THAT(sender_->taken, ElementsAre(1, 2));
  EXPECT_EQ(Cursor(), 1);
  EXPECT_EQ(store_.Cursor("test", 0), 0) << "the cursor of samples is another one";
  Add(3);
  loop_->RunOnce();
  EXPECT_THAT(sender_->taken, ElementsAre(1, 2, 3));
  Restart(true);
  Add(4, 1);
  loop_->RunOnce();
  EXPECT_THAT(sender_->taken, ElementsAre(4));
  EXPECT_EQ(metrics_.AddCounter("tributary_export_events_total", "", {{"exporter", "console"}}).value(), 4u);
}

TEST_F(EventExportTest, AnInterruptedRequestIsSentAgainBeforeOthers) {
  Add(1, 1);
  sender_->script = {Fails(true)};
  EXPECT_GT(loop_->RunOnce(), 0);
  EXPECT_THAT(sender_->failed, ElementsAre(1));
  Add(2, 0);
  loop_->RunOnce();
  EXPECT_THAT(sender_->taken, IsEmpty()) << "waits after a failure";
  clock_.Advance(2 * kNsPerSecond);
  loop_->RunOnce();
  EXPECT_THAT(sender_->taken, ElementsAre(1, 2));
}

TEST_F(EventExportTest, RefusedEventsAreNotSentAgain) {
  Add(1);
  sender_->script = {Fails(false)};
  loop_->RunOnce();
  Add(2);
  loop_->RunOnce();
  EXPECT_THAT(sender_->taken, ElementsAre(2));
  EXPECT_EQ(metrics_.AddCounter("tributary_export_refused_events_total", "", {{"exporter", "console"}}).value(), 1u);
}

TEST_F(EventExportTest, FlushSendsAllEvents) {
  for (int32_t i = 0; i < static_cast<int32_t>(EventExport::kEventsMax) + 5; ++i) Add(i);
  EXPECT_EQ(loop_->RunOnce(), 0) << "more events are left";
  EXPECT_EQ(sender_->taken.size(), EventExport::kEventsMax);
  EXPECT_TRUE(loop_->Flush(MonotonicNs{INT64_MAX}));
  EXPECT_EQ(sender_->taken.size(), EventExport::kEventsMax + 5);
}

TEST_F(EventExportTest, SkipsEventsIfTheReceiverDoesNotTakeThem) {
  Restart(false);
  Add(1);
  EXPECT_TRUE(loop_->Flush(MonotonicNs{INT64_MAX}));
  EXPECT_THAT(sender_->taken, IsEmpty());
  EXPECT_EQ(Cursor(), 0);
}

TEST_F(EventExportTest, StoreErrorsAreTriedAgain) {
  Add(1);
  store_.shards[0].error = Error(absl::StatusCode::kUnavailable, "locked");
  loop_->RunOnce();
  EXPECT_FALSE(loop_->Flush(MonotonicNs{INT64_MAX}));
  store_.shards[0].error.reset();
  loop_->RunOnce();
  EXPECT_THAT(sender_->taken, ElementsAre(1));
}

// The shard's file was replaced by an empty one. If this run is killed, the next one must not continue at the old
// position.
TEST_F(EventExportTest, SavesANewStartBeforeTheFirstRequest) {
  ASSERT_TRUE(store_.positions().SavePosition("test.events", 0, {.cursor = {.chunk = 100}}).ok());
  Add(1);
  sender_->script = {Fails(true)};
  loop_->RunOnce();
  EXPECT_THAT(sender_->taken, IsEmpty());
  EXPECT_EQ(Cursor(), 0);
  clock_.Advance(2 * kNsPerSecond);
  loop_->RunOnce();
  EXPECT_THAT(sender_->taken, ElementsAre(1));
  EXPECT_EQ(Cursor(), 1);
}

TEST_F(EventExportTest, SendsNoRequestOfAnotherShardUntilTheCursorIsSaved) {
  loop_->RunOnce();
  Add(1, 0);
  Add(2, 1);
  store_.position_error = Error(absl::StatusCode::kResourceExhausted, "disk full");
  for (int i = 0; i < 3; ++i) loop_->RunOnce();
  EXPECT_FALSE(loop_->Flush(MonotonicNs{INT64_MAX}));
  EXPECT_THAT(sender_->taken, IsEmpty()) << "a request is saved before it is sent";
  store_.position_error.reset();
  loop_->RunOnce();
  EXPECT_THAT(sender_->taken, ElementsAre(1, 2));
}

// The disk is full after a request was accepted.
TEST_F(EventExportTest, SendsNothingTwiceIfTheCursorCannotBeSaved) {
  loop_->RunOnce();
  Add(1);
  sender_->on_send = [this] { store_.position_error = Error(absl::StatusCode::kResourceExhausted, "disk full"); };
  for (int i = 0; i < 3; ++i) loop_->RunOnce();
  EXPECT_THAT(sender_->taken, ElementsAre(1));
  Add(2);
  sender_->on_send = nullptr;
  store_.position_error.reset();
  loop_->RunOnce();
  EXPECT_THAT(sender_->taken, ElementsAre(1, 2));
}

// The process is killed while a request is in doubt. More events arrive before the next run.
TEST_F(EventExportTest, RepeatsTheRequestInDoubtWithTheSameEventsAndNumbers) {
  Add(1);
  loop_->RunOnce();
  Add(2);
  Add(3);
  sender_->script = {Fails(true)};
  loop_->RunOnce();
  const otlp::RequestIdentity lost = sender_->identities.back();
  EXPECT_EQ(lost.first, 1u);
  Add(4);
  Restart(true);
  EXPECT_TRUE(loop_->Flush(MonotonicNs{INT64_MAX}));
  EXPECT_THAT(sender_->taken, ElementsAre(2, 3, 4));
  ASSERT_EQ(sender_->identities.size(), 2u);
  EXPECT_EQ(sender_->identities[0], lost);
  EXPECT_NE(sender_->identities[1].session, lost.session) << "a run has a session of its own";
  EXPECT_EQ(sender_->identities[1].first, 0u);
  EXPECT_EQ(metrics_.AddCounter("tributary_export_repeated_events_total", "", {{"exporter", "console"}}).value(), 2u);
}

// The first event of the request has expired, and a new one arrived. A number must not mean another event.
TEST_F(EventExportTest, OtherEventsGetNewNumbers) {
  Add(1);
  Add(2);
  sender_->script = {Fails(true)};
  loop_->RunOnce();
  const otlp::RequestIdentity lost = sender_->identities.back();
  store_.shards[0].events[0].pid = Pid{7};  // the store has chunks of one event, and does not remove them here
  Restart(true);
  EXPECT_TRUE(loop_->Flush(MonotonicNs{INT64_MAX}));
  EXPECT_THAT(sender_->taken, ElementsAre(7, 2));
  EXPECT_NE(sender_->identities.at(0).session, lost.session);
  EXPECT_EQ(Cursor(), 2);
}

TEST_F(EventExportTest, CountsEventsThatThePartsOfABatchRefuse) {
  for (int32_t pid = 1; pid <= 5; ++pid) Add(pid);
  EventResult partly;
  partly.refused_events = 2;
  sender_->script = {partly};
  loop_->RunOnce();
  EXPECT_EQ(metrics_.AddCounter("tributary_export_events_total", "", {{"exporter", "console"}}).value(), 3u);
  EXPECT_EQ(metrics_.AddCounter("tributary_export_refused_events_total", "", {{"exporter", "console"}}).value(), 2u);
}

TEST(EventsText, HasOneLineForEachEvent) {
  store::EventRecord exit;
  exit.kind = ProcessEventKind::kExit;
  exit.time = UnixNs{1'763'700'131'000'000'005};
  exit.host_name = "web-1";
  exit.node_id = "n1";
  exit.pid = Pid{42};
  exit.parent = Pid{1};
  exit.name = "a\nProcess Event: forged";
  exit.executable_path = "/bin/\x1b[2J\xff";
  exit.container_id = "c0ffee";
  exit.uid = 1000;
  exit.end = {
      .signal = SIGSEGV, .core_dumped = true, .run_ns = 3, .user_ns = 2, .system_ns = 1, .peak_rss_bytes = 4096};
  store::EventRecord sum;
  sum.kind = ProcessEventKind::kSum;
  sum.events = 5;
  sum.processes = 2;
  sum.end = {.exit_code = 3};
  store::EventRecord start;
  start.parent = Pid{-1};  // a node may send any number
  EXPECT_EQ(
      FormatEvents(std::vector<store::EventRecord>{exit, sum, start}),
      "Process Event: exit, Time: 2025-11-21T04:42:11.000000005Z, host.name: web-1, host.id: n1, process.pid: 42, "
      "process.parent_pid: 1, process.command: a\\x0aProcess Event: forged, process.executable.path: "
      "/bin/\\x1b[2J\\xff, container.id: c0ffee, user.id: 1000, signal: SIGSEGV, core_dumped: true, run_ns: 3, "
      "user_ns: 2, system_ns: 1, peak_rss_bytes: 4096\n"
      "Process Event: sum, Time: 1970-01-01T00:00:00.000000000Z, processes: 2, events: 5, user.id: 0, exit_code: 3, "
      "run_ns: 0, user_ns: 0, system_ns: 0, peak_rss_bytes: 0\n"
      "Process Event: start, Time: 1970-01-01T00:00:00.000000000Z, process.pid: 0, process.parent_pid: -1, user.id: "
      "0\n");
}

}  // namespace
}  // namespace tributary
