#pragma once

#include <nghttp2/nghttp2.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "otlp/post_answer.h"
#include "otlp/transport.h"

namespace tributary::otlp {

// The client's end of one connection of HTTP/2, with one request at a time. It has no socket: the caller carries the
// bytes. Uses nghttp2, which checks all frames of the other end.
class Http2Stream {
 public:
  Http2Stream();

  // Begins a request with both lists of header fields. No proxy may store those in `secrets` in its tables for
  // compression (RFC 7541, 7.1.3). `body` must stay valid until the next request, or the end of the object. Returns
  // false if the connection cannot have another request. Then error() says why.
  bool Begin(const Headers& fields, const Headers& secrets, std::string_view body);

  // Returns the next bytes to send, or "" if there are none at the moment. They are valid until the next call, which
  // says that all of them were sent. Sets `*failed` if the connection is unusable.
  std::string_view BytesToSend(bool* failed);
  // Reads bytes of the other end. Returns false if they break the rules of HTTP/2. Then error() says why.
  bool Read(std::string_view bytes);

  // The answer so far.
  const PostAnswer& answer() const { return answer_; }
  PostAnswer TakeAnswer() { return std::move(answer_); }
  // True if the other end has ended its answer.
  bool is_whole() const { return is_whole_; }
  // True if nothing more of the answer comes, or more than its limits allow.
  bool is_over() const { return is_over_; }
  // True if the other end may have accepted the request: all of it was sent, and the other end has not said that it did
  // not process it (RFC 9113, 8.7).
  bool may_have_arrived() const { return is_sent_ && !is_refused_; }
  // True if the next request may use the connection: the other end has read this one, and has not said goodbye.
  bool is_reusable() const;
  // True if there are bytes to send.
  bool wants_to_send() const { return nghttp2_session_want_write(session_.get()) != 0; }
  // False if the connection has ended, for example because the other end broke the rules of HTTP/2.
  bool is_alive() const { return wants_to_send() || nghttp2_session_want_read(session_.get()) != 0; }
  // Why the answer is not whole.
  std::string_view error() const { return error_.empty() ? "the connection ended" : std::string_view(error_); }

 private:
  struct Free {
    void operator()(nghttp2_session* session) const { nghttp2_session_del(session); }
  };

  static nghttp2_session_callbacks* NewCallbacks();
  static int OnHeader(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name, size_t name_bytes,
                      const uint8_t* value, size_t value_bytes, uint8_t flags, void* self);
  static int OnFrame(nghttp2_session*, const nghttp2_frame* frame, void* self);
  static int OnData(nghttp2_session*, uint8_t flags, int32_t stream, const uint8_t* data, size_t bytes, void* self);
  static int OnClose(nghttp2_session*, int32_t stream, uint32_t code, void* self);
  static int OnNotSent(nghttp2_session*, const nghttp2_frame* frame, int code, void* self);
  static int OnError(nghttp2_session*, int code, const char* text, size_t bytes, void* self);
  static ssize_t ReadBody(nghttp2_session*, int32_t stream, uint8_t* buffer, size_t bytes, uint32_t* flags,
                          nghttp2_data_source*, void* self);

  std::unique_ptr<nghttp2_session, Free> session_;
  int32_t stream_ = -1;
  std::string_view body_;  // the part that is not sent yet
  PostAnswer answer_;
  bool is_whole_ = false, is_over_ = false, is_closed_ = false;
  bool has_taken_body_ = false;  // nghttp2 has the end of the body
  bool is_sent_ = false, is_refused_ = false;
  std::string error_;
  std::string first_bytes_;  // that the other end has sent on this connection: as many as kHttp1 has
};

}  // namespace tributary::otlp
