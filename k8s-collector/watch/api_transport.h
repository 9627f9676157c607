#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace tributary {

// Sends requests to an API server. Use it on the thread of its owner.
class ApiTransport {
 public:
  struct Callbacks {
    // Called once, before the first on_bytes. Not called if no answer arrives.
    std::function<void(int status, int64_t retry_after_s)> on_answer;
    std::function<bool(std::string_view bytes)> on_bytes;  // returns false to stop
    // The last callback, called once. The status is OK if the answer was received completely. Unauthenticated: the
    // transport has no credentials, and has logged why. The callback may destroy the request, and may make a new one.
    std::function<void(absl::Status)> on_end;
  };
  // A request in progress. If it is destroyed, it is cancelled without a callback. Do not destroy it in on_answer or
  // on_bytes.
  class Request {
   public:
    virtual ~Request() = default;
  };

  virtual ~ApiTransport() = default;
  // Starts a GET request. Callbacks are called only after Get has returned.
  virtual std::unique_ptr<Request> Get(std::string_view target, std::string_view accept, Callbacks callbacks) = 0;
};

}  // namespace tributary
