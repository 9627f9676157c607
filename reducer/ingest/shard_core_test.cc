#include "reducer/ingest/shard_core.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/loop.h"
#include "intake/codec/batch_encoder.h"
#include "intake/metadata/metadata_message.h"
#include "intake/testing/batch_generator_testing.h"
#include "intake/wire/frame.h"

namespace tributary::ingest {
namespace {

// Tests the core without its threads: the test is the writer, and both ends of the wire.

struct Wire {
  Stream::Callbacks callbacks;
  std::string written;
  bool open = true;
};

class WireStream : public Stream {
 public:
  explicit WireStream(std::shared_ptr<Wire> wire) : wire_(std::move(wire)) {}
  ~WireStream() override { wire_->open = false; }
  void Start(Callbacks callbacks) override { wire_->callbacks = std::move(callbacks); }
  void PauseReading() override {}
  void ResumeReading() override {}
  void Write(std::string bytes) override { wire_->written += bytes; }
  size_t pending_bytes() const override { return 0; }
  std::string peer() const override { return "test:1"; }

 private:
  std::shared_ptr<Wire> wire_;
};

class TestWriter final : public BatchWriter {
 public:
  bool HasRoom() const override { return room; }
  bool TrySubmit(RowBatch batch) override {
    submitted.push_back(std::move(batch));
    return true;
  }
  bool TryFind(const SessionId& id) override {
    finds.push_back(id);
    return true;
  }
  void Maintain() override {}

  bool room = true;
  std::vector<RowBatch> submitted;
  std::vector<SessionId> finds;
};

class TestDesk final : public SymbolDesk {
 public:
  struct Question {
    uint64_t asker = 0;
    bool sends_digests = false;
    std::vector<ExecutableId> candidates;
    Reply reply;
  };
  bool TryChoose(const SymbolNode& node, std::vector<ExecutableId> candidates, size_t, Reply reply) override {
    questions.push_back({node.connection, node.sends_digests, std::move(candidates), std::move(reply)});
    return true;
  }
  void Take(const SymbolNode& node, const ExecutableId&, absl::StatusOr<std::string>) override {
    taken.push_back(node.connection);
  }
  void TakeDigest(const SymbolNode& node, const ExecutableId& id, const absl::StatusOr<SymbolDigest>& digest) override {
    EXPECT_TRUE(digest.ok());
    digests.emplace_back(node.node_id, id);
  }
  void Progress(uint64_t asker) override { progress.push_back(asker); }
  void Release(uint64_t asker) override { released.push_back(asker); }
  std::vector<ExecutableId> TakeReleased() override { return std::exchange(to_release, {}); }

  std::vector<Question> questions;
  std::vector<uint64_t> taken, progress, released;
  std::vector<std::pair<std::string, ExecutableId>> digests;
  std::vector<ExecutableId> to_release;
};

class TestMetadata final : public MetadataDesk {
 public:
  bool TryConnect(const MetadataSender& sender) override {
    if (!is_full) lines.push_back("+" + sender.id);
    return !is_full;
  }
  void Disconnect(const MetadataSender& sender) override { lines.push_back("-" + sender.id); }
  bool TryTake(const MetadataSender& sender, MetadataUpdate update) override {
    if (is_full) return false;
    for (const Entity& entity : update.entities) {
      lines.push_back((sender.is_cluster ? "cluster " : "node ") + sender.id + " sends " + entity.id);
    }
    return true;
  }
  bool is_full = false;
  std::vector<std::string> lines;
};

class ShardCoreTest : public testing::Test {
 protected:
  intake::Hello HelloOf(uint8_t session) {
    intake::Hello hello;
    hello.session.session_id.fill(session);
    hello.session.node_id = "node";
    return hello;
  }
  std::shared_ptr<Wire> Connect(const intake::Hello& hello) {
    auto wire = std::make_shared<Wire>();
    core_.Accept({std::make_unique<WireStream>(wire), hello, ""});
    return wire;
  }
  void Commit(uint64_t sequence, bool need_dictionary = false) {
    const RowBatch& batch = writer_.submitted.back();
    core_.OnCommitted({Committed(batch, {sequence, need_dictionary})});
  }
  void RunUntil(const std::function<bool()>& done) {
    auto poll = loop_.NewAlarm([&] {
      if (done()) loop_.Stop();
    });
    poll->StartEvery(1);
    loop_.Run();
  }
  // Returns the first frame of this type that the reducer wrote.
  static std::optional<intake::Frame> Find(const Wire& wire, intake::MessageType type) {
    intake::FrameDecoder frames;
    frames.Append(wire.written);
    intake::Frame frame;
    while (*frames.Next(&frame)) {
      if (frame.type == type) return frame;
    }
    return std::nullopt;
  }
  static std::optional<intake::Welcome> WelcomeOn(const Wire& wire) {
    const std::optional<intake::Frame> frame = Find(wire, intake::MessageType::kWelcome);
    if (!frame) return std::nullopt;
    return *intake::DecodeWelcome(frame->payload);
  }
  static bool AsksForDictionary(const Wire& wire) {
    return Find(wire, intake::MessageType::kNeedDictionary).has_value();
  }

  Loop loop_;
  FakeClock clock_;
  Metrics metrics_;
  TestWriter writer_;
  TestDesk symbols_;
  TestMetadata sink_;
  Refusals refusals_{clock_, metrics_};
  ShardCore core_{{loop_, writer_, symbols_, clock_, metrics_},
                  {.server = {.refusals = &refusals_}, .tick_ms = 1, .metadata = &sink_},
                  {}};
};

// When Welcome reports the mark, each batch that was read on the earlier connection is durable or gone. A collector
// that has given up such batches learns their fate from Welcome alone.
TEST_F(ShardCoreTest, WelcomeWaitsForBatchesOfTheEarlierConnection) {
  intake::Hello hello = HelloOf(1);
  auto first = Connect(hello);
  core_.OnFound(hello.session.session_id, uint64_t{0});
  ASSERT_TRUE(WelcomeOn(*first).has_value());
  intake::BatchGenerator generator(1);
  intake::BatchEncoder encoder(1);
  for (const std::string& frame : encoder.Encode(generator.Next(10))) first->callbacks.on_data(frame);
  ASSERT_EQ(writer_.submitted.size(), 1u);

  hello.dictionary_generation = 1;
  auto second = Connect(hello);
  EXPECT_FALSE(first->open);
  EXPECT_FALSE(WelcomeOn(*second).has_value()) << "the batch is with the writer still";
  ASSERT_EQ(writer_.finds.size(), 2u);
  Commit(1);
  core_.OnFound(hello.session.session_id, uint64_t{1});
  ASSERT_TRUE(WelcomeOn(*second).has_value());
  EXPECT_EQ(WelcomeOn(*second)->durable_sequence, 1u);
  EXPECT_TRUE(WelcomeOn(*second)->dictionary_kept);
  EXPECT_EQ(WelcomeOn(*second)->have, encoder.sent());
}

// A collector continues the session of a killed collector, and counts its generations from 1 again.
TEST_F(ShardCoreTest, GenerationsOfAnEarlierProcessDoNotAffectANewOne) {
  intake::Hello hello = HelloOf(1);
  auto killed = Connect(hello);
  core_.OnFound(hello.session.session_id, uint64_t{0});
  intake::BatchGenerator generator(1);
  for (const std::string& frame : intake::BatchEncoder(7).Encode(generator.Next(10))) killed->callbacks.on_data(frame);
  Commit(0, /*need_dictionary=*/true);
  ASSERT_TRUE(AsksForDictionary(*killed));

  hello.next_sequence = 2;
  auto next = Connect(hello);
  core_.OnFound(hello.session.session_id, uint64_t{0});
  for (const std::string& frame : intake::BatchEncoder(1).Encode(generator.Next(10))) next->callbacks.on_data(frame);
  ASSERT_EQ(writer_.submitted.size(), 2u);
  Commit(0, /*need_dictionary=*/true);
  EXPECT_TRUE(AsksForDictionary(*next)) << "generation 1 was not refused, generation 7 was";
}

// Goodbye names the batch, so its collector counts the samples as lost and does not send them again. The writer has
// undone the definitions of the batch.
TEST_F(ShardCoreTest, ABatchThatCannotBeStoredIsRefusedByItsNumber) {
  intake::Hello hello = HelloOf(1);
  auto wire = Connect(hello);
  core_.OnFound(hello.session.session_id, uint64_t{0});
  intake::BatchGenerator generator(1);
  intake::BatchEncoder encoder(1);
  for (int i = 0; i < 2; ++i) {
    for (const std::string& frame : encoder.Encode(generator.Next(10))) wire->callbacks.on_data(frame);
  }
  ASSERT_EQ(writer_.submitted.size(), 2u);
  CommittedBatch refused = Committed(writer_.submitted[0], {0, /*need_dictionary=*/true});
  refused.refused = true;
  refused.refused_sequence = 1;
  core_.OnCommitted({refused, Committed(writer_.submitted[1], {0, /*need_dictionary=*/true})});
  EXPECT_FALSE(AsksForDictionary(*wire)) << "the collector connects again first";
  const std::optional<intake::Frame> frame = Find(*wire, intake::MessageType::kGoodbye);
  ASSERT_TRUE(frame.has_value());
  const intake::Goodbye goodbye = *intake::DecodeGoodbye(frame->payload);
  EXPECT_EQ(goodbye.rejected_sequence, 1u);
  EXPECT_FALSE(goodbye.retry) << "the collector must not come back at once";

  hello.dictionary_generation = 1;
  auto again = Connect(hello);
  core_.OnFound(hello.session.session_id, uint64_t{0});
  ASSERT_TRUE(WelcomeOn(*again).has_value());
  EXPECT_FALSE(WelcomeOn(*again)->dictionary_kept);
}

TEST_F(ShardCoreTest, ADictionaryOfAnEarlierProcessIsNotKept) {
  intake::Hello hello = HelloOf(1);
  auto killed = Connect(hello);
  core_.OnFound(hello.session.session_id, uint64_t{0});
  intake::BatchGenerator generator(1);
  for (const std::string& frame : intake::BatchEncoder(1).Encode(generator.Next(10))) killed->callbacks.on_data(frame);
  Commit(1);
  auto next = Connect(hello);
  core_.OnFound(hello.session.session_id, uint64_t{1});
  // The definitions that the new process sent in its own generation 1 were lost with its connection.
  hello.dictionary_generation = 1;
  auto again = Connect(hello);
  core_.OnFound(hello.session.session_id, uint64_t{1});
  EXPECT_FALSE(WelcomeOn(*again)->dictionary_kept);
}

// Only old samples wait: neither current samples of the same node, nor other nodes whose day has its turn.
TEST_F(ShardCoreTest, ABatchWaitsIfItsNodeUsesTooManyOldDays) {
  constexpr int64_t kHour = 60 * kNsPerMinute, kTurn = 2 * kNsPerMinute;
  struct Node {
    std::shared_ptr<Wire> wire;
    intake::BatchGenerator generator{1};
    intake::BatchEncoder encoder{1};
    void Send(int days_ago) {
      Batch batch = generator.Next(10);
      batch.clock.unix.value -= days_ago * kNsPerDay;
      for (const std::string& frame : encoder.Encode(batch)) wire->callbacks.on_data(frame);
    }
  };
  Node old, current, other;
  using Row = std::tuple<Node*, uint8_t, const char*>;
  for (const auto& [node, session, name] : {Row(&old, 1, "node"), Row(&current, 2, "node"), Row(&other, 3, "other")}) {
    intake::Hello hello = HelloOf(session);
    hello.session.node_id = name;
    node->wire = Connect(hello);
    core_.OnFound(hello.session.session_id, uint64_t{0});
  }
  const Counter& waits = metrics_.AddCounter("tributary_reducer_old_days_total", "");
  const auto run_ticks = [&] {
    int left = 20;
    auto end = loop_.NewAlarm([&] {
      if (--left == 0) loop_.Stop();
    });
    end->StartEvery(1);
    loop_.Run();
  };
  core_.Start();
  for (const int days : {6, 5, 4}) old.Send(days);
  EXPECT_EQ(writer_.submitted.size(), 2u) << "4 days ago has its turn later";
  EXPECT_EQ(waits.value(), 1u);
  current.Send(0);
  other.Send(6);
  EXPECT_EQ(writer_.submitted.size(), 4u);
  clock_.Advance(kTurn);
  run_ticks();
  EXPECT_EQ(writer_.submitted.size(), 5u);
  old.Send(3);
  EXPECT_EQ(writer_.submitted.size(), 6u);

  old.Send(2);
  current.Send(0);
  other.Send(3);
  EXPECT_EQ(writer_.submitted.size(), 8u);
  EXPECT_EQ(waits.value(), 2u);
  clock_.Advance(kHour - kTurn - 1);
  run_ticks();
  EXPECT_EQ(writer_.submitted.size(), 8u);
  EXPECT_EQ(waits.value(), 2u) << "it was not even decoded again";
  clock_.Advance(1);
  run_ticks();
  ASSERT_EQ(writer_.submitted.size(), 9u);
  EXPECT_EQ(writer_.submitted.back().sequence, 5u);
  EXPECT_EQ(waits.value(), 2u);
  EXPECT_EQ(refusals_.Of("node")["old_days"], 2u);
}

// After a start of the reducer, look-ups alone may fill the writer's queue. A batch that was held back then must not
// wait for a commit, because no commit is due.
TEST_F(ShardCoreTest, AnAnsweredLookUpResumesHeldBackSessions) {
  const intake::Hello hello = HelloOf(1), other = HelloOf(2);
  auto wire = Connect(hello);
  core_.OnFound(hello.session.session_id, uint64_t{0});
  auto looked_up = Connect(other);
  writer_.room = false;
  intake::BatchGenerator generator(1);
  intake::BatchEncoder encoder(1);
  for (const std::string& frame : encoder.Encode(generator.Next(10))) wire->callbacks.on_data(frame);
  ASSERT_TRUE(writer_.submitted.empty());

  writer_.room = true;
  core_.OnFound(other.session.session_id, uint64_t{0});
  auto end = loop_.NewAlarm([this] { loop_.Stop(); });
  end->StartOnce(0);
  loop_.Run();
  EXPECT_EQ(writer_.submitted.size(), 1u);
}

// The session that reports a dead collector's end counts the data on the dead connection as lost. If these data were
// stored afterwards, they would count twice.
TEST_F(ShardCoreTest, RefusesDataOfASessionAfterItsReportedEnd) {
  const intake::Hello hello = HelloOf(1), next = HelloOf(2);
  auto ended = Connect(hello);
  core_.OnFound(hello.session.session_id, uint64_t{0});
  intake::Hello strange = HelloOf(3);
  strange.session.node_id = "another";
  auto others = Connect(strange);
  core_.OnFound(strange.session.session_id, uint64_t{0});
  auto wire = Connect(next);
  core_.OnFound(next.session.session_id, uint64_t{0});
  intake::BatchGenerator generator(1);
  intake::BatchEncoder encoder(1);
  Batch batch = generator.Next(10);
  batch.closes.push_back({hello.session.session_id, 10, LossReason::kCollectorKilled});
  batch.closes.push_back({strange.session.session_id, 10, LossReason::kCollectorKilled});
  for (const std::string& frame : encoder.Encode(batch)) wire->callbacks.on_data(frame);
  ASSERT_EQ(writer_.submitted.size(), 1u);
  EXPECT_FALSE(ended->open);
  EXPECT_TRUE(others->open) << "of another node";
  EXPECT_TRUE(wire->open);

  const size_t finds = writer_.finds.size();
  EXPECT_FALSE(Connect(hello)->open) << "its Hello came late";
  EXPECT_EQ(writer_.finds.size(), finds);
}

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

// Decoders and executables of sessions have a limit, also while the sessions are connected.
TEST_F(ShardCoreTest, ASessionThatTakesTooMuchMemoryMustSendANewDictionary) {
  ShardCore core({loop_, writer_, symbols_, clock_, metrics_}, {.session_memory_bytes_max = 2'000, .tick_ms = 1}, {});
  core.Start();
  intake::Hello hello = HelloOf(1);
  auto connect = [&] {
    auto wire = std::make_shared<Wire>();
    core.Accept({std::make_unique<WireStream>(wire), hello, ""});
    core.OnFound(hello.session.session_id, uint64_t{0});
    return wire;
  };
  auto wire = connect();
  intake::BatchGenerator generator(1);
  for (const std::string& frame : intake::BatchEncoder(1).Encode(generator.Next(100))) wire->callbacks.on_data(frame);
  ASSERT_FALSE(AsksForDictionary(*wire));
  RunUntil([&] { return AsksForDictionary(*wire); });
  hello.dictionary_generation = 1;
  EXPECT_FALSE(WelcomeOn(*connect())->dictionary_kept);
  EXPECT_EQ(metrics_.AddCounter("tributary_reducer_session_evictions_total", "", {{"was", "active"}}).value(), 1u);
}

std::string MetadataFrame(const std::string& id) {
  const MetadataUpdate update{
      .begins_snapshot = true, .ends_snapshot = true, .entities = {{EntityKind::kPod, id, {}, false, {}}}};
  return intake::EncodeFrame(intake::MessageType::kMetadata, 0, 0, intake::EncodeMetadata(update));
}

TEST_F(ShardCoreTest, AClusterSendsItsPodsAndStoresNothing) {
  intake::Hello hello = HelloOf(1);
  hello.role = intake::Role::kCluster;
  hello.session.node_id = "cluster/one";
  auto wire = Connect(hello);
  EXPECT_TRUE(writer_.finds.empty());
  ASSERT_TRUE(WelcomeOn(*wire).has_value());
  wire->callbacks.on_data(MetadataFrame("pod"));
  intake::BatchGenerator generator(1);
  for (const std::string& frame : intake::BatchEncoder(1).Encode(generator.Next(10))) wire->callbacks.on_data(frame);
  EXPECT_TRUE(writer_.submitted.empty());
  EXPECT_TRUE(Find(*wire, intake::MessageType::kGoodbye).has_value()) << "a cluster must not send samples";
  auto again = Connect(hello);
  EXPECT_EQ(sink_.lines, (std::vector<std::string>{"+cluster/one", "cluster cluster/one sends pod", "-cluster/one",
                                                   "+cluster/one"}));
}

TEST_F(ShardCoreTest, ANodeSendsItsOwnMetadata) {
  const intake::Hello hello = HelloOf(1);
  auto wire = Connect(hello);
  core_.OnFound(hello.session.session_id, uint64_t{0});
  wire->callbacks.on_data(MetadataFrame("thing"));
  EXPECT_EQ(sink_.lines, (std::vector<std::string>{"+node", "node node sends thing"}));
}

TEST_F(ShardCoreTest, MetadataWithoutSpaceWaitInTheSession) {
  const intake::Hello hello = HelloOf(1);
  auto wire = Connect(hello);
  core_.OnFound(hello.session.session_id, uint64_t{0});
  sink_.is_full = true;
  wire->callbacks.on_data(MetadataFrame("first"));
  wire->callbacks.on_data(MetadataFrame("second"));
  intake::BatchGenerator generator(1);
  for (const std::string& frame : intake::BatchEncoder(1).Encode(generator.Next(10))) wire->callbacks.on_data(frame);
  EXPECT_EQ(sink_.lines, (std::vector<std::string>{"+node"}));
  EXPECT_TRUE(writer_.submitted.empty()) << "the data of a session keep their order";
  sink_.is_full = false;
  RunUntil([&] { return !writer_.submitted.empty(); });
  EXPECT_EQ(sink_.lines, (std::vector<std::string>{"+node", "node node sends first", "node node sends second"}));
}

TEST_F(ShardCoreTest, AConnectionThatCannotBeRecordedIsRefusedAndMayComeBack) {
  const intake::Hello hello = HelloOf(1);
  sink_.is_full = true;
  auto wire = Connect(hello);
  core_.OnFound(hello.session.session_id, uint64_t{0});
  EXPECT_FALSE(WelcomeOn(*wire).has_value());
  const std::optional<intake::Frame> goodbye = Find(*wire, intake::MessageType::kGoodbye);
  ASSERT_TRUE(goodbye.has_value());
  EXPECT_TRUE(intake::DecodeGoodbye(goodbye->payload)->retry);
  sink_.is_full = false;
  auto again = Connect(hello);
  core_.OnFound(hello.session.session_id, uint64_t{0});
  EXPECT_TRUE(WelcomeOn(*again).has_value());
  EXPECT_EQ(sink_.lines, (std::vector<std::string>{"+node"})) << "no end without a beginning";
}

// Role 2 is reserved on the wire. Role 77 belongs to a later release.
TEST_F(ShardCoreTest, RefusesReservedAndUnknownRoles) {
  int session = 0;
  for (const uint16_t role : {2, 77}) {
    intake::Hello hello = HelloOf(++session);
    hello.role = static_cast<intake::Role>(role);
    auto wire = Connect(hello);
    core_.OnFound(hello.session.session_id, uint64_t{0});
    EXPECT_FALSE(WelcomeOn(*wire).has_value()) << role;
    EXPECT_TRUE(Find(*wire, intake::MessageType::kGoodbye).has_value()) << role;
  }
  EXPECT_TRUE(sink_.lines.empty());
}

// A credential for nodes is not valid for clusters.
TEST_F(ShardCoreTest, NodesAndClustersCannotUseEachOthersIds) {
  intake::Hello hello = HelloOf(1);
  hello.role = intake::Role::kCluster;
  auto no_cluster = Connect(hello);
  EXPECT_FALSE(WelcomeOn(*no_cluster).has_value());
  EXPECT_TRUE(Find(*no_cluster, intake::MessageType::kGoodbye).has_value());
  hello = HelloOf(2);
  hello.session.node_id = "cluster/one";
  auto no_node = Connect(hello);
  core_.OnFound(hello.session.session_id, uint64_t{0});
  EXPECT_FALSE(WelcomeOn(*no_node).has_value());
  EXPECT_TRUE(sink_.lines.empty());
}

}  // namespace
}  // namespace tributary::ingest
