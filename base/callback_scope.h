#pragma once

#include <memory>
#include <utility>

namespace tributary {

// Cancels callbacks that outlive their owner. An object that passes callbacks to a Loop, an Executor or a timer owns a
// scope and wraps the callbacks with it. After the scope is destroyed, a wrapped callback does nothing.
//
//   executor.Submit([reading] { Read(*reading); }, scope_.Wrap([this, reading] { Finish(*reading); }));
//
// The scope must be the owner's last member, so that it is destroyed first. A wrapped callback must run on the thread
// that destroys the scope, or after the destruction. It may be copied and destroyed on any thread. Its captures live
// until it is destroyed, even if it was cancelled. Costs one allocation per scope and one atomic increment per
// callback.
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
