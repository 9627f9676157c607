#pragma once

#include <memory>

#include "base/loop.h"

typedef void CURL;

namespace tributary {

// Runs libcurl's transfers on a Loop: polls their sockets and runs their timers. Use it on the loop's thread.
class CurlLoop {
 public:
  // Receives the end of a transfer.
  class Transfer {
   public:
    // `curl_code` is a CURLcode. OnDone may call Remove for this transfer, and Add for others.
    virtual void OnDone(int curl_code) = 0;

   protected:
    ~Transfer() = default;
  };

  explicit CurlLoop(Loop& loop);  // `loop` must outlive this
  ~CurlLoop();                    // call after the last transfer's removal

  void Add(CURL* easy, Transfer& transfer);
  // Cancels a transfer: OnDone is not called. Does nothing if the transfer has ended or was not added. Do not call it
  // inside libcurl's own callbacks.
  void Remove(CURL* easy);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tributary
