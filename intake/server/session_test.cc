#include <gmock/gmock.h>

#include "base/status.h"
#include "base/tcp.h"
#include "intake/codec/batch_encoder.h"
#include "intake/testing/reducer_testing.h"
#include "intake/wire/frame.h"

// Client and server over real sockets on one loop.

namespace tributary::intake {
namespace {

using testing::HasSubstr;

TEST_F(IntakeTest, DeliversEverySampleInOrderAndFlushes) {
  StartServer();
  StartClient();
  for (int i = 0; i < 20; ++i) Send(200);
  RunUntilStored(20);
  ExpectStoredIsSent();
  EXPECT_EQ(client_->waiting_samples(), captured_);
  uint64_t unacked = 1;
  client_->Flush(10'000, [&](uint64_t n) {
    unacked = n;
    client_.reset();  // this is allowed here
    loop_.Stop();
  });
  AckAll();
  loop_.Run();
  EXPECT_EQ(unacked, 0u);
  EXPECT_EQ(lost(), 0u);
  EXPECT_EQ(store_.generations, 1);
  EXPECT_EQ(Count("tributary_intake_samples_total"), captured_);
}

TEST_F(IntakeTest, FlushReportsUnacknowledgedSamplesAtTheDeadline) {
  StartServer();
  StartClient();
  Send(70);
  uint64_t unacked = 0;
  client_->Flush(30, [&](uint64_t n) {
    unacked = n;
    loop_.Stop();
  });
  loop_.Run();
  EXPECT_EQ(unacked, 70u);
}

TEST_F(IntakeTest, EverySampleArrivesExactlyOnceWhenTheReducerDies) {
  StartServer();
  StartClient();
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 4; ++i) Send(100);
    RunUntilStored(sent_.size() - 2);
    // Dies with some batches durable, some received and not durable, some in flight.
    store_.durable = store_.newest / 2 + 1;
    if (round % 2 == 0) server_->live()->Ack(store_.durable);
    server_.reset();
    // The batches that were not durable are gone with the reducer, and so is the dictionary.
    store_.stored.erase(store_.stored.upper_bound(store_.durable), store_.stored.end());
    store_.newest = store_.durable;
    store_.keep_dictionary = false;
    Send(50);
    StartServer();
    RunUntilStored(sent_.size());
  }
  ExpectStoredIsSent();
  for (const auto& [sequence, entry] : store_.stored) EXPECT_EQ(entry.times, 1);
  EXPECT_EQ(store_.stored_samples(), captured_);
  EXPECT_EQ(lost(), 0u);
  AckAll();
  RunUntil([&] { return client_->waiting_samples() == 0; }, "all acknowledged");
}

TEST_F(IntakeTest, CapOverflowIsCountedAndTheRestArrives) {
  StartServer();
  server_.reset();  // nothing listens on its port any more
  memory_bytes_max_ = 550 * sizeof(Sample);
  StartClient();
  for (int i = 0; i < 20; ++i) Send(100);
  EXPECT_EQ(lost_[LossReason::kBatchOverflow], lost());
  EXPECT_GE(lost(), 1500u);
  EXPECT_EQ(client_->waiting_samples(), captured_ - lost());
  const size_t kept = client_->waiting_samples() / 100;
  StartServer();
  RunUntilStored(kept);
  for (size_t i = 1; i <= kept; ++i) EXPECT_EQ(store_.stored[i].samples, sent_[20 - kept + i]) << "the newest are kept";
  EXPECT_EQ(store_.stored_samples() + lost(), captured_);
  ExpectAccountIsExact();
}

TEST_F(IntakeTest, OneSessionTakesNoMoreThanItsWindow) {
  StartServer();
  client_options_.window_samples_max = 250;
  StartClient();
  for (int i = 0; i < 6; ++i) Send(100);
  RunUntilStored(3);
  client_->Flush(30, [&](uint64_t n) {
    EXPECT_EQ(n, 600u);
    loop_.Stop();
  });
  loop_.Run();
  EXPECT_EQ(store_.stored.size(), 3u);
  EXPECT_FALSE(client_->settled());
}

TEST_F(IntakeTest, OverflowDuringAStallIsReportedAndLeavesNoHole) {
  bool full = true;
  store_.on_batch = [&](const IncomingBatch&) {
    return full ? Error(absl::StatusCode::kResourceExhausted, "queue full") : absl::OkStatus();
  };
  StartServer();
  memory_bytes_max_ = 20'000 * sizeof(Sample);
  StartClient();
  RunUntil([&] { return client_->connected(); }, "connected");
  const std::vector<Sample> samples = generator_.Next(100).samples;
  std::mt19937_64 random(1);
  SampleCounts captured;
  for (uint64_t sequence = 1; sequence <= 400; ++sequence) {
    Batch batch{.sequence = sequence, .dictionary = generator_.dictionary()};
    for (int i = 0; i < 3000; ++i) {
      batch.samples.push_back(samples[static_cast<size_t>(i) % samples.size()]);
      batch.samples.back().value = random();
    }
    captured_ += batch.samples.size();
    captured += CountSamples(batch.samples);
    batch.accounting.captured = captured;
    ASSERT_TRUE(client_->Take(std::move(batch)).ok());
  }
  EXPECT_GT(lost(), 0u);
  RunUntil([&] { return Count("tributary_intake_stalls_total") > 0; }, "stall");
  full = false;
  server_->live()->Resume();
  RunUntil(
      [&] {
        AckAll();
        return client_->waiting_samples() == 0;
      },
      "all acknowledged");
  EXPECT_EQ(Refused("out_of_order"), 0u);
  EXPECT_EQ(store_.stored_samples() + lost(), captured_);
  ExpectAccountIsExact();
}

TEST_F(IntakeTest, BackPressurePausesAndKeepsTheConnection) {
  server_options_.idle_timeout_ms = 150;  // a busy machine must not make the peer look silent
  int refusals = 0;
  store_.on_batch = [&](const IncomingBatch& batch) {
    if (batch.sequence % 2 == 0 && refusals < static_cast<int>(batch.sequence) / 2) {
      ++refusals;
      return Error(absl::StatusCode::kResourceExhausted, "queue full");
    }
    return absl::OkStatus();
  };
  StartServer();
  StartClient();
  for (int i = 0; i < 6; ++i) Send(100);
  Timer resume(loop_, [&] {
    if (ServerSession* session = server_->live()) session->Resume();
  });
  resume.StartEvery(400);  // longer than the idle limit and than three heartbeats
  RunUntilStored(6);
  ExpectStoredIsSent();
  for (const auto& [sequence, entry] : store_.stored) EXPECT_EQ(entry.times, 1);
  EXPECT_EQ(refusals, 3);
  EXPECT_EQ(store_.hellos.size(), 1u) << "no reconnect";
  EXPECT_EQ(Count("tributary_intake_stalls_total"), 3u);
}

TEST_F(IntakeTest, RejectedBatchIsLostAndTheRestContinues) {
  store_.on_batch = [&](const IncomingBatch& batch) {
    return batch.sequence == 2 && !batch.samples.empty() ? Error(absl::StatusCode::kInvalidArgument, "makes no sense")
                                                         : absl::OkStatus();
  };
  StartServer();
  StartClient();
  for (int i = 0; i < 4; ++i) Send(100);
  RunUntilStored(4);
  EXPECT_EQ(lost_[LossReason::kRejected], 100u);
  EXPECT_EQ(store_.stored_samples() + lost(), captured_);
  ExpectAccountIsExact();
  EXPECT_EQ(Refused("refused_by_owner"), 1u);
}

TEST_F(IntakeTest, OversizedBatchIsLostAndTheRestContinues) {
  StartServer();
  StartClient();
  Batch batch = generator_.Next(1);
  batch.samples.resize(BatchEncoder::kSamplesPerBatchMax + 1);
  EXPECT_EQ(client_->Take(std::move(batch)).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(lost_[LossReason::kRejected], BatchEncoder::kSamplesPerBatchMax + 1);
  Send(10);
  RunUntilStored(2);
  EXPECT_EQ(store_.stored_samples(), 10u);
}

TEST_F(IntakeTest, IdleConnectionIsKeptByHeartbeats) {
  server_options_.idle_timeout_ms = 30;
  StartServer();
  StartClient();
  RunUntil([&] { return client_->connected(); }, "connected");
  Timer end(loop_, [&] { loop_.Stop(); });
  end.StartOnce(200);
  loop_.Run();
  EXPECT_TRUE(client_->connected());
  EXPECT_EQ(store_.hellos.size(), 1u);
  EXPECT_EQ(Refused("timeout"), 0u);
}

TEST_F(IntakeTest, OwnerMayRefuseASession) {
  store_.hello_answer = Error(absl::StatusCode::kUnavailable, "starting up");
  StartServer();
  StartClient();
  Send(10);
  RunUntil([&] { return store_.hellos.size() >= 2; }, "a second try");
  store_.hello_answer = absl::OkStatus();
  RunUntilStored(1);
  ExpectStoredIsSent();
}

TEST_F(IntakeTest, CloseSendsGoodbyeAndTheClientComesBack) {
  StartServer();
  StartClient();
  RunUntil([&] { return client_->connected(); }, "connected");
  server_->live()->Close({.reason = "stopping"});
  RunUntil([&] { return store_.closed.size() == 1; }, "closed");
  EXPECT_THAT(Message(store_.closed[0]), HasSubstr("stopping"));
  RunUntil([&] { return store_.hellos.size() == 2 && client_->connected(); }, "back");
}

TEST_F(IntakeTest, OwnerMayDestroyTheSessionInOnClosed) {
  StartServer();
  store_.on_closed = [&](const SessionInfo&) { server_->sessions.clear(); };
  StartClient();
  RunUntil([&] { return client_->connected(); }, "connected");
  client_.reset();
  RunUntil([&] { return server_->sessions.empty(); }, "destroyed");
  EXPECT_EQ(metrics_.AddGauge("tributary_intake_sessions", "").value(), 0);
}

TEST_F(IntakeTest, LeavesASilentReducerAfterThreeHeartbeats) {
  int accepted = 0;
  std::vector<std::unique_ptr<TcpStream>> streams;
  auto listener = TcpListener::Listen(loop_, "127.0.0.1", 0, [&](std::unique_ptr<TcpStream> stream) {
    ++accepted;
    stream->Start({.on_data = [](std::string_view) {}, .on_close = [](absl::Status) {}, .on_drained = {}});
    Welcome welcome;
    welcome.heartbeat_ms = 10;
    stream->Write(EncodeFrame(MessageType::kWelcome, 0, 0, EncodeWelcome(welcome)));
    streams.push_back(std::move(stream));
  });
  server_options_.port = (*listener)->port();
  StartClient();
  RunUntil([&] { return accepted == 2; }, "reconnect");
}

TEST_F(IntakeTest, LeavesAReducerThatNeverAnswersHello) {
  int accepted = 0;
  std::vector<std::unique_ptr<TcpStream>> streams;
  auto listener = TcpListener::Listen(loop_, "127.0.0.1", 0, [&](std::unique_ptr<TcpStream> stream) {
    ++accepted;
    streams.push_back(std::move(stream));
  });
  server_options_.port = (*listener)->port();
  client_options_.connect_timeout_ms = 20;
  StartClient();
  RunUntil([&] { return accepted == 2; }, "reconnect");
}

TEST_F(IntakeTest, LeavesAPortWithAnotherProtocol) {
  int accepted = 0;
  std::vector<std::unique_ptr<TcpStream>> streams;
  auto listener = TcpListener::Listen(loop_, "127.0.0.1", 0, [&](std::unique_ptr<TcpStream> stream) {
    ++accepted;
    stream->Write("HTTP/1.1 400 Bad Request\r\n\r\n");
    streams.push_back(std::move(stream));
  });
  server_options_.port = (*listener)->port();
  StartClient();
  Send(10);
  RunUntil([&] { return accepted == 2; }, "reconnect");
  EXPECT_EQ(client_->waiting_samples(), 10u);
}

}  // namespace
}  // namespace tributary::intake
