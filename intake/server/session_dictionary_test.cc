#include <gtest/gtest.h>

#include "base/status.h"
#include "intake/testing/reducer_testing.h"

// The dictionary of a session: reconnects, losses, new generations and evictions.

namespace tributary::intake {
namespace {

TEST_F(IntakeTest, DictionaryOutlivesAReconnect) {
  StartServer();
  StartClient();
  Send(300);
  RunUntilStored(1);
  AckAll();
  RunUntil([&] { return client_->waiting_samples() == 0; }, "acknowledged");
  server_.reset();
  StartServer();
  Send(300);
  RunUntilStored(2);
  ExpectStoredIsSent();
  EXPECT_EQ(store_.generations, 1);
  ASSERT_EQ(store_.hellos.size(), 2u);
  EXPECT_EQ(store_.hellos[1].dictionary_generation, 1u);
  EXPECT_EQ(store_.hellos[1].next_sequence, 2u);
}

TEST_F(IntakeTest, LostDictionaryIsSentAgain) {
  StartServer();
  StartClient();
  for (int i = 0; i < 3; ++i) Send(100);
  RunUntilStored(3);
  AckAll();
  for (int i = 0; i < 3; ++i) Send(100);
  RunUntilStored(6);
  server_->live()->NeedDictionary();
  server_->live()->NeedDictionary();  // has no effect
  Send(100);
  RunUntil([&] { return store_.stored.size() == 7 && store_.stored[7].times == 1; }, "sent again");
  ExpectStoredIsSent();
  EXPECT_EQ(store_.generations, 2);
  EXPECT_EQ(store_.stored[3].times, 1) << "durable batches are not sent again";
  EXPECT_EQ(store_.stored[4].times, 2);
  EXPECT_EQ(Count("tributary_intake_need_dictionary_total"), 1u);
}

TEST_F(IntakeTest, OwnerThatCannotMapABatchGetsTheDictionary) {
  bool refused = false;
  store_.on_batch = [&](const IncomingBatch& batch) {
    if (batch.sequence != 3 || refused) return absl::OkStatus();
    refused = true;
    return Error(absl::StatusCode::kFailedPrecondition, "definitions are gone");
  };
  StartServer();
  StartClient();
  for (int i = 0; i < 6; ++i) Send(100);
  RunUntilStored(6);
  ExpectStoredIsSent();
  EXPECT_EQ(store_.generations, 2);
}

TEST_F(IntakeTest, NewerGenerationAfterAHoleIsGivenUpToo) {
  bool refused = false;
  store_.on_batch = [&](const IncomingBatch& batch) {
    if (batch.sequence != 2 || refused) return absl::OkStatus();
    refused = true;
    AckAll();
    return Error(absl::StatusCode::kFailedPrecondition, "definitions are gone");
  };
  StartServer();
  StartClient();
  for (int i = 0; i < 3; ++i) Send(100);
  generator_.NewDictionary();
  for (int i = 0; i < 3; ++i) Send(100);  // in flight before the client learns of it
  RunUntilStored(6);
  ExpectStoredIsSent();
  for (const auto& [sequence, entry] : store_.stored) EXPECT_EQ(entry.times, 1) << sequence;
  EXPECT_EQ(store_.hellos.size(), 1u) << "the connection goes on";
  EXPECT_EQ(Refused("out_of_order"), 0u);
}

TEST_F(IntakeTest, AcksThatRaceWithNeedDictionaryMakeDuplicates) {
  StartServer();
  StartClient();
  for (int i = 0; i < 4; ++i) Send(100);
  RunUntilStored(4);
  server_->live()->NeedDictionary();
  // Committed meanwhile: the batches that come again are duplicates, but the next batch needs their definitions.
  store_.durable = 2;
  server_->live()->Ack(2);
  Send(100);
  RunUntilStored(5);
  ExpectStoredIsSent();
  EXPECT_GE(store_.stored[4].times, 2);
  EXPECT_EQ(store_.stored[1].times, 1);
  EXPECT_EQ(store_.stored[2].times, 1);
}

TEST_F(IntakeTest, NewDictionaryObjectBeginsTheNextGeneration) {
  StartServer();
  StartClient();
  Send(100);
  generator_.NewDictionary();
  Send(100);
  Send(100);
  generator_.NewDictionary();
  Send(100);
  RunUntilStored(4);
  ExpectStoredIsSent();
  EXPECT_EQ(store_.generations, 3);
  // Nothing was durable: after a reconnect each batch is sent again, with a new generation for each dictionary.
  server_.reset();
  store_.stored.clear();
  store_.keep_dictionary = false;
  StartServer();
  RunUntilStored(4);
  ExpectStoredIsSent();
  EXPECT_EQ(store_.generations, 6);
}

TEST_F(IntakeTest, FollowsAnEvictionAcrossReconnects) {
  StartServer();
  StartClient();
  Send(200);
  generator_.Evict();
  Send(200);
  RunUntilStored(2);
  EXPECT_EQ(store_.evictions, 1);
  AckAll();
  RunUntil([&] { return client_->waiting_samples() == 0; }, "all acknowledged");
  // Kept: the generation continues where it was.
  server_->live()->Close({.reason = "once more"});
  Send(200);
  RunUntilStored(3);
  EXPECT_EQ(store_.generations, 2);
  generator_.Evict();
  Send(200);
  RunUntilStored(4);
  EXPECT_EQ(store_.evictions, 2);
  ExpectStoredIsSent();
  // Not kept, and two batches were not durable: their definitions are sent again, and the eviction between them.
  server_.reset();
  store_.keep_dictionary = false;
  StartServer();
  RunUntil([&] { return store_.stored[4].times == 2; }, "sent again");
  ExpectStoredIsSent();
  EXPECT_EQ(store_.evictions, 3);
  EXPECT_EQ(store_.generations, 5);
}

TEST_F(IntakeTest, RefusedEvictionComesAgain) {
  int refusals = 0;
  store_.on_batch = [&](const IncomingBatch& batch) {
    if (!batch.derived || refusals >= 3) return absl::OkStatus();
    ++refusals;
    return Error(absl::StatusCode::kResourceExhausted, "queue full");
  };
  StartServer();
  StartClient();
  for (int i = 0; i < 3; ++i) {
    Send(200);
    generator_.Evict();
  }
  Timer resume(loop_, [&] {
    if (ServerSession* session = server_->live()) session->Resume();  // connecting may take longer than 5 ms
  });
  resume.StartEvery(5);
  RunUntilStored(3);
  ExpectStoredIsSent();
  EXPECT_EQ(refusals, 3);
  EXPECT_EQ(store_.evictions, 2);
  EXPECT_EQ(Count("tributary_intake_need_dictionary_total"), 0u);
}

// Duplicates bring definitions but no batch. Definitions of two generations cannot be passed to the owner together.
TEST_F(IntakeTest, FollowsAnEvictionAfterDuplicates) {
  StartServer();
  StartClient();
  Send(200);
  RunUntilStored(1);
  generator_.Evict();
  Send(200);
  RunUntilStored(2);
  server_->live()->NeedDictionary();
  store_.stored.clear();
  store_.durable = 1;
  server_->live()->Ack(1);
  generator_.Evict();
  Send(200);
  RunUntil([&] { return store_.stored.contains(3); }, "the last batch");
  for (uint64_t sequence : {2, 3}) EXPECT_EQ(store_.stored[sequence].samples, sent_[sequence]);
  EXPECT_FALSE(store_.stored.contains(1)) << "durable, and so a duplicate";
  EXPECT_EQ(Refused("out_of_order"), 0u);
}

}  // namespace
}  // namespace tributary::intake
