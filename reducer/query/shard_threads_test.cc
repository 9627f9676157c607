#include "reducer/query/shard_threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <thread>
#include <vector>

namespace tributary {
namespace {

TEST(ShardThreadsTest, MakesEachCallOnce) {
  for (const size_t threads : {0u, 1u, 3u}) {
    ShardThreads pool(threads);
    EXPECT_EQ(pool.together(), threads + 1);
    for (const size_t count : {0u, 1u, 2u, 50u}) {
      std::vector<std::atomic<int>> calls(count);
      pool.Run(count, [&](size_t i) { ++calls[i]; });
      for (const std::atomic<int>& of : calls) EXPECT_EQ(of, 1);
    }
  }
}

TEST(ShardThreadsTest, CallsRunAtTheSameTime) {
  ShardThreads pool(2);
  std::latch all(3);
  pool.Run(3, [&](size_t) { all.arrive_and_wait(); });  // would wait for ever on one thread
}

// The pool's only thread is busy with one caller until the other one is done.
TEST(ShardThreadsTest, ACallerDoesNotWaitForAnother) {
  ShardThreads pool(1);
  std::latch busy(2), done(1);
  std::thread first([&] {
    pool.Run(2, [&](size_t) {
      busy.count_down();
      done.wait();
    });
  });
  busy.wait();
  std::atomic<int> calls = 0;
  pool.Run(10, [&](size_t) { ++calls; });
  EXPECT_EQ(calls, 10);
  done.count_down();
  first.join();
}

TEST(ShardThreadsTest, ManyCallersShareTheThreads) {
  ShardThreads pool(2);
  std::atomic<uint64_t> calls = 0;
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (int round = 0; round < 500; ++round) pool.Run(5, [&](size_t) { ++calls; });
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(calls, 4u * 500 * 5);
}

}  // namespace
}  // namespace tributary
