#include "reducer/ingest/shard_core.h"

#include <gtest/gtest.h>

#include <tuple>

#include "intake/codec/batch_encoder.h"
#include "intake/testing/batch_generator_testing.h"
#include "reducer/ingest/shard_core_testing.h"

namespace tributary::ingest {
namespace {

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
TEST_F(ShardCoreTest, OnlyBatchesOfOldDaysWaitForTheirTurn) {
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

// Decoders and executables of sessions have a limit, also while the sessions are connected.
TEST_F(ShardCoreTest, ASessionThatTakesTooMuchMemoryMustSendANewDictionary) {
  ShardCore core({loop_, writer_, symbols_, clock_, metrics_}, {.session_memory_bytes_max = 2'000, .tick_ms = 1}, {});
  core.Start();
  intake::Hello hello = HelloOf(1);
  auto connect = [&] {
    auto wire = std::make_shared<Wire>();
    core.Accept({std::make_unique<WireStream>(wire), hello, "", "peer of " + hello.session.node_id});
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

}  // namespace
}  // namespace tributary::ingest
