#include <gmock/gmock.h>

#include "base/status.h"
#include "base/tcp.h"
#include "intake/codec/batch_encoder.h"
#include "intake/testing/reducer_testing.h"
#include "intake/wire/frame.h"

// Clients that send another protocol, random bytes or nothing: they are refused and counted, while a healthy session
// continues.

namespace tributary::intake {
namespace {

using testing::HasSubstr;

// A socket that sends the given bytes.
class RawClient {
 public:
  RawClient(Loop& loop, uint16_t port, std::string bytes) {
    stream_ = TcpStream::Connect(loop, "127.0.0.1", port, [this, bytes = std::move(bytes)](const absl::Status& status) {
      ASSERT_TRUE(status.ok()) << status;
      stream_->Start({.on_data = [this](std::string_view data) { received_.append(data); },
                      .on_close = [this](const absl::Status&) { closed_ = true; },
                      .on_drained = {}});
      stream_->Write(bytes);
    });
  }
  void Write(std::string bytes) { stream_->Write(std::move(bytes)); }
  bool closed() const { return closed_; }
  const std::string& received() const { return received_; }
  // The Goodbye among the frames received.
  std::optional<Goodbye> goodbye() const {
    FrameDecoder decoder;
    decoder.Append(received_);
    Frame frame;
    while (true) {
      auto got = decoder.Next(&frame);
      if (!got.ok() || !*got) return std::nullopt;
      if (frame.type == MessageType::kGoodbye) return *DecodeGoodbye(frame.payload);
    }
  }

 private:
  std::unique_ptr<TcpStream> stream_;
  std::string received_;
  bool closed_ = false;
};

std::string HelloFrame(uint16_t version_min = 1, uint16_t version_max = 1) {
  Hello hello;
  hello.version_min = version_min;
  hello.version_max = version_max;
  hello.session.node_id = "bad";
  return EncodeFrame(MessageType::kHello, 0, 0, EncodeHello(hello));
}

class RefusalTest : public IntakeTest {
 protected:
  RefusalTest() { server_options_.idle_timeout_ms = 600; }

  void StartBoth() {
    server_ =
        std::make_unique<TestServer>(loop_, server_options_, metrics_, [this](const Hello& hello) -> SessionOwner& {
          return hello.session.node_id == "bad" ? static_cast<SessionOwner&>(bad_store_) : store_;
        });
    server_options_.port = server_->port();
    StartClient();
    Send(50);
    RunUntilStored(1);
  }
  // Expects that the healthy session delivers, on its first connection.
  void ExpectHealthy() {
    Send(50);
    RunUntilStored(sent_.size());
    ExpectStoredIsSent();
    EXPECT_EQ(store_.hellos.size(), 1u);
    EXPECT_TRUE(store_.closed.empty());
  }
  // Sends `bytes` on a separate connection and expects exactly one more refusal.
  std::string ExpectRefused(std::string bytes, const char* reason) {
    SCOPED_TRACE(reason);
    const uint64_t before = Refused(reason);
    RawClient raw(loop_, server_options_.port, std::move(bytes));
    RunUntil([&] { return raw.closed(); }, "closed by the server");
    EXPECT_EQ(Refused(reason), before + 1);
    ExpectHealthy();
    return raw.goodbye() ? raw.goodbye()->reason : raw.received();
  }

  FakeOwner bad_store_;
};

TEST_F(RefusalTest, OtherProtocolsAreNamed) {
  StartBoth();
  EXPECT_THAT(ExpectRefused("GET / HTTP/1.1\r\nHost: x\r\n\r\n", "bad_magic"), HasSubstr("HTTP/1.1 400"));
  EXPECT_THAT(ExpectRefused("POST /v1/profiles HTTP/1.1\r\n\r\n", "bad_magic"), HasSubstr("intake port"));
  EXPECT_EQ(ExpectRefused(std::string("\x16\x03\x01\x02\x00\x01\x00", 7), "tls_mismatch"), "");
  std::mt19937_64 random(1);
  for (int i = 0; i < 10; ++i) {
    std::string noise(1 + random() % 5000 + 4, '\0');
    for (char& c : noise) c = static_cast<char>(random());
    EXPECT_EQ(ExpectRefused(noise, "bad_magic"), "");
  }
}

TEST_F(RefusalTest, SilenceAndTruncatedHelloEndAtTheDeadline) {
  server_options_.hello_timeout_ms = 20;
  StartBoth();
  EXPECT_THAT(ExpectRefused("", "timeout"), HasSubstr("no Hello message arrived within 20 ms"));
  EXPECT_THAT(ExpectRefused(HelloFrame().substr(0, 40), "timeout"), HasSubstr("no Hello"));
}

TEST_F(RefusalTest, SilenceAfterHelloEndsAtTheIdleLimit) {
  StartBoth();
  const uint64_t before = Refused("timeout");
  RawClient raw(loop_, server_options_.port, HelloFrame());
  RunUntil([&] { return raw.closed(); }, "closed by the server");
  EXPECT_EQ(Refused("timeout"), before + 1);
  EXPECT_THAT(raw.goodbye()->reason, HasSubstr("the collector sent nothing for 600 ms"));
  RunUntil([&] { return bad_store_.closed.size() == 1; }, "told");
  ExpectHealthy();
}

TEST_F(RefusalTest, RefusesAnInvalidHello) {
  StartBoth();
  std::string oversized = HelloFrame();
  oversized.replace(16, 8, std::string("\x01\x00\x01\x00\x01\x00\x01\x00", 8));
  EXPECT_THAT(ExpectRefused(oversized, "oversized"), HasSubstr("65537 bytes"));
  std::string flipped = HelloFrame();
  flipped.back() = static_cast<char>(flipped.back() ^ 1);
  EXPECT_THAT(ExpectRefused(flipped, "bad_checksum"), HasSubstr("checksum"));
  std::string version = HelloFrame();
  version[4] = 9;
  EXPECT_THAT(ExpectRefused(version, "version"), HasSubstr("frame version 9"));
  EXPECT_THAT(ExpectRefused(EncodeFrame(MessageType::kBatch, 0, 1, "12345678"), "bad_message"), HasSubstr("Hello"));
  ExpectRefused(EncodeFrame(MessageType::kHello, 0, 0, "12345678"), "bad_message");
  EXPECT_THAT(ExpectRefused(HelloFrame(2, 5), "version"), HasSubstr("versions 2 to 5"));
}

TEST_F(RefusalTest, VersionRefusalForbidsARetry) {
  StartBoth();
  RawClient raw(loop_, server_options_.port, HelloFrame(7, 9));
  RunUntil([&] { return raw.closed(); }, "closed");
  ASSERT_TRUE(raw.goodbye());
  EXPECT_FALSE(raw.goodbye()->retry);
}

TEST_F(RefusalTest, TooManyConnections) {
  server_options_.connections_max = 2;
  StartBoth();
  RawClient second(loop_, server_options_.port, HelloFrame());
  RunUntil([&] { return bad_store_.hellos.size() == 1; }, "a second session");
  EXPECT_THAT(ExpectRefused("", "too_many_connections"), HasSubstr("2 connections"));
}

TEST_F(RefusalTest, RefusesDamageInsideASession) {
  StartBoth();
  BatchGenerator generator(9);
  BatchEncoder encoder(1);
  const std::string first = encoder.Encode(generator.Next(50)).back();
  const std::string second = encoder.Encode(generator.Next(50)).back();
  const std::string third = encoder.Encode(generator.Next(50)).back();
  std::string damaged = second;
  damaged[100] = static_cast<char>(damaged[100] ^ 1);
  std::string long_frame = second;
  long_frame.replace(20, 4, "\xff\xff\xff\xff");
  EXPECT_THAT(ExpectRefused(HelloFrame() + first + damaged, "bad_checksum"), HasSubstr("checksum"));
  EXPECT_THAT(ExpectRefused(HelloFrame() + first + long_frame, "oversized"), HasSubstr("4294967295"));
  EXPECT_THAT(ExpectRefused(HelloFrame() + first + third, "out_of_order"), HasSubstr("batch 3 arrived after batch 1"));
  EXPECT_THAT(ExpectRefused(HelloFrame() + second, "out_of_order"), HasSubstr("batch 2 arrived after batch 0"));
  ExpectRefused(HelloFrame() + first + "garbage", "bad_magic");
  ExpectRefused(HelloFrame() + HelloFrame(), "bad_message");
  ExpectRefused(HelloFrame() + EncodeFrame(MessageType::kAck, 0, 0, EncodeAck(1)), "bad_message");
  ExpectRefused(HelloFrame() + EncodeFrame(MessageType::kHeartbeat, 0, 0, "1234567"), "bad_message");
  ExpectRefused(HelloFrame() + EncodeFrame(MessageType::kSymbolChunk, 1, 0, "1234567"), "bad_message");
  ExpectRefused(HelloFrame() + EncodeFrame(MessageType::kBatch, 0, 1, "1234567"), "bad_message");
}

TEST_F(RefusalTest, MalformedBatchIsNamedInGoodbye) {
  StartBoth();
  BatchGenerator generator(9);
  BatchEncoder encoder(1);
  FrameDecoder decoder;
  decoder.Append(encoder.Encode(generator.Next(50)).back());
  Frame frame;
  ASSERT_TRUE(*decoder.Next(&frame));
  // Spoils byte after byte until the decoder notices. The batch must be refused as a batch, not accepted.
  uint64_t refused = 0;
  for (size_t at = frame.payload.size() - 1; at > frame.payload.size() - 40; --at) {
    std::string payload = frame.payload;
    payload[at] = static_cast<char>(payload[at] ^ 0x80);
    const uint64_t before = Refused("bad_message");
    const size_t sessions = bad_store_.closed.size();
    RawClient raw(loop_, server_options_.port,
                  HelloFrame() + EncodeFrame(MessageType::kBatch, 0, 1, payload) +
                      EncodeFrame(MessageType::kGoodbye, 0, 0, EncodeGoodbye({})));
    bad_store_.dictionary.reset();
    bad_store_.generation = 0;
    RunUntil([&] { return bad_store_.closed.size() > sessions; }, "closed");
    if (Refused("bad_message") == before) continue;
    ++refused;
    RunUntil([&] { return raw.goodbye().has_value(); }, "goodbye");
    EXPECT_EQ(raw.goodbye()->rejected_sequence, 1u);
    EXPECT_TRUE(raw.goodbye()->retry);
  }
  EXPECT_GT(refused, 10u);
  ExpectHealthy();
}

TEST_F(RefusalTest, ReplayedFramesChangeNothing) {
  StartBoth();
  BatchGenerator generator(9);
  BatchEncoder encoder(1);
  const Batch batch = generator.Next(50);
  const std::string first = encoder.Encode(batch).back();
  Batch empty{.sequence = 2, .dictionary = batch.dictionary};
  const std::string second = encoder.Encode(empty).back();
  RawClient raw(loop_, server_options_.port, HelloFrame() + first + second + second + second);
  RunUntil([&] { return Count("tributary_intake_duplicate_batches_total") == 2; }, "duplicates dropped");
  EXPECT_EQ(bad_store_.stored.size(), 2u);
  EXPECT_EQ(bad_store_.stored[2].times, 1);
  // A batch that defines the same definitions again: the generation is given up, and nothing is stored twice.
  raw.Write(first);
  RunUntil([&] { return Count("tributary_intake_need_dictionary_total") == 1; }, "NeedDictionary");
  raw.Write(first + second);
  RunUntil([&] { return Count("tributary_intake_stale_batches_total") == 2; }, "dropped as stale");
  EXPECT_EQ(bad_store_.stored[1].times, 1);
  EXPECT_FALSE(raw.closed());
  ExpectHealthy();
}

TEST_F(RefusalTest, UnknownFrameTypesAreSkipped) {
  StartBoth();
  BatchGenerator generator(9);
  BatchEncoder encoder(1);
  RawClient raw(loop_, server_options_.port,
                HelloFrame() + EncodeFrame(static_cast<MessageType>(99), 0, 0, "whatever") +
                    encoder.Encode(generator.Next(50)).back());
  RunUntil([&] { return bad_store_.stored.size() == 1; }, "the batch behind it");
  EXPECT_EQ(Count("tributary_intake_unknown_frames_total"), 1u);
  ExpectHealthy();
}

TEST_F(RefusalTest, DropsAConnectionThatEndsInsideAFrame) {
  StartBoth();
  BatchGenerator generator(9);
  BatchEncoder encoder(1);
  const std::string first = encoder.Encode(generator.Next(50)).back();
  {
    RawClient raw(loop_, server_options_.port, HelloFrame() + first.substr(0, first.size() / 2));
    RunUntil([&] { return bad_store_.hellos.size() == 1; }, "session");
  }
  RunUntil([&] { return bad_store_.closed.size() == 1; }, "closed");
  EXPECT_TRUE(bad_store_.stored.empty());
  ExpectHealthy();
}

}  // namespace
}  // namespace tributary::intake
