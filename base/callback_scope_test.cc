#include "base/callback_scope.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include "base/loop.h"

namespace tributary {
namespace {

TEST(CallbackScope, RunsCallbacksWhileItLives) {
  const CallbackScope scope;
  int ran = 0;
  const std::function<void()> callback = scope.Wrap([&ran] { ++ran; });
  callback();
  callback();
  EXPECT_EQ(ran, 2);
}

TEST(CallbackScope, CancelsCallbacksAtItsEnd) {
  std::optional<CallbackScope> scope(std::in_place);
  int ran = 0;
  const std::function<void()> callback = scope->Wrap([&ran] { ++ran; });
  const std::function<void()> copy = callback;
  scope.reset();
  callback();
  copy();
  EXPECT_EQ(ran, 0);
}

TEST(CallbackScope, CancelsOnlyItsOwnCallbacks) {
  std::optional<CallbackScope> ended(std::in_place);
  const CallbackScope lives;
  int ran = 0;
  const std::function<void()> cancelled = ended->Wrap([&ran] { ran += 1; });
  const std::function<void()> kept = lives.Wrap([&ran] { ran += 10; });
  ended.reset();
  cancelled();
  kept();
  EXPECT_EQ(ran, 10);
}

TEST(CallbackScope, ACallbackMayEndItsScope) {
  auto scope = std::make_unique<CallbackScope>();
  int ran = 0;
  const std::function<void()> callback = scope->Wrap([&] {
    scope.reset();
    ++ran;
  });
  callback();
  callback();
  EXPECT_EQ(ran, 1);
}

TEST(CallbackScope, FreesCapturesOfACancelledCallback) {
  const auto captured = std::make_shared<int>(0);
  {
    std::function<void()> callback;
    {
      const CallbackScope scope;
      callback = scope.Wrap([captured] { ++*captured; });
    }
    callback();
    EXPECT_EQ(captured.use_count(), 2);
  }
  EXPECT_EQ(captured.use_count(), 1);
  EXPECT_EQ(*captured, 0);
}

// Like a worker: the loop's thread makes the callback, and another thread posts it. The owner may be gone when the loop
// runs the callback.
TEST(CallbackScope, CancelsTasksThatAnotherThreadPosts) {
  struct Owner {
    int* ran;
    CallbackScope scope;
  };
  Loop loop;
  int ran = 0;
  auto owner = std::make_unique<Owner>(&ran);
  std::function<void()> before = owner->scope.Wrap([&ran] { ran += 1; });
  std::function<void()> after = owner->scope.Wrap([&ran] { ran += 10; });
  std::thread worker([&] {
    loop.Post(std::move(before));
    loop.Post([&owner] { owner.reset(); });
    loop.Post(std::move(after));
    loop.Post([&loop] { loop.Stop(); });
  });
  loop.Run();
  worker.join();
  EXPECT_EQ(ran, 1);
}

}  // namespace
}  // namespace tributary
