// A node whose reducer is of an earlier release: batches with process events wait on the node, and all arrive after the
// reducer was upgraded.

#include <gmock/gmock.h>

#include "intake/testing/fake_spool_storage_testing.h"
#include "intake/testing/reducer_testing.h"

namespace tributary::intake {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

class UpgradeTest : public IntakeTest {
 protected:
  UpgradeTest() {
    server_options_.features = 0;
    store_.on_batch = [this](const IncomingBatch& batch) {
      if (server_options_.features == 0) {
        EXPECT_TRUE(batch.events.empty()) << "a reducer of an earlier release would acknowledge and lose them";
        EXPECT_EQ(batch.accounting.Counted().events(), 0u) << "it would refuse such a batch";
      }
      return absl::OkStatus();
    };
  }
  ~UpgradeTest() override { client_.reset(); }  // before the spool
  void ReplaceServer(uint64_t features) {
    server_.reset();
    server_options_.features = features;
    StartServer();
  }
  // Runs the loop until a batch waits, and some turns longer.
  void RunUntilWaiting() {
    RunUntil([&] { return WaitingSessions() == 1; }, "a batch waits");
    int turns = 20;
    RunUntil([&] { return --turns == 0; }, "20 turns");
  }
  int64_t WaitingSessions() { return metrics_.AddGauge("tributary_intake_client_waits_for_upgrade", "").value(); }
  void RunUntilAllDurable() {
    RunUntil(
        [&] {
          AckAll();
          return client_->waiting_samples() == 0;
        },
        "all durable");
  }
  void OpenSpool() {
    auto opened = Spool::Open(
        {}, storage_, client_options_.session, Clock::Real(), metrics_,
        [](LossReason, const SampleCounts&, const Accounting&, bool) { ADD_FAILURE() << "nothing is dropped"; });
    ASSERT_TRUE(opened.ok()) << opened.status();
    spool_storage_ = *std::move(opened);
    spool_ = spool_storage_.get();
  }
  // `during`: called when the stop has begun.
  void StopAndExpectAllSamples(const std::function<void()>& during = [] {}) {
    bool done = false;
    client_->Flush(20'000, [&](uint64_t undelivered) {
      EXPECT_EQ(undelivered, 0u);
      done = true;
    });
    during();
    RunUntil(
        [&] {
          AckAll();
          return done;
        },
        "stopped");
    EXPECT_EQ(store_.stored_samples(), captured_);
    EXPECT_THAT(lost_events_, ElementsAre(Pair(LossReason::kNotTaken, SentEvents())));
  }
  uint64_t SentEvents() {
    uint64_t events = 0;
    for (const auto& [sequence, sent] : sent_events_) events += CountRecords({}, sent).events();
    return events;
  }

  FakeSpoolStorage storage_{1};
  std::unique_ptr<Spool> spool_storage_;
};

TEST_F(UpgradeTest, BatchesWaitAndNothingIsLost) {
  StartServer();
  StartClient();
  for (int i = 0; i < 3; ++i) Send(50, 20);
  RunUntilWaiting();
  EXPECT_THAT(store_.stored, IsEmpty());
  ReplaceServer(0);  // another connection with the same release
  RunUntil([&] { return store_.hellos.size() == 2; }, "connected again");
  ReplaceServer(kFeatureProcessEvents);
  RunUntilStored(3);
  ExpectStoredIsSent();
  ExpectAccountIsExact();
  EXPECT_THAT(lost_, IsEmpty());
  EXPECT_EQ(WaitingSessions(), 0);
}

// Such frames were sent as native. The reducer has kept its dictionary, but must not mix the two.
TEST_F(UpgradeTest, FramesOfInterpretersAreSentAgainAfterTheUpgrade) {
  ReplaceServer(kFeatureProcessEvents);
  StartClient();
  const auto send = [&](size_t batches, int generations) {
    Send(50);
    RunUntilStored(batches);
    EXPECT_EQ(store_.generations, generations);
  };
  send(1, 1);
  ReplaceServer(kFeatureProcessEvents);
  send(2, 1);
  ReplaceServer(kFeatureProcessEvents | kFeatureInterpreters);
  send(3, 2);
  ReplaceServer(kFeatureProcessEvents | kFeatureInterpreters);
  send(4, 2);
  ExpectStoredIsSent();
}

TEST_F(UpgradeTest, BatchesWithoutEventsAreSentUntilTheFirstWithEvents) {
  StartServer();
  StartClient();
  Send(30);
  RunUntilStored(1);
  Send(10, 5);
  Send(7);
  RunUntilWaiting();
  EXPECT_EQ(store_.stored.size(), 1u);
  ReplaceServer(kFeatureProcessEvents);
  RunUntilStored(3);
  ExpectStoredIsSent();
  EXPECT_THAT(lost_, IsEmpty());
}

TEST_F(UpgradeTest, SentBatchesAreNotSentAgainToADowngradedReducer) {
  server_options_.features = kFeatureProcessEvents;
  StartServer();
  StartClient();
  for (int i = 0; i < 3; ++i) Send(20, 10);
  RunUntilStored(3);
  ReplaceServer(0);
  RunUntilWaiting();
  EXPECT_EQ(store_.stored[1].times, 1);
  ReplaceServer(kFeatureProcessEvents);
  RunUntil([&] { return store_.stored[3].times == 2; }, "sent again");
  ExpectStoredIsSent();
  EXPECT_THAT(lost_, IsEmpty());
}

TEST_F(UpgradeTest, SamplesAreSentAloneWhenTheWaitIsOver) {
  client_options_.upgrade_wait_ms = 20;
  server_options_.idle_timeout_ms = 300;  // with a heartbeat of 100 ms, so that the client soon looks at its clock
  StartServer();
  StartClient();
  for (int i = 0; i < 3; ++i) Send(50, 20);
  RunUntilStored(3);
  RunUntilAllDurable();
  EXPECT_EQ(store_.stored_samples(), captured_);
  EXPECT_THAT(lost_events_, ElementsAre(Pair(LossReason::kNotTaken, SentEvents())));
  ReplaceServer(kFeatureProcessEvents);
  Send(10, 30);
  RunUntilStored(4);
  ExpectAccountIsExact();
}

TEST_F(UpgradeTest, SamplesAreSentAloneBeforeMemoryIsFull) {
  memory_bytes_max_ = 32'000;
  StartServer();
  StartClient();
  Send(50, 20);
  RunUntilWaiting();
  while (store_.stored.empty()) {
    Send(50, 20);
    RunUntil([&] { return WaitingSessions() == 0 || client_->waiting_samples() == captured_; }, "one more");
    ASSERT_LT(captured_, 10'000u) << "never sent";
    int turns = 5;
    RunUntil([&] { return --turns == 0; }, "5 turns");
  }
  RunUntilAllDurable();
  EXPECT_EQ(store_.stored_samples(), captured_);
  EXPECT_THAT(lost_events_, ElementsAre(Pair(LossReason::kNotTaken, SentEvents())));
}

TEST_F(UpgradeTest, AStopWithoutASpoolSendsTheSamples) {
  StartServer();
  StartClient();
  for (int i = 0; i < 3; ++i) Send(50, 20);
  RunUntilWaiting();
  StopAndExpectAllSamples();
}

TEST_F(UpgradeTest, AStopWithASpoolThatCannotBeWrittenSendsTheSamples) {
  OpenSpool();
  storage_.set_capacity(0);
  StartServer();
  StartClient();
  for (int i = 0; i < 3; ++i) Send(50, 20);
  RunUntilWaiting();
  ASSERT_EQ(spool_->samples(), 0u);
  StopAndExpectAllSamples();
}

TEST_F(UpgradeTest, NoWaitBeginsAtAStopIfTheSpoolCannotBeWritten) {
  OpenSpool();
  storage_.set_capacity(0);
  StartServer();
  server_.reset();
  StartClient();
  for (int i = 0; i < 3; ++i) Send(50, 20);
  StopAndExpectAllSamples([&] { StartServer(); });
}

TEST_F(UpgradeTest, BatchesThatBeginToWaitDuringAStopGoToTheSpool) {
  OpenSpool();
  StartServer();
  server_.reset();
  StartClient();
  for (int i = 0; i < 3; ++i) Send(50, 20);
  bool done = false;
  client_->Flush(3'600'000, [&](uint64_t undelivered) {
    EXPECT_EQ(undelivered, captured_);
    done = true;
  });
  StartServer();
  RunUntil([&] { return done; }, "stopped");
  EXPECT_EQ(spool_->samples(), captured_);
  EXPECT_THAT(lost_, IsEmpty());
}

TEST_F(UpgradeTest, BatchesWaitInTheSpoolAcrossARestart) {
  client_options_.session.session_id.fill(1);
  OpenSpool();
  StartServer();
  StartClient();
  for (int i = 0; i < 3; ++i) Send(50, 20);
  RunUntil([&] { return spool_->samples() == captured_; }, "in the spool, so that a kill loses nothing");
  bool done = false;
  client_->Flush(3'600'000, [&](uint64_t undelivered) {
    EXPECT_EQ(undelivered, captured_) << "no wait for an upgrade";
    done = true;
  });
  RunUntil([&] { return done; }, "stopped");
  client_.reset();
  spool_storage_.reset();
  EXPECT_THAT(store_.stored, IsEmpty()) << "not even a report of captured samples, which another session will send";

  client_options_.session.session_id.fill(2);
  OpenSpool();
  StartClient();
  RunUntilWaiting();
  ReplaceServer(kFeatureProcessEvents);
  RunUntil([&] { return store_.stored_samples() == captured_; }, "delivered");
  RunUntilAllDurable();
  EXPECT_EQ(store_.stored_counts().events(), SentEvents());
  EXPECT_THAT(lost_, IsEmpty());
}

}  // namespace
}  // namespace tributary::intake
