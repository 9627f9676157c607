#pragma once

#include <memory>
#include <utility>

namespace tributary {

// Cancels callbacks that outlive their owner. An object that gives callbacks to a Loop, to an Executor or to a timer
// owns a scope and gives them wrapped: after the scope was destroyed, a wrapped callback does nothing.
//
//   executor.Submit([reading] { Read(*reading); }, scope_.Wrap([this, reading] { Finish(*reading); }));
//
// The scope is the owner's last member, so that it is destroyed first. A wrapped callback runs on the thread that
// destroys the scope, or after it; it may be copied and destroyed on any thread. What it captured is kept until it is
// destroyed, also when it is cancelled. Costs one allocation a scope, and one atomic increment a callback.
class CallbackScope {
 public:
  CallbackScope() = default;
  CallbackScope(const CallbackScope&) = delete;
  CallbackScope& operator=(const CallbackScope&) = delete;

  template <typename Callback>
  auto Wrap(Callback callback) const {
    return [alive = std::weak_ptr<const bool>(alive_), callback = std::move(callback)]() mutable {
      if (!alive.expired()) callback();
    };
  }

 private:
  const std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};

}  // namespace tributary
