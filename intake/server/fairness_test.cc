#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "base/status.h"
#include "base/varint.h"
#include "base/zstd.h"
#include "intake/codec/columns.h"
#include "intake/codec/decode_work.h"
#include "intake/testing/mend_checksums_testing.h"
#include "intake/testing/raw_client_testing.h"
#include "intake/testing/reducer_testing.h"
#include "intake/wire/frame.h"
#include "intake/wire/wire.h"

// One node cannot keep the event loop from other nodes, however few bytes it sends. The tests count frames and work,
// not time.

namespace tributary::intake {
namespace {

constexpr uint32_t kNodesMax = 131'071;

// A Definitions frame of a new generation, with `nodes` nodes in chains from the root.
std::string DefinitionsFrame(uint32_t generation, uint32_t nodes) {
  ColumnWriter columns;
  if (nodes > 0) {
    std::string attach, length, frames, ids;
    constexpr uint32_t kChainMax = 1'024;  // the longest stack that a decoder accepts
    for (uint32_t i = 0; i < nodes; ++i) {
      if (i % kChainMax == 0) {
        AppendVarint(attach, 1 + i);
        AppendVarint(length, std::min(nodes - i, kChainMax));
      }
      AppendVarint(frames, kFrameById);
      AppendVarint(ids, 0);
    }
    columns.Put(DefinitionColumn::kChainAttach, attach);
    columns.Put(DefinitionColumn::kChainLengths, length);
    columns.Put(DefinitionColumn::kNodeFrames, frames);
    columns.Put(DefinitionColumn::kNodeFrameIds, ids);
  }
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<wire::Definitions>();
  root.setGeneration(generation);
  root.setColumns(DataOf(columns.bytes()));
  return EncodeFrame(MessageType::kDefinitions, kChannelSamples, 0, ToPayload(message));
}

// A frame that the reducer skips and counts. So the counter says how many of the frames before it were handled.
std::string Marker() { return EncodeFrame(static_cast<MessageType>(200), kChannelSamples, 0, "12345678"); }

// `count` frames of `nodes` definitions each, with a marker after each of them.
std::string Hostile(uint32_t count, uint32_t nodes) {
  std::string bytes;
  for (uint32_t generation = 1; generation <= count; ++generation) {
    bytes += DefinitionsFrame(generation, nodes) + Marker();
  }
  return bytes;
}

struct OwnerWithRoom : FakeOwner {
  bool HasRoom(const SessionInfo&) override { return room; }
  bool room = true;
};

class FairnessTest : public IntakeTest {
 protected:
  void Listen() {
    server_ = std::make_unique<TestServer>(
        loop_, server_options_, metrics_,
        [this](const Hello& hello) -> SessionOwner& { return owners_[hello.session.node_id]; });
    server_options_.port = server_->port();
  }
  std::unique_ptr<RawClient> Connect(const std::string& bytes) {
    return std::make_unique<RawClient>(connector_, server_options_.port, bytes);
  }
  uint64_t handled() { return Count("tributary_intake_unknown_frames_total"); }
  uint64_t Throttled(const char* reason) {
    return metrics_.AddCounter("tributary_intake_throttles_total", "", {{"reason", reason}}).value();
  }
  // Expects that a node that connects now gets its Welcome.
  void ExpectOtherNodeIsServed() {
    auto other = Connect(HelloFrame("other"));
    RunUntil([&] { return other->welcome(); }, "the Welcome of another node");
  }

  std::map<std::string, OwnerWithRoom> owners_;
};

TEST_F(FairnessTest, FramesOfManyDefinitionsDoNotDelayAnotherNode) {
  constexpr uint32_t kFrames = 200;
  ASSERT_LT(DefinitionsFrame(1, kNodesMax).size(), 1'000u);
  Listen();
  auto hostile = Connect(HelloFrame("hostile"));
  auto other = Connect("");
  RunUntil([&] { return hostile->welcome() && other->connected(); }, "both connected");
  hostile->Write(Hostile(kFrames, kNodesMax));
  other->Write(HelloFrame("other"));
  RunUntil([&] { return other->welcome(); }, "the Welcome of the other node");
  EXPECT_LE(handled(), 20u) << "each is four turns of work, and the other node needs a few turns of the loop";
  EXPECT_GT(Count("tributary_intake_yields_total"), 0u);
  server_.reset();
}

TEST_F(FairnessTest, NodeWaitsWhenItsWorkIsOverTheRate) {
  FakeClock clock;  // the debt is never paid
  Limits limits({.node_work_per_second = 100'000}, clock);
  server_options_.limits = &limits;
  Listen();
  auto hostile = Connect(HelloFrame("hostile") + Hostile(10, kNodesMax));
  RunUntil([&] { return Throttled("work") == 1; }, "paused");
  EXPECT_EQ(handled(), 1u) << "200,000 units at once, and one frame may exceed them";
  ExpectOtherNodeIsServed();
  // The node keeps its debt when it connects again.
  hostile.reset();
  auto again = Connect(HelloFrame("hostile") + Hostile(10, kNodesMax));
  RunUntil([&] { return again->welcome() && Throttled("work") >= 2; }, "paused again");
  EXPECT_EQ(handled(), 1u);
  EXPECT_LT(Count("tributary_intake_work_total"), 3u * (kNodesMax + WorkOfPayload(kPayloadBytesMax)));
  clock.Advance(60 * kNsPerSecond);
  RunUntil([&] { return handled() > 1; }, "more frames after the debt was paid");
  server_.reset();
}

// A frame of 2 kB whose payload has another length than its header says. The reducer may decompress 4 MiB before it
// knows.
TEST_F(FairnessTest, NodeWaitsWhenItSendsPayloadsThatCannotBeDecompressed) {
  std::string frame = EncodeFrame(MessageType::kHeartbeat, kChannelSamples, 0, std::string(kPayloadBytesMax, 'a'));
  const uint32_t fewer = kPayloadBytesMax - 1;
  frame.replace(16, sizeof(fewer), reinterpret_cast<const char*>(&fewer), sizeof(fewer));
  MendChecksums(frame);
  FakeClock clock;
  Limits limits({.node_work_per_second = 100'000}, clock);
  server_options_.limits = &limits;
  Listen();
  const auto refused = [&] {
    return metrics_.AddCounter("tributary_intake_refusals_total", "", {{"reason", "bad_payload"}}).value();
  };
  for (int i = 0; i < 10; ++i) {
    auto hostile = Connect(HelloFrame("hostile") + frame);
    const uint64_t before = refused(), paused = Throttled("work");
    RunUntil([&] { return refused() > before || Throttled("work") > paused; }, "refused or paused");
  }
  EXPECT_LE(refused(), 4u) << "200,000 units at once, and one frame may exceed them";
  EXPECT_GE(Throttled("work"), 6u);
  ExpectOtherNodeIsServed();
  server_.reset();
}

// One frame of a few bytes can unpack to 512 MiB.
TEST_F(FairnessTest, NodePaysForTheUnpackingOfASymbolTable) {
  constexpr size_t kRawBytes = 64u << 20;
  FakeClock clock;  // the debt is never paid
  Limits limits({.node_work_per_second = 100'000}, clock);
  server_options_.limits = &limits;
  Listen();
  auto hostile = Connect(HelloFrame("hostile"));
  RunUntil([&] { return hostile->welcome(); }, "connected");
  const auto id = *ExecutableId::Make(ExecutableIdKind::kGnuBuildId, "zeros");
  server_->live()->NeedSymbols({id});
  const std::string zstd = ZstdCompress(std::string(kRawBytes, '\0'));
  ASSERT_LT(zstd.size(), kSymbolChunkBytes);
  hostile->Write(
      EncodeFrame(MessageType::kSymbolChunk, kChannelSymbols, 0,
                  EncodeSymbolChunk({.id = id, .total_bytes = zstd.size(), .raw_bytes = kRawBytes, .bytes = zstd})));
  RunUntil([&] { return owners_["hostile"].symbols.size() == 1; }, "the table");
  EXPECT_TRUE(owners_["hostile"].symbols[0].second.ok());
  EXPECT_GE(Count("tributary_intake_work_total"), WorkOfSymbolTable(kRawBytes));
  EXPECT_EQ(Throttled("work"), 1u);
  ExpectOtherNodeIsServed();
  server_.reset();
}

// Two of six received frames use up the node's work, whichever connections they came from.
TEST_F(FairnessTest, AllConnectionsOfANodeWaitForItsDebt) {
  FakeClock clock;
  Limits limits({.node_work_per_second = 100'000}, clock);
  server_options_.limits = &limits;
  Listen();
  auto first = Connect(HelloFrame("hostile"));
  auto second = Connect(HelloFrame("hostile"));
  RunUntil([&] { return first->welcome() && second->welcome(); }, "both connected");
  first->Write(Hostile(3, kNodesMax));
  second->Write(Hostile(3, kNodesMax));
  RunUntil([&] { return Throttled("work") == 2; }, "both paused");
  EXPECT_LE(handled(), 2u);
  EXPECT_LT(Count("tributary_intake_work_total"), 3u * kNodesMax);
  server_.reset();
}

TEST_F(FairnessTest, NodeWaitsWhenItBeginsTooManyGenerations) {
  FakeClock clock;
  Limits limits({.node_generations_per_second = 1}, clock);
  Refusals refusals(clock, metrics_);
  server_options_.limits = &limits;
  server_options_.refusals = &refusals;
  Listen();
  auto hostile = Connect(HelloFrame("hostile") + Hostile(50, 0));
  RunUntil([&] { return Throttled("generations") == 1; }, "paused");
  EXPECT_EQ(refusals.Of("hostile")["generations_per_second"], 1u);
  EXPECT_EQ(handled(), 2u) << "the generations of two seconds at once";
  ExpectOtherNodeIsServed();
  EXPECT_EQ(handled(), 2u);
  EXPECT_FALSE(hostile->closed());
  server_.reset();
}

TEST_F(FairnessTest, DefinitionsWaitForRoomInTheQueue) {
  Listen();
  owners_["hostile"].room = false;
  auto hostile = Connect(HelloFrame("hostile") + Hostile(10, 100));
  RunUntil([&] { return Count("tributary_intake_stalls_total") > 0; }, "paused");
  EXPECT_EQ(handled(), 0u);
  EXPECT_LT(Count("tributary_intake_work_total"), 100u) << "not decoded";
  owners_["hostile"].room = true;
  server_->live()->Resume();
  RunUntil([&] { return handled() == 10; }, "the rest");
  server_.reset();
}

// Every frame ends the turn, the owner refuses some batches, and generations change.
TEST_F(FairnessTest, ShortTurnsLoseNothing) {
  int refusals = 0;
  store_.on_batch = [&](const IncomingBatch& batch) {
    if (batch.sequence % 3 != 0 || refusals >= static_cast<int>(batch.sequence)) return absl::OkStatus();
    ++refusals;
    return Error(absl::StatusCode::kResourceExhausted, "queue full");
  };
  server_options_.turn_work = 1;
  StartServer();
  StartClient();
  for (int i = 0; i < 20; ++i) {
    Send(500, 20);
    if (i % 5 == 4) generator_.Evict();
    if (i == 12) generator_.NewDictionary();
  }
  Timer resume(loop_, [&] {
    if (ServerSession* session = server_->live()) session->Resume();
  });
  resume.StartEvery(1);
  RunUntilStored(20);
  ExpectStoredIsSent();
  EXPECT_EQ(store_.hellos.size(), 1u) << "one connection";
  EXPECT_GE(Count("tributary_intake_yields_total"), 20u);
}

}  // namespace
}  // namespace tributary::intake
