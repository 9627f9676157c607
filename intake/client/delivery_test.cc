#include "intake/client/delivery.h"

#include <gmock/gmock.h>

#include <array>

#include "base/loop_testing.h"
#include "intake/client/reducer_choice.h"
#include "intake/spool/spool_segment.h"
#include "intake/testing/fake_spool_storage_testing.h"
#include "intake/testing/reducer_testing.h"

// One node and two reducers, over real sockets on one loop.

namespace tributary::intake {
namespace {

class DeliveryTest : public testing::Test {
 protected:
  void StartReducer(size_t i) {
    servers_[i] = std::make_unique<TestServer>(loop_, options_[i], metrics_,
                                               [this, i](const Hello&) -> SessionOwner& { return stores_[i]; });
    options_[i].port = servers_[i]->port();
  }
  void StartNode(int64_t in_doubt_timeout_ms = 60'000) {
    DeliveryOptions options;
    options.reducers = {{"127.0.0.1", options_[0].port}, {"127.0.0.1", options_[1].port}};
    options.client = {.backoff_min_ms = 5, .backoff_max_ms = 20, .seed = 1};
    options.client.session.node_id = "node";
    options.failover_ms = 20;
    options.in_doubt_timeout_ms = in_doubt_timeout_ms;
    preferred_ = PreferenceOf("node", options.reducers)[0];
    node_ = std::make_unique<Delivery>(
        loop_, connector_, options, Clock::Real(), metrics_,
        Delivery::Callbacks{.need_symbols = {},
                            .need_digest = {},
                            .lost = [this](LossReason reason, const SampleCounts& n) { lost_[reason] += n.total(); },
                            .durable = {},
                            .earlier_reported = {}});
    node_->Start();
  }
  // Waits until the node has noticed, so that later batches are not sent to this reducer.
  void KillPreferred() {
    servers_[preferred_].reset();
    const uint64_t before = failures();
    RunUntil([&] { return failures() > before; }, "noticed");
  }
  uint64_t failures() { return metrics_.AddCounter("tributary_intake_client_failures_total", "").value(); }
  void Send(size_t samples) {
    captured_ += samples;
    EXPECT_TRUE(node_->Take(generator_.Next(samples)).ok());
  }
  FakeOwner& store(bool preferred) { return stores_[preferred ? preferred_ : 1 - preferred_]; }
  void AckAll() {
    for (size_t i = 0; i < 2; ++i) {
      if (servers_[i] == nullptr || servers_[i]->live() == nullptr) continue;
      stores_[i].durable = stores_[i].newest;
      servers_[i]->live()->Ack(stores_[i].durable);
    }
  }
  void RunUntil(const std::function<bool()>& done, const char* event) {
    const auto ack_and_ask = [&] {
      if (acking_) AckAll();
      return done();
    };
    ASSERT_TRUE(RunLoopUntil(loop_, ack_and_ask, 20'000, 2)) << "never: " << event;
  }
  // The accounting of a session's newest batch.
  const Accounting& NewestAccounting(bool preferred) { return store(preferred).stored.rbegin()->second.accounting; }
  void ExpectAccountsAddUp() {
    const Accounting &a = NewestAccounting(true), &b = NewestAccounting(false);
    EXPECT_EQ(a.captured.total(), store(true).stored_samples() + a.TotalLost().total());
    EXPECT_EQ(b.captured.total(), store(false).stored_samples() + b.TotalLost().total());
  }

  Metrics metrics_;
  Loop loop_;
  TcpConnector connector_{loop_};
  std::array<FakeOwner, 2> stores_;
  std::array<ServerOptions, 2> options_ = {ServerOptions{.port = 0, .linger_ms = 50},
                                           ServerOptions{.port = 0, .linger_ms = 50}};
  std::array<std::unique_ptr<TestServer>, 2> servers_;
  std::unique_ptr<Delivery> node_;
  BatchGenerator generator_{1};
  std::map<LossReason, uint64_t> lost_;
  size_t preferred_ = 0;
  uint64_t captured_ = 0;
  bool acking_ = true;
};

TEST_F(DeliveryTest, FailsOverToTheNextReducerAndComesBack) {
  StartReducer(0);
  StartReducer(1);
  StartNode();
  Send(100);
  RunUntil([&] { return store(true).stored_samples() == 100; }, "the preferred one has it");
  EXPECT_TRUE(store(false).hellos.empty());
  KillPreferred();
  Send(50);
  RunUntil([&] { return store(false).stored_samples() == 50; }, "the other took over");
  StartReducer(preferred_);
  Send(25);
  RunUntil([&] { return node_->waiting_samples() == 0 && servers_[preferred_]->live() != nullptr; }, "it is back");
  Send(5);
  RunUntil([&] { return store(true).stored.rbegin()->second.samples.size() == 5; }, "it is used again");
  RunUntil([&] { return servers_[1 - preferred_]->live() == nullptr; }, "the other is left");
  EXPECT_EQ(stores_[0].stored_samples() + stores_[1].stored_samples(), captured_);
  EXPECT_TRUE(lost_.empty());
  ExpectAccountsAddUp();
  EXPECT_NE(store(true).hellos[0].session.session_id, store(false).hellos[0].session.session_id);
}

TEST_F(DeliveryTest, SettlesBatchesInDoubtWhenTheReducerIsBack) {
  StartReducer(0);
  StartReducer(1);
  StartNode();
  acking_ = false;
  Send(100);
  RunUntil([&] { return store(true).stored_samples() == 100; }, "received, not acknowledged");
  store(true).durable = 1;  // stored nevertheless
  KillPreferred();
  Send(50);
  acking_ = true;
  RunUntil([&] { return store(false).stored_samples() == 50; }, "the other took over");
  EXPECT_EQ(node_->waiting_samples(), 100u) << "in doubt";
  StartReducer(preferred_);
  RunUntil([&] { return node_->waiting_samples() == 0; }, "settled");
  EXPECT_EQ(store(true).stored[1].times, 1);
  EXPECT_TRUE(lost_.empty());
}

TEST_F(DeliveryTest, ReportsUnresolvedDoubtAsLostToTheOtherReducer) {
  StartReducer(0);
  StartReducer(1);
  StartNode(/*in_doubt_timeout_ms=*/300);
  acking_ = false;
  Send(100);
  RunUntil([&] { return store(true).stored_samples() == 100; }, "received, not acknowledged");
  KillPreferred();
  store(true).stored.clear();  // the reducer died before it could store the batch
  store(true).newest = 0;
  acking_ = true;
  Send(50);
  RunUntil([&] { return lost_[LossReason::kInDoubt] == 100; }, "given up");
  Send(1);
  RunUntil([&] { return store(false).stored_samples() == 51; }, "reported");
  EXPECT_EQ(NewestAccounting(false).LostFor(LossReason::kInDoubt).total(), 100u);
  EXPECT_EQ(NewestAccounting(false).captured.total(), 151u);
  StartReducer(preferred_);
  RunUntil([&] { return servers_[preferred_]->live() != nullptr; }, "it is back");
  Send(7);
  RunUntil([&] { return store(true).stored_samples() == 7; }, "the session goes on behind the hole");
  EXPECT_EQ(NewestAccounting(true).captured.total(), 7u);
}

// The session that is no longer used had reported samples as captured and not yet sent. These samples went to another
// session, and the first session must report this.
TEST_F(DeliveryTest, StopWaitsUntilAnUnusedSessionReportsNothingPending) {
  StartReducer(0);
  StartReducer(1);
  StartNode();
  Batch batch = generator_.Next(100);
  batch.accounting.captured += 50;
  EXPECT_TRUE(node_->Take(std::move(batch)).ok());
  RunUntil([&] { return node_->waiting_samples() == 0; }, "the preferred one has it");
  EXPECT_EQ(NewestAccounting(true).captured.total(), 150u);
  KillPreferred();
  Send(50);
  RunUntil([&] { return store(false).stored_samples() == 50 && node_->waiting_samples() == 0; }, "the other took over");
  bool done = false;
  node_->Flush(20'000, [&](uint64_t) { done = true; });
  StartReducer(preferred_);
  RunUntil([&] { return done; }, "everything was reported");
  EXPECT_TRUE(node_->settled());
  ExpectAccountsAddUp();
}

// One reducer with a store for each of two sessions, and a collector that stops and starts again on the same spool.
class DeliveryFromSpoolTest : public DeliveryTest {
 protected:
  DeliveryFromSpoolTest() {
    StartReducer();
    delivery_.reducers = {{"127.0.0.1", options_[0].port}};
    delivery_.client = {.backoff_min_ms = 5, .backoff_max_ms = 20, .seed = 1};
    delivery_.client.session.node_id = "node";
    acking_ = false;
  }
  FakeOwner& StoreOf(const Hello& hello) { return stores_[hello.session.session_id[0] - 1]; }
  void StartReducer() {
    servers_[0] = std::make_unique<TestServer>(loop_, options_[0], metrics_,
                                               [this](const Hello& hello) -> SessionOwner& { return StoreOf(hello); });
    options_[0].port = servers_[0]->port();
  }
  void StartNode(uint8_t session) {
    delivery_.client.session.session_id.fill(session);
    auto opened = Spool::Open(
        {}, storage_, delivery_.client.session, Clock::Real(), metrics_,
        [](LossReason, const SampleCounts&, const Accounting&, bool) { ADD_FAILURE() << "nothing is dropped"; });
    ASSERT_TRUE(opened.ok()) << opened.status();
    spool_ = *std::move(opened);
    delivery_.spool = spool_.get();
    node_ = std::make_unique<Delivery>(
        loop_, connector_, delivery_, Clock::Real(), metrics_,
        Delivery::Callbacks{.need_symbols = {},
                            .need_digest = {},
                            .lost = [this](LossReason reason, const SampleCounts& n) { lost_[reason] += n.total(); },
                            .durable = {},
                            .earlier_reported = {}});
    node_->Start();
  }
  // Stops the first collector: 100 samples were sent and not acknowledged, 40 not sent.
  void StopUndelivered() {
    StartNode(1);
    Send(100);
    RunUntil([&] { return stores_[0].stored_samples() == 100; }, "sent, in doubt");
    preferred_ = 0;
    KillPreferred();
    Send(40);
    node_->Flush(10, [&](uint64_t undelivered) {
      EXPECT_EQ(undelivered, 140u);
      loop_.Stop();
    });
    loop_.Run();
    EXPECT_FALSE(node_->settled());
    node_.reset();
    spool_.reset();
  }
  void StartAgainAndDeliver() {
    StartReducer();
    StartNode(2);
    RunUntil(
        [&] {
          for (const auto& live : servers_[0]->sessions) {
            FakeOwner& of = StoreOf(live->hello());
            of.durable = of.newest;
            if (!live->closed()) live->Ack(of.durable);
          }
          return node_->waiting_samples() == 0 && storage_.List()->empty();
        },
        "delivered");
    EXPECT_EQ(stores_[1].stored_samples(), 40u);
  }
  // Damages the last byte of the segment that holds the sent batch.
  void DamageSentBatch() {
    for (const std::string& name : storage_.names()) {
      const std::string& file = storage_.bytes(name);
      if (!DecodeClaims(file).claims.empty()) return storage_.Damage(name, file.size() - 1, 1);
    }
    FAIL() << "nothing is claimed";
  }

  FakeSpoolStorage storage_{1};
  DeliveryOptions delivery_;
  std::unique_ptr<Spool> spool_;
};

TEST_F(DeliveryFromSpoolTest, StopSpoolsTheRestAndTheNextStartDeliversIt) {
  StopUndelivered();
  stores_[0].durable = 1;  // stored, and the node does not know
  StartAgainAndDeliver();
  EXPECT_EQ(stores_[0].stored[1].times, 1) << "the reducer had it: what was claimed is not sent again";
  EXPECT_EQ(stores_[0].stored.size(), 1u);
}

TEST_F(DeliveryFromSpoolTest, DamageIsNoLossIfTheReducerHasTheBatch) {
  StopUndelivered();
  stores_[0].durable = 1;
  DamageSentBatch();
  StartAgainAndDeliver();
  EXPECT_EQ(stores_[0].stored.size(), 1u);
  EXPECT_TRUE(lost_.empty());
  EXPECT_EQ(stores_[1].stored.rbegin()->second.accounting.TotalLost(), 0u);
}

TEST_F(DeliveryFromSpoolTest, ReportsDamageUnderItsNumberIfTheReducerLacksTheBatch) {
  StopUndelivered();
  stores_[0].stored.clear();  // the reducer died before it could store the batch
  stores_[0].newest = 0;
  DamageSentBatch();
  StartAgainAndDeliver();
  ASSERT_EQ(stores_[0].stored.size(), 1u);
  const FakeOwner::Stored& batch = stores_[0].stored.at(1);
  EXPECT_TRUE(batch.samples.empty());
  EXPECT_EQ(batch.accounting.captured.total(), 100u);
  EXPECT_EQ(batch.accounting.LostFor(LossReason::kSpoolDamaged).total(), 100u);
  EXPECT_EQ(batch.accounting.TotalLost().total(), 100u);
  EXPECT_EQ(lost_[LossReason::kSpoolDamaged], 100u);
  EXPECT_EQ(stores_[1].stored.rbegin()->second.accounting.TotalLost(), 0u);
}

}  // namespace
}  // namespace tributary::intake
