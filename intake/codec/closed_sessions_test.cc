#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"
#include "intake/codec/batch_decoder.h"
#include "intake/codec/batch_encoder.h"
#include "intake/wire/wire.h"

namespace tributary::intake {
namespace {

using testing::HasSubstr;

Batch BatchWith(std::vector<ClosedSession> closes) {
  return Batch{.sequence = 1, .dictionary = std::make_shared<Dictionary>(), .closes = std::move(closes)};
}

absl::StatusOr<IncomingBatch> Decode(std::string_view frame) {
  FrameDecoder frames;
  frames.Append(std::string(frame));
  Frame out;
  EXPECT_TRUE(*frames.Next(&out));
  return BatchDecoder(1).Decode(out.type, out.sequence, out.payload);
}

TEST(ClosedSessions, TravelWithABatch) {
  std::vector<ClosedSession> closes(kClosedSessionsMax);
  for (uint8_t i = 0; i < closes.size(); ++i) {
    closes[i].session_id.fill(i);
    closes[i].captured = (uint64_t{1} << 48) - i;
    closes[i].reason = i % 2 == 0 ? LossReason::kShutdown : LossReason::kCollectorKilled;
  }
  auto in = Decode(BatchEncoder(1).Encode(BatchWith(closes)).back());
  ASSERT_TRUE(in.ok()) << in.status();
  EXPECT_EQ(in->closes, closes);
  EXPECT_EQ(in->unknown_values, 0u);
}

TEST(ClosedSessions, InvalidReasonsBecomeCollectorKilled) {
  auto in = Decode(BatchEncoder(1).Encode(BatchWith({{.captured = 7, .reason = LossReason::kRingFull}})).back());
  ASSERT_TRUE(in.ok()) << in.status();
  EXPECT_EQ(in->closes, (std::vector<ClosedSession>{{.captured = 7, .reason = LossReason::kCollectorKilled}}));
  EXPECT_EQ(in->unknown_values, 1u);
}

TEST(ClosedSessions, HostileListsAreRefused) {
  struct Case {
    const char* message;
    unsigned count, id_bytes;
  };
  for (const Case& c :
       {Case{"too many closed sessions", kClosedSessionsMax + 1, 16}, Case{"too many closed sessions", 1u << 20, 16},
        Case{"16 bytes", 1, 15}, Case{"16 bytes", 1, 0}, Case{"16 bytes", 8, 17}}) {
    capnp::MallocMessageBuilder message;
    auto root = message.initRoot<wire::Batch>();
    root.initDefinitions().setGeneration(1);
    auto closes = root.initCloses(c.count);
    closes[0].initSessionId(c.id_bytes);
    auto in = BatchDecoder(1).Decode(MessageType::kBatch, 1, ToPayload(message));
    EXPECT_EQ(in.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(Message(in.status()), HasSubstr(c.message));
  }
}

}  // namespace
}  // namespace tributary::intake
