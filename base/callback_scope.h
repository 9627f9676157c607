#pragma once

#include <memory>
#include <utility>

namespace tributary {

// Prevents callbacks from running after their owner was destroyed. An object that passes callbacks to a Loop, an
// Executor or a timer should own a CallbackScope and wrap the callbacks with it. After the scope is destroyed, the
// wrapped callback does nothing.
//
//   executor.Submit([reading] { Read(*reading); }, scope_.Wrap([this, reading] { Finish(*reading); }));
//
// The scope must be the owner's last member, so that it is destroyed first. A wrapped callback must run on the thread
// that destroys the scope, or after the scope was destroyed. It may be copied and destroyed on any thread. Its captures
// are destroyed only with the callback, even if it can no longer run. A scope costs one allocation, and each wrapped
// callback one atomic increment.
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
