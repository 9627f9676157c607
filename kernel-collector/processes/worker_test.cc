#include "kernel-collector/processes/worker.h"

#include <gtest/gtest.h>

#include <future>
#include <string>
#include <thread>
#include <vector>

namespace tributary {
namespace {

TEST(Worker, RunsWorkElsewhereAndDoneHere) {
  Loop loop;
  Worker worker(loop);
  std::thread::id here = std::this_thread::get_id(), worked, done;
  std::vector<int> order;
  ASSERT_TRUE(worker.Submit([&] { worked = std::this_thread::get_id(); },
                            [&] {
                              done = std::this_thread::get_id();
                              order.push_back(1);
                            }));
  ASSERT_TRUE(worker.Submit([] {},
                            [&] {
                              order.push_back(2);
                              loop.Stop();
                            }));
  loop.Run();
  EXPECT_EQ(done, here);
  EXPECT_NE(worked, here);
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST(Worker, RefusesJobsWhenTheQueueIsFull) {
  Loop loop;
  std::promise<void> release;
  std::shared_future<void> released = release.get_future().share();
  {
    Worker worker(loop);
    size_t taken = 0;
    while (taken < 2 * Worker::kQueueMax && worker.Submit([released] { released.wait(); }, [] {})) ++taken;
    // The thread may already have taken one job from the queue.
    EXPECT_GE(taken, Worker::kQueueMax);
    EXPECT_LE(taken, Worker::kQueueMax + 1);
    release.set_value();
  }
}

TEST(Worker, AHangingJobDoesNotBlockItsOwner) {
  Loop loop;
  auto release = std::make_shared<std::promise<void>>();
  auto started = std::make_shared<std::promise<void>>();
  auto ended = std::make_shared<std::promise<void>>();
  {
    Worker worker(loop);
    worker.Submit(
        [release, started, ended] {
          started->set_value();
          release->get_future().wait();
          ended->set_value();
        },
        [] { FAIL() << "its owner is gone"; });
    started->get_future().wait();
  }
  release->set_value();
  ended->get_future().wait();
}

TEST(Worker, OtherJobsContinueWhileJobsAreStuck) {
  Loop loop;
  int stuck = 0;
  Worker worker(loop, {.stuck_max = 2, .stuck_ms = 20, .on_stuck = [&] { ++stuck; }});
  auto release = std::make_shared<std::promise<void>>();
  std::shared_future<void> released = release->get_future().share();
  std::vector<std::string> done;
  for (const char* name : {"hangs", "hangs too"}) {
    ASSERT_TRUE(worker.Submit([released] { released.wait(); }, [&done, name] { done.push_back(name); }));
  }
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(worker.Submit([] {},
                              [&] {
                                done.push_back("goes on");
                                if (done.size() == 3) release->set_value();
                              }));
  }
  Timer watch(loop, [&] {
    if (done.size() == 5) loop.Stop();
  });
  watch.StartEvery(5);
  loop.Run();
  watch.Stop();
  EXPECT_EQ(stuck, 2);
  EXPECT_EQ((std::vector<std::string>(done.begin(), done.begin() + 3)), (std::vector<std::string>(3, "goes on")));
  // After the stuck jobs have ended, new jobs may be stuck.
  bool again = false;
  auto second = std::make_shared<std::promise<void>>();
  ASSERT_TRUE(worker.Submit([second] { second->get_future().wait(); }, [] {}));
  ASSERT_TRUE(worker.Submit([] {},
                            [&] {
                              again = true;
                              second->set_value();
                              loop.Stop();
                            }));
  loop.Run();
  EXPECT_TRUE(again);
  EXPECT_EQ(stuck, 3);
}

TEST(Worker, LimitsStuckThreads) {
  Loop loop;
  int stuck = 0;
  Worker worker(loop, {.stuck_max = 1, .stuck_ms = 10, .on_stuck = [&] { ++stuck; }});
  auto release = std::make_shared<std::promise<void>>();
  std::shared_future<void> released = release->get_future().share();
  size_t done = 0;
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(worker.Submit([released] { released.wait(); },
                              [&] {
                                if (++done == 4) loop.Stop();
                              }));
  }
  Timer later(loop, [&] {
    EXPECT_EQ(done, 0u);
    release->set_value();
  });
  later.StartOnce(200);
  loop.Run();
  EXPECT_EQ(stuck, 1);
}

}  // namespace
}  // namespace tributary
