#include "base/loop_watch.h"

#include <gtest/gtest.h>

#include <future>
#include <string>
#include <utility>
#include <vector>

#include "base/types.h"

namespace tributary {
namespace {

// A loop that runs its tasks when the test calls Run.
struct ManualLoop {
  std::vector<std::function<void()>> tasks;
  std::function<void(std::function<void()>)> post() {
    return [this](std::function<void()> task) { tasks.push_back(std::move(task)); };
  }
  void Run() {
    for (auto& task : std::exchange(tasks, {})) task();
  }
};

size_t Count(const std::string& text, std::string_view needle) {
  size_t count = 0;
  for (size_t at = text.find(needle); at != text.npos; at = text.find(needle, at + 1)) ++count;
  return count;
}

TEST(LoopProgress, NamesAStuckLoopOnce) {
  ManualLoop main, shard;
  LoopProgress loops;
  loops.Add("main", main.post());
  loops.Add("shard 0", shard.post());
  testing::internal::CaptureStderr();
  EXPECT_TRUE(loops.Look()) << "nothing was asked yet";
  for (int i = 0; i < 3; ++i) {
    loops.Ask();
    main.Run();
    EXPECT_FALSE(loops.Look());
  }
  EXPECT_EQ(shard.tasks.size(), 1u) << "a stuck loop gets no second task";
  shard.Run();
  EXPECT_TRUE(loops.Look());
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(Count(log, "an event loop is stuck loop=\"shard 0\""), 1u) << log;
  EXPECT_EQ(Count(log, "an event loop that was stuck runs again loop=\"shard 0\""), 1u) << log;
  EXPECT_EQ(Count(log, "main"), 0u) << log;
}

TEST(Watchdog, PingsWhileLoopsMakeProgress) {
  ManualLoop stuck;
  std::atomic<int> pings = 0;
  LoopProgress loops, stuck_loops;
  loops.Add("main", [](const std::function<void()>& task) { task(); });
  stuck_loops.Add("main", stuck.post());
  std::promise<void> third;
  {
    Watchdog without(std::move(stuck_loops), kNsPerMs, [] { ADD_FAILURE() << "a stuck loop, and yet a ping"; });
    Watchdog with(std::move(loops), kNsPerMs, [&] {
      if (++pings == 3) third.set_value();
    });
    third.get_future().wait();
  }
  EXPECT_GE(pings, 3);
}

}  // namespace
}  // namespace tributary
