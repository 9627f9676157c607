#include "reducer/web/query_slots.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace tributary {
namespace {

constexpr int64_t kForEverMs = 24 * 3'600 * 1'000;

class QuerySlotsTest : public ::testing::Test {
 protected:
  int64_t Running() { return metrics_.AddGauge("tributary_query_running", "").value(); }
  int64_t Waiting() { return metrics_.AddGauge("tributary_query_waiting", "").value(); }
  void AwaitWaiting(int64_t count) {
    while (Waiting() != count) std::this_thread::yield();
  }

  static bool Never() { return false; }
  Metrics metrics_;
};

TEST_F(QuerySlotsTest, RefusesAtOnceIfTooManyWait) {
  QuerySlots slots({.running_max = 1, .waiting_max = 2, .wait_ms = kForEverMs}, metrics_);
  ASSERT_TRUE(slots.Acquire(Never));
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] { EXPECT_TRUE(QuerySlot(slots, Never).held()); });
  }
  AwaitWaiting(2);
  EXPECT_FALSE(slots.Acquire(Never));  // would wait for ever
  slots.Release();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Running(), 0);
  EXPECT_EQ(Waiting(), 0);
}

TEST_F(QuerySlotsTest, TheLongestWaitingIsNext) {
  QuerySlots slots({.running_max = 1, .waiting_max = 20, .wait_ms = kForEverMs}, metrics_);
  ASSERT_TRUE(slots.Acquire(Never));
  std::vector<int> order;  // only the holder of the slot uses it
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      const QuerySlot slot(slots, Never);
      order.push_back(i);
    });
    AwaitWaiting(i + 1);
  }
  slots.Release();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST_F(QuerySlotsTest, WaitingEndsInTimeOrIfItIsCancelled) {
  QuerySlots slots({.running_max = 1, .waiting_max = 20, .wait_ms = 1}, metrics_);
  ASSERT_TRUE(slots.Acquire(Never));
  EXPECT_FALSE(slots.Acquire(Never));
  QuerySlots patient({.running_max = 1, .waiting_max = 20, .wait_ms = kForEverMs}, metrics_);
  ASSERT_TRUE(patient.Acquire(Never));
  int asked = 0;
  EXPECT_FALSE(patient.Acquire([&asked] { return ++asked == 3; }));
  EXPECT_EQ(Waiting(), 0);
  patient.Release();
  EXPECT_TRUE(patient.Acquire(Never)) << "a cancelled query keeps no slot";
  EXPECT_FALSE(slots.Acquire([] { return true; }));
  EXPECT_EQ(Running(), 2);
}

TEST_F(QuerySlotsTest, NeverLetsMoreRunThanItMay) {
  QuerySlots slots({.running_max = 3, .waiting_max = 5, .wait_ms = kForEverMs}, metrics_);
  std::atomic<int> running = 0, most = 0, refused = 0, done = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 10; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 500; ++round) {
        const QuerySlot slot(slots, Never);
        if (!slot.held()) {
          ++refused;
          continue;
        }
        const int now = ++running;
        for (int before = most; before < now && !most.compare_exchange_weak(before, now);) {
        }
        ++done;
        --running;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(most, 3);
  EXPECT_EQ(refused + done, 5'000);
  EXPECT_EQ(Running(), 0);
  EXPECT_EQ(Waiting(), 0);
}

}  // namespace
}  // namespace tributary
