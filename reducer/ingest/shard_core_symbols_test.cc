#include <gtest/gtest.h>

#include "intake/codec/batch_encoder.h"
#include "reducer/ingest/shard_core_testing.h"

// The symbol tables and digests that a shard requests.

namespace tributary::ingest {
namespace {

class ShardCoreSymbolsTest : public ShardCoreTest {
 protected:
  static ExecutableId Id() { return *ExecutableId::Make(ExecutableIdKind::kGnuBuildId, "of all nodes"); }
  // Connects a node that has the executable.
  std::shared_ptr<Wire> ConnectWithExecutable(uint8_t session, uint64_t features = 0) {
    intake::Hello hello = HelloOf(session);
    hello.features = features;
    auto wire = Connect(hello);
    core_.OnFound(hello.session.session_id, uint64_t{0});
    auto dictionary = std::make_shared<Dictionary>();
    dictionary->InternExecutable(Id(), "/bin/all");
    for (const std::string& frame : intake::BatchEncoder(1).Encode({.sequence = 1, .dictionary = dictionary})) {
      wire->callbacks.on_data(frame);
    }
    return wire;
  }
  static std::string Chunk(uint64_t offset) {
    const intake::SymbolChunk chunk{
        .id = Id(), .offset = offset, .total_bytes = 100, .raw_bytes = 100, .bytes = "part"};
    return EncodeFrame(intake::MessageType::kSymbolChunk, intake::kChannelSymbols, 0, EncodeSymbolChunk(chunk));
  }
};

// Tables that one node owed when its connection ended are asked of another node at once, not in its next round.
TEST_F(ShardCoreSymbolsTest, AsksAnotherNodeForTablesRequestedFromAClosedSession) {
  auto first = ConnectWithExecutable(1), second = ConnectWithExecutable(2);
  ASSERT_EQ(symbols_.questions.size(), 2u);
  EXPECT_EQ(symbols_.questions[0].candidates, std::vector<ExecutableId>{Id()});
  const uint64_t asker = symbols_.questions[0].asker, other = symbols_.questions[1].asker;
  EXPECT_NE(asker, other);
  symbols_.questions[0].reply({{Id()}, {}, 1});
  symbols_.questions[1].reply({{}, {}, 1});
  EXPECT_TRUE(Find(*first, intake::MessageType::kNeedSymbols).has_value());
  EXPECT_FALSE(Find(*second, intake::MessageType::kNeedSymbols).has_value());
  first->callbacks.on_data(Chunk(0) + Chunk(4));
  EXPECT_EQ(symbols_.progress, (std::vector<uint64_t>{asker, asker}));

  first->callbacks.on_close(absl::OkStatus());
  RunUntil([&] { return !symbols_.released.empty(); });
  EXPECT_EQ(symbols_.released, std::vector<uint64_t>{asker});
  symbols_.to_release = {Id()};
  core_.Start();
  RunUntil([&] { return symbols_.questions.size() == 3; });
  EXPECT_EQ(symbols_.questions[2].asker, other);
  EXPECT_EQ(symbols_.questions[2].candidates, std::vector<ExecutableId>{Id()});
  second->callbacks.on_close(absl::OkStatus());
  RunUntil([&] { return symbols_.released.size() == 2; });
  EXPECT_EQ(symbols_.released[1], other) << "a look-up was on its way for it";
}

// A source file has no symbol table.
TEST_F(ShardCoreSymbolsTest, AsksForNoTablesOfSourceFiles) {
  const intake::Hello hello = HelloOf(1);
  auto wire = Connect(hello);
  core_.OnFound(hello.session.session_id, uint64_t{0});
  auto dictionary = std::make_shared<Dictionary>();
  const ExecutableId source = *ExecutableId::Make(ExecutableIdKind::kContentHash, std::string(16, 's'));
  const ExecutableRef of_source = dictionary->InternExecutable(source, "/srv/app.py");
  const ExecutableRef of_code = dictionary->InternExecutable(Id(), "/bin/all");
  dictionary->InternStack(std::vector<Frame>{
      {.kind = FrameKind::kInterpreter, .executable = of_code, .address = 1},
      {.kind = FrameKind::kPython, .executable = of_source, .name = dictionary->InternString("run")}});
  for (const std::string& frame : intake::BatchEncoder(1).Encode({.sequence = 1, .dictionary = dictionary})) {
    wire->callbacks.on_data(frame);
  }
  ASSERT_EQ(symbols_.questions.size(), 1u);
  EXPECT_EQ(symbols_.questions[0].candidates, std::vector<ExecutableId>{Id()});
}

TEST_F(ShardCoreSymbolsTest, RequestsTheDigestOfATable) {
  auto first = ConnectWithExecutable(1), second = ConnectWithExecutable(2, intake::kFeatureSymbolDigests);
  ASSERT_EQ(symbols_.questions.size(), 2u);
  EXPECT_FALSE(symbols_.questions[0].sends_digests) << "of an earlier release";
  EXPECT_TRUE(symbols_.questions[1].sends_digests);
  symbols_.questions[1].reply({{}, {Id()}, 1});
  EXPECT_FALSE(Find(*second, intake::MessageType::kNeedSymbols).has_value());
  const auto request = Find(*second, intake::MessageType::kNeedDigests);
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(*intake::DecodeNeedDigests(request->payload), std::vector<ExecutableId>{Id()});
  const std::string answer = EncodeFrame(intake::MessageType::kSymbolDigest, intake::kChannelSymbols, 0,
                                         intake::EncodeSymbolDigest({.id = Id(), .sha256 = {1}, .source = 2}));
  second->callbacks.on_data(answer + answer);
  ASSERT_EQ(symbols_.digests.size(), 1u) << "the second answer was not requested";
  EXPECT_EQ(symbols_.digests[0], std::pair(std::string("node"), Id()));
  EXPECT_EQ(symbols_.progress.size(), 1u);
}

// The answer of a look-up for one connection is not used on the session's next connection, which has its own look-up.
TEST_F(ShardCoreSymbolsTest, IgnoresAnAnswerForAnEarlierConnection) {
  ConnectWithExecutable(1);
  ASSERT_EQ(symbols_.questions.size(), 1u);
  intake::Hello hello = HelloOf(1);
  hello.dictionary_generation = 1;
  auto second = Connect(hello);
  EXPECT_EQ(symbols_.released, std::vector<uint64_t>{symbols_.questions[0].asker});
  core_.OnFound(hello.session.session_id, uint64_t{0});
  symbols_.questions[0].reply({{Id()}, {}, 1});
  EXPECT_FALSE(Find(*second, intake::MessageType::kNeedSymbols).has_value());
  core_.Start();
  RunUntil([&] { return symbols_.questions.size() == 2; });
  EXPECT_NE(symbols_.questions[1].asker, symbols_.questions[0].asker);
  symbols_.questions[1].reply({{Id()}, {}, 1});
  EXPECT_TRUE(Find(*second, intake::MessageType::kNeedSymbols).has_value());
}

}  // namespace
}  // namespace tributary::ingest
