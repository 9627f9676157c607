#include "kernel-collector/processes/worker.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>
#include <vector>

namespace tributary {
namespace {

TEST(Worker, WorksElsewhereAndIsDoneHere) {
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

TEST(Worker, RefusesMoreThanItCanKeep) {
  Loop loop;
  std::promise<void> release;
  std::shared_future<void> released = release.get_future().share();
  {
    Worker worker(loop);
    size_t taken = 0;
    while (taken < 2 * Worker::kQueueMax && worker.Submit([released] { released.wait(); }, [] {})) ++taken;
    // One may have left the queue for the thread.
    EXPECT_GE(taken, Worker::kQueueMax);
    EXPECT_LE(taken, Worker::kQueueMax + 1);
    release.set_value();
  }
}

TEST(Worker, AJobThatHangsDoesNotKeepItsOwner) {
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

}  // namespace
}  // namespace tributary
