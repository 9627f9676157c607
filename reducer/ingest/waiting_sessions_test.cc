#include "reducer/ingest/waiting_sessions.h"

#include <gtest/gtest.h>

namespace tributary::ingest {
namespace {

SessionId Id(uint8_t number) { return {number}; }

TEST(WaitingSessions, ReturnsOnlySessionsThatWait) {
  WaitingSessions waiting;
  EXPECT_TRUE(waiting.Take({"a"}).empty());
  waiting.AddForQueue(Id(3));
  waiting.AddForQueue(Id(1));
  waiting.AddForQueue(Id(3));
  EXPECT_EQ(waiting.Take({"a"}), (std::set<SessionId>{Id(1), Id(3)}));
  EXPECT_TRUE(waiting.Take({"a"}).empty());
}

TEST(WaitingSessions, AFullShareWaitsForACommitOfItsNode) {
  WaitingSessions waiting;
  waiting.AddForShare("a", Id(1));
  waiting.AddForShare("b", Id(2));
  waiting.AddForShare("b", Id(4));
  waiting.AddForQueue(Id(2));
  EXPECT_EQ(waiting.Take({"c"}), (std::set<SessionId>{Id(2)}));
  EXPECT_EQ(waiting.Take({"b", "c"}), (std::set<SessionId>{Id(2), Id(4)}));
  EXPECT_TRUE(waiting.Take({"b"}).empty());
  EXPECT_EQ(waiting.Take({"a"}), (std::set<SessionId>{Id(1)}));
}

}  // namespace
}  // namespace tributary::ingest
