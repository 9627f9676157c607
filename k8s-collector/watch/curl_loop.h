#pragma once

#include <memory>

#include "base/loop.h"

typedef void CURL;

namespace tributary {

// libcurl's transfers on a Loop: its sockets are polled, and its timers run, there. On the loop's thread.
class CurlLoop {
 public:
  // Who is told of a transfer's end.
  class Transfer {
   public:
    // A CURLcode. May remove the transfer, and add others.
    virtual void OnDone(int curl_code) = 0;

   protected:
    ~Transfer() = default;
  };

  explicit CurlLoop(Loop& loop);  // which outlives this
  ~CurlLoop();                    // after the last transfer's removal

  void Add(CURL* easy, Transfer& transfer);
  // Also of what has ended, or was never added. Not from inside of libcurl's own callbacks.
  void Remove(CURL* easy);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tributary
