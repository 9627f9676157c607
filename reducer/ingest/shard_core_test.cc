#include "reducer/ingest/shard_core.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/loop.h"
#include "intake/batch_codec.h"
#include "intake/batch_generator.h"
#include "intake/frame.h"

namespace tributary::ingest {
namespace {

// The core without its threads: the test is the writer, and both ends of the wire.

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
  bool TrySubmit(store::PendingBatch batch) override {
    submitted.push_back(std::move(batch));
    return true;
  }
  bool TryFind(const SessionId& id) override {
    finds.push_back(id);
    return true;
  }
  void Maintain() override {}

  bool room = true;
  std::vector<store::PendingBatch> submitted;
  std::vector<SessionId> finds;
};

class NoSymbols final : public SymbolDesk {
 public:
  bool TryChoose(std::vector<ExecutableId>, size_t, Reply) override { return false; }
  void Take(const ExecutableId&, absl::StatusOr<std::string>) override {}
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
    const store::PendingBatch& batch = writer_.submitted.back();
    core_.OnCommitted({{batch.session, batch.batch.generation, {sequence, need_dictionary}}});
  }
  // The first frame of this kind that the reducer wrote.
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
  NoSymbols symbols_;
  ShardCore core_{loop_, {}, writer_, symbols_, clock_, metrics_, {}};
};

// What was read on the connection before is durable, or gone, when Welcome says how far that is: a collector that has
// given such batches up asks nobody else.
TEST_F(ShardCoreTest, WelcomeWaitsForWhatWasReadOnTheConnectionBefore) {
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

// A collector goes on with the session of one that was killed, and counts its generations from 1 again.
TEST_F(ShardCoreTest, GenerationsOfAnEarlierProcessSayNothingOfANewOnes) {
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

TEST_F(ShardCoreTest, ADictionaryOfAnEarlierProcessIsNotKept) {
  intake::Hello hello = HelloOf(1);
  auto killed = Connect(hello);
  core_.OnFound(hello.session.session_id, uint64_t{0});
  intake::BatchGenerator generator(1);
  for (const std::string& frame : intake::BatchEncoder(1).Encode(generator.Next(10))) killed->callbacks.on_data(frame);
  Commit(1);
  auto next = Connect(hello);
  core_.OnFound(hello.session.session_id, uint64_t{1});
  // What the new one sent in its own generation 1 was lost with its connection.
  hello.dictionary_generation = 1;
  auto again = Connect(hello);
  core_.OnFound(hello.session.session_id, uint64_t{1});
  EXPECT_FALSE(WelcomeOn(*again)->dictionary_kept);
}

// After a reducer's start its writer's queue may be full of look-ups alone. A batch that found no room then must not
// wait for a commit that nobody asked for.
TEST_F(ShardCoreTest, AnAnsweredLookUpMakesRoomForWhatWasHeldBack) {
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

// What a dead collector's connection still holds is counted as lost by whoever tells of its end: stored behind that, it
// would count twice.
TEST_F(ShardCoreTest, WhatASessionHadSentIsNotTakenOnceItsEndIsTold) {
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

}  // namespace
}  // namespace tributary::ingest
