#include "reducer/export/record_export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "base/status.h"
#include "reducer/export/export_loop.h"
#include "reducer/store/fake_store_testing.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Takes all kinds of records. Answers from a script, then OK when the script is used up.
class FakeSender : public otlp::ProfilesSender, public RecordSender {
 public:
  otlp::SendResult Send(const otlp::ProfilesRequest&, const otlp::RequestIdentity&, int64_t) override { return {}; }
  void Cancel() override {}
  RecordResult SendEvents(std::span<const store::EventRecord> events, const otlp::RequestIdentity& identity,
                          int64_t) override {
    const RecordResult result = Answer(identity);
    for (const store::EventRecord& event : events) {
      (result.status.ok() ? taken : failed).push_back(event.pid.value);
    }
    return result;
  }
  RecordResult SendLosses(std::span<const store::LossRecord> losses, const otlp::RequestIdentity& identity,
                          int64_t) override {
    const RecordResult result = Answer(identity);
    for (const store::LossRecord& loss : losses) {
      if (result.status.ok()) lost.push_back(loss.samples);
    }
    return result;
  }
  RecordResult SendRollouts(std::span<const Rollout> rollouts, const otlp::RequestIdentity& identity,
                            int64_t) override {
    const RecordResult result = Answer(identity);
    for (const Rollout& rollout : rollouts) {
      if (result.status.ok()) rolled_out.push_back(rollout.name);
    }
    return result;
  }

  std::deque<RecordResult> script;
  std::function<void()> on_send;
  std::vector<int32_t> taken, failed;             // pids of events
  std::vector<int64_t> lost;                      // samples
  std::vector<std::string> rolled_out;            // names
  std::vector<otlp::RequestIdentity> identities;  // of all attempts

 private:
  RecordResult Answer(const otlp::RequestIdentity& identity) {
    identities.push_back(identity);
    if (on_send) on_send();
    RecordResult result;
    if (!script.empty()) {
      result = script.front();
      script.pop_front();
    }
    return result;
  }
};

class NoMetadata final : public MetadataSink {
  void Connected(const MetadataSender&) override {}
  void Disconnected(const MetadataSender&) override {}
  void Take(const MetadataSender&, MetadataUpdate) override {}
};

class RecordExportTest : public ::testing::Test {
 protected:
  RecordExportTest() { Restart(true); }

  void Restart(bool takes_events, const RolloutLog* rollouts = nullptr) {
    auto sender = std::make_unique<FakeSender>();
    sender_ = sender.get();
    ExportLoop::Options options{
        .cursor_name = "test", .metric_label = "console", .rollouts = rollouts != nullptr ? rollouts : &rollouts_};
    if (takes_events) options.records = sender_;
    loop_ = std::make_unique<ExportLoop>(
        std::move(options), store_, [](const ExecutableId&) { return nullptr; }, std::move(sender), clock_, metrics_);
  }
  void Add(int32_t pid, size_t shard = 0) {
    store_.shards[shard].events.push_back({.kind = ProcessEventKind::kExec, .time = UnixNs{1}, .pid = Pid{pid}});
  }
  void Lose(int64_t samples, size_t shard = 0) {
    store_.shards[shard].losses.push_back({.node_id = "n", .type = {"cpu", "nanoseconds"}, .samples = samples});
  }
  void RollOut(const std::string& name) {
    ASSERT_TRUE(rollouts_.AddService(name, clock_.Unix(), {{"service.name", name}}));
  }
  uint64_t Count(std::string_view counter) {
    return metrics_.AddCounter(counter, "", {{"exporter", "console"}}).value();
  }
  int64_t Cursor(uint32_t shard = 0) { return store_.Cursor("test.events", shard); }
  static RecordResult Fails(bool may_retry) {
    RecordResult result;
    result.status = Error(absl::StatusCode::kUnavailable, "x");
    result.may_retry = may_retry;
    return result;
  }

  store::FakeStore store_{2};
  FakeClock clock_;
  Metrics metrics_;
  NoMetadata no_metadata_;
  RolloutLog rollouts_{{}, no_metadata_, clock_, metrics_};
  FakeSender* sender_ = nullptr;
  std::unique_ptr<ExportLoop> loop_;
};

TEST_F(RecordExportTest, SendsCommittedEventsOnceAndSavesTheCursor) {
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

TEST_F(RecordExportTest, AnInterruptedRequestIsSentAgainBeforeOthers) {
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

TEST_F(RecordExportTest, RefusedEventsAreNotSentAgain) {
  Add(1);
  sender_->script = {Fails(false)};
  loop_->RunOnce();
  Add(2);
  loop_->RunOnce();
  EXPECT_THAT(sender_->taken, ElementsAre(2));
  EXPECT_EQ(metrics_.AddCounter("tributary_export_refused_events_total", "", {{"exporter", "console"}}).value(), 1u);
}

TEST_F(RecordExportTest, FlushSendsAllEvents) {
  for (int32_t i = 0; i < static_cast<int32_t>(RecordExport::kRecordsMax) + 5; ++i) Add(i);
  EXPECT_EQ(loop_->RunOnce(), 0) << "more events are left";
  EXPECT_EQ(sender_->taken.size(), RecordExport::kRecordsMax);
  EXPECT_TRUE(loop_->Flush(MonotonicNs{INT64_MAX}));
  EXPECT_EQ(sender_->taken.size(), RecordExport::kRecordsMax + 5);
}

TEST_F(RecordExportTest, SkipsEventsIfTheReceiverDoesNotTakeThem) {
  Restart(false);
  Add(1);
  EXPECT_TRUE(loop_->Flush(MonotonicNs{INT64_MAX}));
  EXPECT_THAT(sender_->taken, IsEmpty());
  EXPECT_EQ(Cursor(), 0);
}

TEST_F(RecordExportTest, StoreErrorsAreTriedAgain) {
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
TEST_F(RecordExportTest, SavesANewStartBeforeTheFirstRequest) {
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

TEST_F(RecordExportTest, SendsNoRequestOfAnotherShardUntilTheCursorIsSaved) {
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
TEST_F(RecordExportTest, SendsNothingTwiceIfTheCursorCannotBeSaved) {
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
TEST_F(RecordExportTest, RepeatsTheRequestInDoubtWithTheSameEventsAndNumbers) {
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
TEST_F(RecordExportTest, OtherEventsGetNewNumbers) {
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

TEST_F(RecordExportTest, CountsEventsThatThePartsOfABatchRefuse) {
  for (int32_t pid = 1; pid <= 5; ++pid) Add(pid);
  RecordResult partly;
  partly.refused_records = 2;
  sender_->script = {partly};
  loop_->RunOnce();
  EXPECT_EQ(metrics_.AddCounter("tributary_export_events_total", "", {{"exporter", "console"}}).value(), 3u);
  EXPECT_EQ(metrics_.AddCounter("tributary_export_refused_events_total", "", {{"exporter", "console"}}).value(), 2u);
}

TEST_F(RecordExportTest, SendsLossesAndRolloutsOnce) {
  Lose(3);
  Lose(-1, 1);
  RollOut("web");
  RollOut("db");
  loop_->RunOnce();
  EXPECT_THAT(sender_->lost, ElementsAre(3, -1));
  EXPECT_THAT(sender_->rolled_out, ElementsAre("web", "db"));
  EXPECT_EQ(store_.Cursor("test.losses", 1), 1);
  Restart(true);
  RollOut("cart");
  Lose(4);
  EXPECT_TRUE(loop_->Flush(MonotonicNs{INT64_MAX}));
  EXPECT_THAT(sender_->lost, ElementsAre(4));
  EXPECT_THAT(sender_->rolled_out, ElementsAre("cart"));
  EXPECT_EQ(Count("tributary_export_losses_total"), 3u);
  EXPECT_EQ(Count("tributary_export_rollouts_total"), 3u);
  EXPECT_EQ(Count("tributary_export_events_total"), 0u);
}

// The process is killed while a request is in doubt. More losses arrive before the next run.
TEST_F(RecordExportTest, RepeatsLossesInDoubtWithTheSameNumbers) {
  Lose(1);
  Lose(2);
  sender_->script = {Fails(true)};
  loop_->RunOnce();
  const otlp::RequestIdentity lost = sender_->identities.back();
  Lose(3);
  Add(7);
  Restart(true);
  EXPECT_TRUE(loop_->Flush(MonotonicNs{INT64_MAX}));
  EXPECT_THAT(sender_->lost, ElementsAre(1, 2, 3));
  EXPECT_EQ(sender_->identities.at(0), lost) << "it comes before the process event";
  EXPECT_EQ(Count("tributary_export_repeated_losses_total"), 2u);
  EXPECT_EQ(Count("tributary_export_repeated_events_total"), 0u);
}

// The loss in doubt has expired. The new one differs from it only in the kind of its type.
TEST_F(RecordExportTest, ALossOfAnotherAggregationGetsANewNumber) {
  Lose(1);
  sender_->script = {Fails(true)};
  loop_->RunOnce();
  const otlp::RequestIdentity lost = sender_->identities.back();
  store_.shards[0].losses[0].type.aggregation = Aggregation::kLast;
  Restart(true);
  EXPECT_TRUE(loop_->Flush(MonotonicNs{INT64_MAX}));
  EXPECT_NE(sender_->identities.at(0).session, lost.session);
}

// Two pods of one workload began to run different versions at once. The rollout in doubt was dropped meanwhile.
TEST_F(RecordExportTest, ARolloutOfAnotherVersionGetsANewNumber) {
  const auto roll_out = [&](RolloutLog& log, const std::string& hash) {
    ASSERT_TRUE(log.AddService("web", clock_.Unix(), {{"rollout.hash", hash}, {"service.name", "web"}}));
  };
  roll_out(rollouts_, "a");
  sender_->script = {Fails(true)};
  loop_->RunOnce();
  const otlp::RequestIdentity lost = sender_->identities.back();
  RolloutLog other({}, no_metadata_, clock_, metrics_);
  roll_out(other, "b");
  Restart(true, &other);
  EXPECT_TRUE(loop_->Flush(MonotonicNs{INT64_MAX}));
  EXPECT_NE(sender_->identities.at(0).session, lost.session);
  Restart(false);  // before the other log ends
}

TEST_F(RecordExportTest, RepeatsRolloutsInDoubtWithTheSameNumbers) {
  RollOut("web");
  sender_->script = {Fails(true)};
  loop_->RunOnce();
  const otlp::RequestIdentity lost = sender_->identities.back();
  Restart(true);
  RollOut("db");
  EXPECT_TRUE(loop_->Flush(MonotonicNs{INT64_MAX}));
  EXPECT_THAT(sender_->rolled_out, ElementsAre("web", "db"));
  ASSERT_EQ(sender_->identities.size(), 2u);
  EXPECT_EQ(sender_->identities[0], lost);
  EXPECT_EQ(Count("tributary_export_repeated_rollouts_total"), 1u);
}

TEST_F(RecordExportTest, FlushSendsAllRolloutsAlsoIfTheyAreLarge) {
  for (const char* name : {"web", "db", "cart"}) {
    const std::string images(RolloutLog::kListedBytesMax, 'x');
    ASSERT_TRUE(rollouts_.AddService(name, clock_.Unix(), {{"rollout.images", images}, {"service.name", name}}));
  }
  EXPECT_EQ(loop_->RunOnce(), 0) << "more rollouts are left";
  EXPECT_THAT(sender_->rolled_out, ElementsAre("web"));
  EXPECT_TRUE(loop_->Flush(MonotonicNs{INT64_MAX}));
  EXPECT_THAT(sender_->rolled_out, ElementsAre("web", "db", "cart"));
}

TEST_F(RecordExportTest, EachKindHasASessionOfItsOwn) {
  Add(1);
  Lose(3);
  RollOut("web");
  loop_->RunOnce();
  ASSERT_EQ(sender_->identities.size(), 3u);
  EXPECT_NE(sender_->identities[0].session, sender_->identities[1].session);
  EXPECT_NE(sender_->identities[1].session, sender_->identities[2].session);
  for (const otlp::RequestIdentity& identity : sender_->identities) EXPECT_EQ(identity.first, 0u);
}

TEST_F(RecordExportTest, RefusedLossesAreNotSentAgain) {
  Lose(3);
  sender_->script = {Fails(false)};
  loop_->RunOnce();
  Lose(4);
  loop_->RunOnce();
  EXPECT_THAT(sender_->lost, ElementsAre(4));
  EXPECT_EQ(Count("tributary_export_refused_losses_total"), 1u);
}

}  // namespace
}  // namespace tributary
