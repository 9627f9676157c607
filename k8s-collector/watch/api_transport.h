#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace tributary {

// Makes requests to one API server: to the real one, or to a recording of it. On its owner's thread.
class ApiTransport {
 public:
  struct Callbacks {
    // Called once, before the first byte. Not called if there is no answer.
    std::function<void(int status, int64_t retry_after_s)> on_answer;
    std::function<bool(std::string_view bytes)> on_bytes;  // returns false to stop
    // Called once, last, with OK for a complete answer. The callback may destroy the request, and make a new one.
    std::function<void(absl::Status)> on_end;
  };
  // A request in progress. Destroying it ends it without a callback. Do not destroy it in on_answer or on_bytes.
  class Request {
   public:
    virtual ~Request() = default;
  };

  virtual ~ApiTransport() = default;
  // Makes a GET request. Callbacks come later, never from inside of Get().
  virtual std::unique_ptr<Request> Get(std::string_view target, std::string_view accept, Callbacks callbacks) = 0;
};

}  // namespace tributary
