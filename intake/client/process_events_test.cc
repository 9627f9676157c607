// Process events between a node and a reducer: delivery, losses, and reducers of an earlier release.

#include <gmock/gmock.h>

#include "intake/testing/fake_spool_storage_testing.h"
#include "intake/testing/reducer_testing.h"

namespace tributary::intake {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

class ProcessEventsTest : public IntakeTest {
 protected:
  ProcessEventsTest() {
    client_options_.upgrade_wait_ms = 0;  // upgrade_test.cc has the tests with a wait
    store_.on_batch = [this](const IncomingBatch& batch) {
      if (server_options_.features == 0) {
        EXPECT_TRUE(batch.events.empty()) << "a reducer of an earlier release would acknowledge and lose them";
        EXPECT_EQ(batch.accounting.Counted().events(), 0u) << "it would refuse such a batch";
        for (const ClosedSession& closed : batch.closes) EXPECT_EQ(closed.captured.events(), 0u);
      }
      return refuse_ && !batch.events.empty() ? Error(absl::StatusCode::kInvalidArgument, "makes no sense")
                                              : absl::OkStatus();
    };
  }
  void ReplaceServer(uint64_t features) {
    server_.reset();
    server_options_.features = features;
    StartServer();
  }
  void AckUntilAllDurable() {
    RunUntil(
        [&] {
          AckAll();
          return client_->waiting_samples() == 0 && store_.durable >= sent_.size();
        },
        "all acknowledged");
  }
  uint64_t EventsOf(uint64_t sequence) { return CountRecords({}, sent_events_[sequence]).events(); }
  uint64_t SentEvents() {
    uint64_t events = 0;
    for (const auto& [sequence, sent] : sent_events_) events += EventsOf(sequence);
    return events;
  }
  const Accounting& Newest() { return store_.stored.rbegin()->second.accounting; }
  uint64_t LostEventsCounter(const char* reason) {
    return metrics_.AddCounter("tributary_intake_client_lost_process_events_total", "", {{"reason", reason}}).value();
  }

  bool refuse_ = false;
};

TEST_F(ProcessEventsTest, ArriveUnchangedNextToSamples) {
  StartServer();
  StartClient();
  Send(100, 40);
  Send(0, 25);
  Send(7);
  RunUntilStored(3);
  ExpectStoredIsSent();
  ExpectAccountIsExact();
  EXPECT_EQ(Newest().captured.events(), SentEvents());
  EXPECT_EQ(Count("tributary_intake_process_events_total"), SentEvents());
  EXPECT_THAT(lost_events_, IsEmpty());
}

TEST_F(ProcessEventsTest, AreSentAgainUnchangedAfterTheConnectionBreaks) {
  StartServer();
  StartClient();
  for (int i = 0; i < 5; ++i) Send(20, 30);
  RunUntilStored(5);
  ReplaceServer(kFeatureProcessEvents);
  RunUntil([&] { return store_.stored.contains(5) && store_.stored[5].times == 2; }, "all sent again");
  ExpectStoredIsSent();
  ExpectAccountIsExact();
}

TEST_F(ProcessEventsTest, ReducerOfAnEarlierReleaseGetsOnlySamples) {
  server_options_.features = 0;
  StartServer();
  StartClient();
  for (int i = 0; i < 3; ++i) Send(50, 20);
  RunUntilStored(3);
  EXPECT_THAT(lost_events_, IsEmpty()) << "a later release may still get them";
  AckUntilAllDurable();
  RunUntil([&] { return lost_events_[LossReason::kNotTaken] == SentEvents(); }, "counted");
  EXPECT_EQ(LostEventsCounter("not_taken"), SentEvents());
  EXPECT_EQ(store_.stored_samples(), captured_);

  // The reducer is upgraded.
  const uint64_t untaken = SentEvents();
  ReplaceServer(kFeatureProcessEvents);
  Send(10, 30);
  RunUntilStored(4);
  EXPECT_EQ(store_.stored[4].events, sent_events_[4]);
  EXPECT_EQ(Newest().captured.events(), SentEvents());
  EXPECT_EQ(Newest().LostFor(LossReason::kNotTaken).events(), untaken);
  ExpectAccountIsExact();
}

TEST_F(ProcessEventsTest, UpgradedReducerGetsTheEventsOfBatchesThatAreNotDurable) {
  server_options_.features = 0;
  StartServer();
  StartClient();
  for (int i = 0; i < 4; ++i) Send(50, 20);
  RunUntilStored(4);
  store_.durable = 1;
  server_->live()->Ack(1);
  RunUntil([&] { return lost_events_[LossReason::kNotTaken] == EventsOf(1); }, "the first batch");
  ReplaceServer(kFeatureProcessEvents);
  RunUntil([&] { return store_.stored[4].times == 2; }, "sent again");
  for (uint64_t sequence : {2, 3, 4}) EXPECT_EQ(store_.stored[sequence].events, sent_events_[sequence]);
  EXPECT_EQ(Newest().LostFor(LossReason::kNotTaken).events(), EventsOf(1));
  ExpectAccountIsExact();
}

TEST_F(ProcessEventsTest, ReducerThatIsDowngradedGetsNoEvents) {
  StartServer();
  StartClient();
  for (int i = 0; i < 3; ++i) Send(50, 20);
  RunUntilStored(3);
  store_.durable = 1;
  server_->live()->Ack(1);
  RunUntil([&] { return client_->waiting_samples() == 100; }, "the first batch is durable");
  ReplaceServer(0);
  RunUntil([&] { return store_.stored[3].times == 2; }, "sent again");
  AckUntilAllDurable();
  RunUntil([&] { return lost_events_[LossReason::kNotTaken] == EventsOf(2) + EventsOf(3); }, "counted");
}

TEST_F(ProcessEventsTest, CountAsLostIfTheirBatchIsDropped) {
  StartServer();
  server_.reset();  // nothing listens on its port any more
  memory_bytes_max_ = 100 * sizeof(ProcessEvent);
  StartClient();
  for (int i = 0; i < 10; ++i) Send(1, 40);
  EXPECT_GT(lost_events_[LossReason::kBatchOverflow], 0u) << "events use memory, too";
  StartServer();
  RunUntil([&] { return !store_.stored.empty(); }, "the rest");
  RunUntil([&] { return Newest().captured.events() == SentEvents(); }, "all");
  EXPECT_EQ(Newest().LostFor(LossReason::kBatchOverflow).events(), lost_events_[LossReason::kBatchOverflow]);
  ExpectAccountIsExact();
}

TEST_F(ProcessEventsTest, OfARejectedBatchCountAsLost) {
  refuse_ = true;
  StartServer();
  StartClient();
  Send(10, 20);
  Send(10);
  RunUntilStored(2);
  EXPECT_EQ(lost_events_[LossReason::kRejected], EventsOf(1));
  ExpectAccountIsExact();
}

TEST_F(ProcessEventsTest, ThatDoNotFitIntoAMessageAreLostAndTheSamplesAreNot) {
  StartServer();
  StartClient();
  Batch batch = generator_.Next(5, 3);
  const ProcessEvent event{.kind = ProcessEventKind::kStart};
  batch.events.assign(kProcessEventsPerBatchMax + 1, event);
  batch.accounting.captured = 5;
  batch.accounting.captured.AddEvents(batch.events.size());
  captured_ = 5;
  EXPECT_EQ(client_->Take(std::move(batch)).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(lost_events_, ElementsAre(Pair(LossReason::kRejected, kProcessEventsPerBatchMax + 1)));
  RunUntilStored(1);
  ExpectAccountIsExact();
}

}  // namespace
}  // namespace tributary::intake
