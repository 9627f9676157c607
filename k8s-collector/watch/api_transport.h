#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace tributary {

// Makes requests of one API server: the real one, or a recording of one. On its owner's thread.
class ApiTransport {
 public:
  struct Callbacks {
    // Once, before the first byte; not when there is no answer.
    std::function<void(int status, int64_t retry_after_s)> on_answer;
    std::function<bool(std::string_view bytes)> on_bytes;  // false: no more is wanted
    // Once, last; OK for an answer that is whole. The request may be destroyed in it, and a new one made.
    std::function<void(absl::Status)> on_end;
  };
  // One request under way. Destroyed, it ends without a callback; not in on_answer and on_bytes.
  class Request {
   public:
    virtual ~Request() = default;
  };

  virtual ~ApiTransport() = default;
  // GET. Callbacks come later, never from inside.
  virtual std::unique_ptr<Request> Get(std::string_view target, std::string_view accept, Callbacks callbacks) = 0;
};

}  // namespace tributary
