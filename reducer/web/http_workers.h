#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/bounded_queue.h"
#include "reducer/web/http_message.h"
#include "reducer/web/http_upload.h"

namespace tributary {

// One request on its way through a handler. The connection and the worker share it. `request.cancelled` points to
// `cancelled`.
struct HttpExchange {
  WebRequest request;
  std::atomic<bool> cancelled{false};
  std::unique_ptr<HttpUpload> upload;  // nullptr: no body is read

  // Makes the handler end soon. May be called on any thread.
  void Cancel() {
    cancelled = true;
    if (upload != nullptr) upload->Fail();
  }
};

// The threads that run handlers. A bounded queue holds the requests for which no thread is free.
class HttpWorkers {
 public:
  // Called on a worker's thread when the handler has returned. `response` is complete, and compressed if possible.
  using Done = std::function<void(WebResponse response)>;

  HttpWorkers(size_t threads, size_t queue_max, HttpHandler handler);
  ~HttpWorkers();  // calls Stop
  HttpWorkers(const HttpWorkers&) = delete;
  HttpWorkers& operator=(const HttpWorkers&) = delete;

  // Returns false if the queue is full. A request that is cancelled before its turn is dropped, without a call of
  // `done`.
  bool TryRun(std::shared_ptr<HttpExchange> exchange, Done done);
  // Drops the requests in the queue, and waits for the running handlers. The caller must have cancelled them.
  void Stop();

 private:
  struct Job {
    std::shared_ptr<HttpExchange> exchange;
    Done done;
  };
  void Work();

  const HttpHandler handler_;
  std::atomic<bool> stopping_{false};
  BoundedQueue<Job> queue_;
  std::vector<std::thread> threads_;
};

}  // namespace tributary
