#include "reducer/web/http_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tributary {
namespace {

constexpr int kRequestsPerConnectionMax = 10'000;
// Bytes that a client may still send while it receives its last answer, and the time for this. If the connection were
// closed while bytes are unread, the kernel would reset it, and the client might not receive the answer.
constexpr size_t kLingerBytesMax = 1u << 20;
constexpr int64_t kLingerMs = 500;
constexpr int64_t kCheckMs = 1'000;  // between two looks at the rate of an upload or of an answer
// A larger body is written separately from its head, because copying it would cost more than a packet.
constexpr size_t kJoinedBodyBytesMax = 64u << 10;

}  // namespace

HttpSession::HttpSession(Loop& loop, std::unique_ptr<Stream> stream, std::string_view first_bytes,
                         const HttpLimits& limits, Callbacks callbacks)
    : loop_(loop),
      limits_(limits),
      callbacks_(std::move(callbacks)),
      timer_(loop.NewAlarm([this] { OnTimer(); })),
      stream_(std::move(stream)),
      buffer_(first_bytes) {
  const std::string peer = stream_->peer();
  address_ = peer.substr(0, peer.rfind(':'));
}

HttpSession::~HttpSession() {
  if (exchange_ != nullptr) exchange_->Cancel();
}

int64_t HttpSession::now_ms() const { return static_cast<int64_t>(uv_now(loop_.raw())); }

void HttpSession::Start() {
  since_ms_ = now_ms();
  timer_->StartOnce(static_cast<uint64_t>(limits_.idle_timeout_ms));
  stream_->Start({.on_data = [this](std::string_view bytes) { OnData(bytes); },
                  .on_close = [this](const absl::Status& status) { OnEnd(status); },
                  .on_drained = [this] { OnDrained(); }});
  if (!buffer_.empty()) Advance();
}

void HttpSession::Close() {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  if (exchange_ != nullptr) exchange_->Cancel();
  exchange_.reset();
  timer_->Stop();
  stream_.reset();
  answer_bytes_ = 0;
  buffer_ = {};
  callbacks_.closed();
}

void HttpSession::Stop() {
  if (exchange_ != nullptr) exchange_->Cancel();
  is_last_ = true;
  if (state_ != State::kRunning && state_ != State::kWriting) Close();
}

void HttpSession::OnEnd(const absl::Status& status) {
  if (state_ == State::kRunning) callbacks_.cancelled();
  const bool is_plain = absl::IsFailedPrecondition(status);
  if (state_ == State::kReading && (is_plain || absl::IsUnauthenticated(status) || absl::IsPermissionDenied(status))) {
    callbacks_.tls_failed(status);
    return EndHandshake(is_plain);
  }
  if (absl::IsResourceExhausted(status)) callbacks_.tls_failed(status);
  Close();
}

// Gives the client time to read why its handshake has failed: the TLS alert, or an answer to a client without TLS.
void HttpSession::EndHandshake(bool is_plain) {
  if (is_plain) {
    const WebResponse response = HttpError(400, "this port speaks only HTTPS: use https:// in the URL");
    stream_->WritePlain(HttpAnswerHead(response, /*is_last=*/true) + response.body);
  }
  state_ = State::kLingering;
  timer_->StartOnce(kLingerMs);
}

void HttpSession::OnData(std::string_view bytes) {
  if (state_ == State::kLingering) {
    dropped_bytes_ += bytes.size();
    if (dropped_bytes_ > kLingerBytesMax) Close();
    return;
  }
  buffer_ += bytes;
  if (state_ == State::kReading) return Advance();
  if (exchange_ != nullptr && exchange_->upload != nullptr) ReadBody();
  if (state_ == State::kClosed || paused_ || buffer_.size() <= limits_.request_bytes_max) return;
  paused_ = true;
  stream_->PauseReading();
}

// Processes the bytes of the next request that have arrived.
void HttpSession::Advance() {
  if (buffer_.empty()) return;
  if (!has_begun_) {
    if (stream_->is_outdated()) return Close();
    has_begun_ = true;
    since_ms_ = now_ms();
    timer_->StartOnce(static_cast<uint64_t>(limits_.request_timeout_ms));
    parser_ = std::make_unique<HttpParser>(limits_.request_bytes_max, limits_.upload_bytes_max);
  }
  const size_t head_size = parser_->ReadHead(buffer_);
  if (parser_->error_status() != 0) {
    const bool too_large = parser_->error_status() == 414 || parser_->error_status() == 431;
    return Refuse(too_large ? WebRefusal::kTooLarge : WebRefusal::kMalformed, parser_->error_status(),
                  parser_->error());
  }
  if (head_size > 0) StartRequest(head_size);
}

void HttpSession::StartRequest(size_t head_size) {
  buffer_.erase(0, head_size);
  timer_->Stop();
  state_ = State::kRunning;
  exchange_ = std::make_shared<HttpExchange>();
  WebRequest& request = exchange_->request;
  request = std::move(parser_->request());
  request.peer = stream_->peer();
  request.certificate_names = stream_->peer_identity();
  request.certificate_ends_s = stream_->peer_identity_ends_s();
  request.cancelled = &exchange_->cancelled;
  is_head_ = request.method == "HEAD";
  has_unread_ = parser_->has_body();
  is_last_ = !parser_->keep_alive() || has_unread_ || ++requests_ >= kRequestsPerConnectionMax;
  continued_ = !parser_->expects_continue();
  if (request.method == "PUT" && !limits_.upload_path.empty() && request.path == limits_.upload_path) {
    is_last_ = true;
    exchange_->upload = std::make_unique<HttpUpload>(callbacks_.body_wanted);
    request.body = exchange_->upload.get();
  }
  if (!callbacks_.run(exchange_)) {
    callbacks_.refused(WebRefusal::kBusy);
    WebResponse busy = HttpError(503, "too many requests wait: try again soon");
    busy.headers.emplace_back("Retry-After", "1");
    Send(std::move(busy));
  }
}

void HttpSession::OnBodyWanted() {
  if (state_ != State::kRunning || exchange_->upload == nullptr) return;
  if (!continued_) {
    continued_ = true;
    stream_->Write("HTTP/1.1 100 Continue\r\n\r\n");
  }
  ReadBody();
}

// Passes bytes of the body to the handler, as long as it has room for them. Otherwise pauses reading.
void HttpSession::ReadBody() {
  HttpUpload& upload = *exchange_->upload;
  if (upload_asked_ms_ >= 0) upload_wait_ms_ += now_ms() - upload_asked_ms_;
  upload_asked_ms_ = -1;
  timer_->Stop();
  if (!upload.is_wanted() || parser_->error_status() != 0) return;
  // OnData pauses when its buffer is full. The handler asks again when it has read everything.
  if (upload.room() < HttpUpload::kBytesMax / 2) return;
  if (!parser_->body_is_complete() && has_unread_) {
    std::string piece;
    const size_t used = parser_->ReadBody(std::string_view(buffer_).substr(0, upload.room()), &piece);
    buffer_.erase(0, used);
    upload_bytes_ += used;
    if (!piece.empty()) upload.Push(std::move(piece));
    // A chunk's head that does not fit into this limit is not a real one.
    const bool is_stuck = used == 0 && buffer_.size() > limits_.request_bytes_max;
    if (parser_->error_status() != 0 || is_stuck) return upload.Fail();
  }
  if (parser_->body_is_complete() || !has_unread_) {
    has_unread_ = !buffer_.empty();
    return upload.Finish();
  }
  Resume();
  upload_asked_ms_ = now_ms();
  timer_->StartOnce(kCheckMs);
}

// Ends an upload that stalls, or whose client was too slow on average.
void HttpSession::CheckUpload() {
  const int64_t stalled_ms = now_ms() - upload_asked_ms_;
  const auto allowed_ms = static_cast<int64_t>(upload_bytes_ * 1000 / limits_.upload_bytes_per_second_min);
  if (stalled_ms < limits_.upload_stall_ms && upload_wait_ms_ + stalled_ms < limits_.upload_stall_ms + allowed_ms) {
    timer_->StartOnce(static_cast<uint64_t>(std::min(kCheckMs, limits_.upload_stall_ms)));
    return;
  }
  callbacks_.refused(WebRefusal::kSlowUpload);
  upload_asked_ms_ = -1;
  exchange_->upload->Fail();  // the handler then answers
}

// Continues reading unless enough pipelined bytes wait already.
void HttpSession::Resume() {
  if (!paused_ || buffer_.size() > limits_.request_bytes_max) return;
  paused_ = false;
  stream_->ResumeReading();
}

void HttpSession::Refuse(WebRefusal refusal, int status, std::string_view message) {
  callbacks_.refused(refusal);
  is_head_ = false;
  is_last_ = has_unread_ = true;
  buffer_.clear();
  Send(HttpError(status, message));
}

void HttpSession::OnAnswer(WebResponse response) {
  if (state_ == State::kRunning) Send(std::move(response));
}

void HttpSession::Send(WebResponse response) {
  exchange_.reset();
  parser_.reset();
  state_ = State::kWriting;
  since_ms_ = now_ms();
  is_last_ = is_last_ || stream_->is_outdated();
  std::string head = HttpAnswerHead(response, is_last_);
  std::string body = is_head_ ? std::string() : std::move(response.body);
  answer_bytes_ = pending_bytes_ = head.size() + body.size();
  progress_ms_ = since_ms_;
  timer_->StartOnce(static_cast<uint64_t>(std::min(kCheckMs, limits_.answer_grace_ms)));
  if (body.size() <= kJoinedBodyBytesMax) {
    stream_->Write(head + body);
  } else {
    stream_->Write(std::move(head));
    stream_->Write(std::move(body));
  }
  callbacks_.answer_changed();
}

uint64_t HttpSession::written_bytes() const {
  const size_t pending = stream_ == nullptr ? 0 : stream_->pending_bytes();
  return pending >= answer_bytes_ ? 0 : answer_bytes_ - pending;
}

int64_t HttpSession::waiting_since_ms() const {
  if (state_ != State::kWriting) return since_ms_;
  // The kernel's buffers take megabytes at once, so the average alone would give a client minutes without reading.
  return std::min(progress_ms_,
                  since_ms_ + static_cast<int64_t>(written_bytes() * 1000 / limits_.answer_bytes_per_second_min));
}

void HttpSession::CheckAnswer() {
  if (const size_t pending = stream_->pending_bytes(); pending < pending_bytes_) {
    pending_bytes_ = pending;
    progress_ms_ = now_ms();
  }
  if (now_ms() - waiting_since_ms() < limits_.answer_grace_ms) {
    timer_->StartOnce(static_cast<uint64_t>(std::min(kCheckMs, limits_.answer_grace_ms)));
    return;
  }
  callbacks_.refused(WebRefusal::kSlowAnswer);
  Close();
}

void HttpSession::OnDrained() {
  if (state_ != State::kWriting) return;
  answer_bytes_ = 0;
  callbacks_.answer_changed();
  has_begun_ = false;
  since_ms_ = now_ms();
  if (is_last_ && !has_unread_) return Close();
  if (is_last_) {
    state_ = State::kLingering;
    buffer_.clear();
    timer_->StartOnce(kLingerMs);
  } else {
    state_ = State::kReading;
    timer_->StartOnce(static_cast<uint64_t>(limits_.idle_timeout_ms));
  }
  Resume();
  if (state_ == State::kReading) Advance();
}

void HttpSession::OnTimer() {
  switch (state_) {
    case State::kReading:
      if (has_begun_) return Refuse(WebRefusal::kSlowRequest, 408, "the request took too long");
      return Close();
    case State::kRunning:
      if (upload_asked_ms_ >= 0) CheckUpload();
      return;
    case State::kWriting:
      return CheckAnswer();
    case State::kLingering:
      return Close();
    case State::kClosed:
      return;
  }
}

}  // namespace tributary
