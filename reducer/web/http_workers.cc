#include "reducer/web/http_workers.h"

#include <exception>
#include <optional>
#include <utility>

#include "reducer/web/http_compression.h"

namespace tributary {
namespace {

WebResponse Answer(const HttpHandler& handler, const WebRequest& request) {
  try {
    WebResponse response = handler(request);
    CompressAnswer(request, response);
    return response;
  } catch (const std::exception&) {
    return HttpError(500, "internal error: out of memory, or a bug");
  }
}

}  // namespace

HttpWorkers::HttpWorkers(size_t threads, size_t queue_max, HttpHandler handler)
    : handler_(std::move(handler)), queue_(queue_max) {
  for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
}

HttpWorkers::~HttpWorkers() { Stop(); }

bool HttpWorkers::TryRun(std::shared_ptr<HttpExchange> exchange, Done done) {
  return queue_.TryPush(Job{std::move(exchange), std::move(done)});
}

void HttpWorkers::Stop() {
  stopping_ = true;
  queue_.Close();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void HttpWorkers::Work() {
  while (std::optional<Job> job = queue_.Pop()) {
    if (stopping_ || job->exchange->request.is_cancelled()) continue;
    job->done(Answer(handler_, job->exchange->request));
  }
}

}  // namespace tributary
