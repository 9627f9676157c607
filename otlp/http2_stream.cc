#include "otlp/http2_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <vector>

#include "base/status.h"

namespace tributary::otlp {
namespace {

constexpr size_t kErrorBytesMax = 200;
// The headers of the options, with the overhead of their compression, and the fields that every request has. The
// default of nghttp2 is less.
constexpr size_t kSentHeaderBytesMax = kHeadersMax * kHeaderBytesMax + (8u << 10);
constexpr std::string_view kHttp1 = "HTTP/1";

std::string_view Text(const uint8_t* bytes, size_t size) { return {reinterpret_cast<const char*>(bytes), size}; }

nghttp2_nv MakeField(const std::string& name, const std::string& value, uint8_t flags) {
  const auto bytes = [](const std::string& text) {
    return const_cast<uint8_t*>(reinterpret_cast<const uint8_t*>(text.data()));  // nghttp2 only reads them
  };
  return {bytes(name), bytes(value), name.size(), value.size(), flags};
}

}  // namespace

nghttp2_session_callbacks* Http2Stream::NewCallbacks() {
  nghttp2_session_callbacks* callbacks = nullptr;
  TRIBUTARY_CHECK(nghttp2_session_callbacks_new(&callbacks) == 0);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, OnHeader);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, OnFrame);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, OnData);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, OnClose);
  nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks, OnNotSent);
  nghttp2_session_callbacks_set_error_callback2(callbacks, OnError);
  return callbacks;
}

Http2Stream::Http2Stream() {
  const std::unique_ptr<nghttp2_session_callbacks, void (*)(nghttp2_session_callbacks*)> callbacks(
      NewCallbacks(), nghttp2_session_callbacks_del);
  nghttp2_option* new_option = nullptr;
  TRIBUTARY_CHECK(nghttp2_option_new(&new_option) == 0);
  const std::unique_ptr<nghttp2_option, void (*)(nghttp2_option*)> option(new_option, nghttp2_option_del);
  nghttp2_option_set_max_send_header_block_length(new_option, kSentHeaderBytesMax);
  nghttp2_session* session = nullptr;
  TRIBUTARY_CHECK(nghttp2_session_client_new2(&session, callbacks.get(), this, new_option) == 0);
  session_.reset(session);
  const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
                                             {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, kAnswerHeaderBytesMax}};
  TRIBUTARY_CHECK(nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings, std::size(settings)) == 0);
}

bool Http2Stream::Begin(const Headers& fields, const Headers& secrets, std::string_view body) {
  answer_ = {};
  is_whole_ = is_over_ = is_closed_ = false;
  has_taken_body_ = is_sent_ = is_refused_ = false;
  error_.clear();
  body_ = body;
  std::vector<nghttp2_nv> list;
  for (const auto& [name, value] : fields) list.push_back(MakeField(name, value, NGHTTP2_NV_FLAG_NONE));
  for (const auto& [name, value] : secrets) list.push_back(MakeField(name, value, NGHTTP2_NV_FLAG_NO_INDEX));
  nghttp2_data_provider provider{.source = {}, .read_callback = ReadBody};
  stream_ = nghttp2_submit_request(session_.get(), nullptr, list.data(), list.size(), &provider, nullptr);
  if (stream_ < 0) error_ = nghttp2_strerror(stream_);
  return stream_ > 0;
}

std::string_view Http2Stream::BytesToSend(bool* failed) {
  is_sent_ = has_taken_body_;
  const uint8_t* data = nullptr;
  const ssize_t bytes = nghttp2_session_mem_send(session_.get(), &data);
  *failed = bytes < 0;
  return bytes > 0 ? Text(data, static_cast<size_t>(bytes)) : std::string_view();
}

bool Http2Stream::Read(std::string_view bytes) {
  if (first_bytes_.size() < kHttp1.size()) {
    first_bytes_ += bytes.substr(0, kHttp1.size() - first_bytes_.size());
    if (first_bytes_ == kHttp1) {
      is_refused_ = true;
      error_ = "the receiver speaks HTTP/1: is this the port for HTTP?";
      return false;
    }
  }
  const ssize_t read =
      nghttp2_session_mem_recv(session_.get(), reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  if (read == static_cast<ssize_t>(bytes.size())) return true;
  if (error_.empty()) error_ = nghttp2_strerror(static_cast<int>(read));
  return false;
}

bool Http2Stream::is_reusable() const {
  return is_closed_ && is_whole_ && nghttp2_session_check_request_allowed(session_.get()) != 0;
}

int Http2Stream::OnHeader(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name, size_t name_bytes,
                          const uint8_t* value, size_t value_bytes, uint8_t, void* user) {
  auto& self = *static_cast<Http2Stream*>(user);
  if (frame->hd.stream_id != self.stream_ || self.is_over_) return 0;
  PostAnswer& answer = self.answer_;
  const std::string_view field = Text(name, name_bytes), text = Text(value, value_bytes);
  bool fits = true;  // PostAnswer reads lines in the form of libcurl's
  if (field == ":status") {
    answer.status = atol(std::string(text).c_str());
    fits = answer.AddHeaderLine("HTTP/2\r\n");
  } else {
    fits = answer.AddHeaderLine(fmt::format("{}: {}\r\n", field, text));
  }
  if (!fits) {
    self.is_over_ = true;
    self.error_ = "the headers of the answer are too long";
  }
  return 0;
}

int Http2Stream::OnFrame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
  auto& self = *static_cast<Http2Stream*>(user);
  if (frame->hd.stream_id != self.stream_ || self.is_over_) return 0;
  // Neither the trailers nor the end of an interim answer end the head.
  if (frame->hd.type == NGHTTP2_HEADERS && !self.answer_.has_head && self.answer_.status >= 200) {
    self.answer_.AddHeaderLine("\r\n");
  }
  const bool may_end = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
  if (may_end && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) self.is_whole_ = self.is_over_ = true;
  return 0;
}

int Http2Stream::OnData(nghttp2_session*, uint8_t, int32_t stream, const uint8_t* data, size_t bytes, void* user) {
  auto& self = *static_cast<Http2Stream*>(user);
  if (stream != self.stream_ || self.is_over_ || self.answer_.AddBody(Text(data, bytes))) return 0;
  self.is_over_ = true;
  self.error_ = "the answer is too long";
  return 0;
}

int Http2Stream::OnClose(nghttp2_session*, int32_t stream, uint32_t code, void* user) {
  auto& self = *static_cast<Http2Stream*>(user);
  if (stream != self.stream_) return 0;
  self.is_closed_ = true;
  self.is_refused_ = code == NGHTTP2_REFUSED_STREAM;  // nghttp2 also sets this code after a GOAWAY
  if (self.is_over_) return 0;
  self.is_over_ = true;
  if (self.error_.empty()) self.error_ = fmt::format("the stream ended: {}", nghttp2_http2_strerror(code));
  return 0;
}

int Http2Stream::OnNotSent(nghttp2_session*, const nghttp2_frame* frame, int code, void* user) {
  auto& self = *static_cast<Http2Stream*>(user);
  if (frame->hd.type == NGHTTP2_HEADERS && frame->hd.stream_id == self.stream_) {
    self.error_ = fmt::format("the headers of the request cannot be sent: {}", nghttp2_strerror(code));
  }
  return 0;
}

int Http2Stream::OnError(nghttp2_session*, int, const char* text, size_t bytes, void* user) {
  auto& self = *static_cast<Http2Stream*>(user);
  if (self.error_.empty()) self.error_ = std::string(text, std::min(bytes, kErrorBytesMax));
  return 0;
}

ssize_t Http2Stream::ReadBody(nghttp2_session*, int32_t, uint8_t* buffer, size_t bytes, uint32_t* flags,
                              nghttp2_data_source*, void* user) {
  auto& self = *static_cast<Http2Stream*>(user);
  std::string_view& body = self.body_;
  const size_t part = std::min(bytes, body.size());
  memcpy(buffer, body.data(), part);
  body.remove_prefix(part);
  self.has_taken_body_ = body.empty();
  if (body.empty()) *flags |= NGHTTP2_DATA_FLAG_EOF;
  return static_cast<ssize_t>(part);
}

}  // namespace tributary::otlp
