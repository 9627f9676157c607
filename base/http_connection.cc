#include "base/http_connection.h"

#include <fmt/format.h>

#include <utility>

namespace tributary {
namespace {

constexpr size_t kDroppedBytesMax = 64u << 10;

std::string_view ReasonPhrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 414:
      return "URI Too Long";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Error";
  }
}

}  // namespace

HttpConnection::HttpConnection(Loop& loop, std::unique_ptr<TcpStream> stream, Limits limits, Callbacks callbacks)
    : limits_(limits),
      callbacks_(std::move(callbacks)),
      timer_(loop, [this] { OnTimeout(); }),
      stream_(std::move(stream)) {
  timer_.StartOnce(limits_.patience_ms);
  stream_->Start({.on_data = [this](std::string_view bytes) { OnData(bytes); },
                  .on_close = [this](const absl::Status&) { Close(); },
                  .on_drained = [this] { OnDrained(); }});
}

void HttpConnection::OnData(std::string_view bytes) {
  if (state_ == State::kLingering) {
    dropped_bytes_ += bytes.size();
    if (dropped_bytes_ > kDroppedBytesMax) Close();
    return;
  }
  buffer_ += bytes;
  Advance();
}

void HttpConnection::Advance() {
  const HttpHeadResult result = ParseHttpRequestHead(buffer_);
  if (result.error != 0) return Refuse(result);
  if (result.size == 0) return;
  buffer_.erase(0, result.size);
  const HttpRequestHead& head = result.head;
  unread_ = head.has_body;
  last_ = !head.keep_alive || head.has_body;
  const HttpAnswer answer = callbacks_.answer(head);
  if (answer.status == 404) callbacks_.refused(HttpRefusal::kPath);
  if (answer.status == 405) callbacks_.refused(HttpRefusal::kMethod);
  Send(answer, head.method != "HEAD");
}

void HttpConnection::Refuse(const HttpHeadResult& result) {
  const bool is_too_large = result.error == 414 || result.error == 431;
  callbacks_.refused(is_too_large ? HttpRefusal::kTooLarge : HttpRefusal::kMalformed);
  buffer_.clear();
  last_ = unread_ = true;
  Send(HttpAnswer{.status = result.error, .body = result.problem + "\n"}, /*with_body=*/true);
}

void HttpConnection::Send(const HttpAnswer& answer, bool with_body) {
  state_ = State::kWriting;
  stream_->PauseReading();
  timer_.StartOnce(limits_.patience_ms);
  std::string text = fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n"
      "X-Content-Type-Options: nosniff\r\n{}{}\r\n",
      answer.status, ReasonPhrase(answer.status), answer.content_type, answer.body.size(),
      answer.status == 405 ? "Allow: GET, HEAD\r\n" : "", last_ ? "Connection: close\r\n" : "");
  if (with_body) text += answer.body;
  stream_->Write(std::move(text));
}

void HttpConnection::OnDrained() {
  if (state_ != State::kWriting) return;
  if (last_ && !unread_ && buffer_.empty()) return Close();
  state_ = last_ ? State::kLingering : State::kReading;
  timer_.StartOnce(last_ ? limits_.linger_ms : limits_.patience_ms);
  stream_->ResumeReading();
  if (!last_) Advance();
}

void HttpConnection::OnTimeout() {
  const bool is_idle = state_ == State::kReading && buffer_.empty();
  if (!is_idle && state_ != State::kLingering) callbacks_.refused(HttpRefusal::kSlow);
  Close();
}

void HttpConnection::Close() {
  timer_.Stop();
  const std::function<void()> closed = callbacks_.closed;  // this object may be destroyed when it returns
  closed();
}

}  // namespace tributary
