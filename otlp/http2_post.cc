#include "otlp/http2_post.h"

#include <openssl/ssl.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/status.h"
#include "otlp/http2_stream.h"

namespace tributary::otlp {
namespace {

constexpr size_t kReadBytes = 16u << 10;  // a record of TLS has no more
// After so many reads, the deadline is checked again, even if the receiver sends without a pause.
constexpr int kReadsMax = 64;
// More than this is not read for one answer. The rest is for padding, and for frames that are no part of the answer.
constexpr size_t kReadBytesMax = kAnswerBytesMax + kAnswerHeaderBytesMax + (1u << 20);
// If the socket says that it can take bytes, but takes none (TLS may have to read first), the next attempt is after
// this time. Otherwise the thread would spin.
constexpr int64_t kStuckNs = 100 * kNsPerMs;
constexpr unsigned char kAlpn[] = {2, 'h', '2'};

// libcurl must not know that the connection is one of HTTP/2.
CURLcode SetAlpn(CURL*, void* context, void*) {
  SSL_CTX_set_alpn_protos(static_cast<SSL_CTX*>(context), kAlpn, sizeof(kAlpn));
  return CURLE_OK;
}

}  // namespace

class Http2Post::Impl {
 public:
  Impl(std::unique_ptr<CurlTransfer> transfer, Headers fields, Headers secrets, bool tls)
      : fields_(std::move(fields)), secrets_(std::move(secrets)), tls_(tls), transfer_(std::move(transfer)) {
    transfer_->Set(CURLOPT_CONNECT_ONLY, 1L);
    transfer_->Set(CURLOPT_HTTPPROXYTUNNEL, 1L);
    if (!tls_) return;
    transfer_->Set(CURLOPT_SSL_ENABLE_ALPN, 0L);
    transfer_->Set(CURLOPT_SSL_CTX_FUNCTION, SetAlpn);
  }

  PostResult Send(std::string_view body, const std::string& name, const std::string& value, int64_t timeout_ns) {
    deadline_ns_ = Now() + timeout_ns;
    read_bytes_ = 0;
    if (!IsUsable()) Close();
    if (stream_ == nullptr) {
      if (CallResult error = Connect(timeout_ns); !error.status.ok()) {
        Close();
        return {.answer = {}, .error = std::move(error)};
      }
    }
    PostResult result;
    Headers fields = fields_;
    fields.emplace_back(name, value);
    result.error = Exchange(fields, body);
    result.may_have_arrived = stream_->may_have_arrived();
    result.error.in_doubt = !result.error.status.ok() && result.may_have_arrived;
    if (result.error.status.code() != absl::StatusCode::kCancelled) result.answer = stream_->TakeAnswer();
    if (!result.error.status.ok() || !unsent_.empty() || !stream_->is_reusable()) Close();
    return result;
  }

  void Cancel() { transfer_->Cancel(); }

 private:
  static int64_t Now() { return Clock::Real().Monotonic().value; }

  void Close() {
    stream_.reset();
    unsent_ = {};
    send_failure_.reset();
    socket_ = CURL_SOCKET_BAD;
    transfer_->CloseConnections();
  }

  // Reads what the other end has sent since the last request, such as its goodbye.
  bool IsUsable() {
    if (stream_ == nullptr || Now() - connected_ns_ > CurlTransfer::kConnectionAgeMaxNs) return false;
    return Receive().status.ok() && stream_->is_reusable();
  }

  CallResult Connect(int64_t timeout_ns) {
    if (const CURLcode code = transfer_->Perform(timeout_ns); code != CURLE_OK) return transfer_->NoAnswer(code);
    curl_easy_getinfo(transfer_->easy(), CURLINFO_ACTIVESOCKET, &socket_);
    if (socket_ == CURL_SOCKET_BAD) return NoAnswer(absl::StatusCode::kUnavailable, "the connection is closed");
    connected_ns_ = Now();
    stream_ = std::make_unique<Http2Stream>();
    // Sends the preface of HTTP/2. libcurl knows the state of TLS only after this.
    if (CallResult error = SendSome(); !error.status.ok()) return error;
    if (!tls_ || HasChosenHttp2()) return {};
    return NoAnswer(absl::StatusCode::kUnavailable, "the receiver does not speak HTTP/2");
  }
  bool HasChosenHttp2() const {
    curl_tlssessioninfo* info = nullptr;
    curl_easy_getinfo(transfer_->easy(), CURLINFO_TLS_SSL_PTR, &info);
    const unsigned char* name = nullptr;
    unsigned int bytes = 0;
    if (info != nullptr && info->internals != nullptr) {
      SSL_get0_alpn_selected(static_cast<SSL*>(info->internals), &name, &bytes);
    }
    return bytes == 2 && name[0] == 'h' && name[1] == '2';
  }

  // Sends the request and reads the answer, to the end of the answer.
  CallResult Exchange(const Headers& fields, std::string_view body) {
    if (!stream_->Begin(fields, secrets_, body)) return NoAnswer(absl::StatusCode::kUnavailable, stream_->error());
    can_send_ = false;
    while (true) {
      if (transfer_->IsCancelled()) return CancelledCall();
      const size_t read_before = read_bytes_;
      if (CallResult error = SendSome(); !error.status.ok()) return error;
      CallResult error = Receive();
      if (stream_->is_whole()) return {};
      if (stream_->is_over()) return NoAnswer(absl::StatusCode::kUnavailable, stream_->error());
      if (!error.status.ok()) return error;
      if (!stream_->is_alive()) return NoAnswer(absl::StatusCode::kUnavailable, stream_->error());
      if (send_failure_ && read_bytes_ == read_before) return *send_failure_;
      if (error = Wait(); !error.status.ok()) return error;
    }
  }

  // Waits until the socket is ready for the next round of Exchange.
  CallResult Wait() {
    const int64_t left_ns = deadline_ns_ - Now();
    if (left_ns <= 0) return NoAnswer(absl::StatusCode::kDeadlineExceeded, "timed out");
    const bool sends = !is_stuck_ && (!unsent_.empty() || stream_->wants_to_send());
    const int events = sends ? CURL_WAIT_POLLIN | CURL_WAIT_POLLOUT : CURL_WAIT_POLLIN;
    const absl::StatusOr<short> ready =
        transfer_->Wait(socket_, static_cast<short>(events), is_stuck_ ? std::min(left_ns, kStuckNs) : left_ns);
    if (!ready.ok()) return NoAnswer(absl::StatusCode::kUnavailable, Message(ready.status()));
    can_send_ = (*ready & CURL_WAIT_POLLOUT) != 0;
    return {};
  }

  // Sends until the socket takes no more. A failure of the socket counts only if nothing can be read any more: the
  // other end may have answered before it closed the connection.
  CallResult SendSome() {
    bool failed = false;
    is_stuck_ = can_send_ && !unsent_.empty();
    while (!failed) {
      if (unsent_.empty()) unsent_ = stream_->BytesToSend(&failed);
      if (unsent_.empty()) break;
      size_t sent = 0;
      const CURLcode code = curl_easy_send(transfer_->easy(), unsent_.data(), unsent_.size(), &sent);
      if (code != CURLE_OK && code != CURLE_AGAIN) send_failure_ = transfer_->NoAnswer(code);
      if (code != CURLE_OK) break;
      unsent_.remove_prefix(sent);
      is_stuck_ = false;
    }
    return failed ? NoAnswer(absl::StatusCode::kUnavailable, "the connection is unusable") : CallResult{};
  }

  // Reads what has arrived, but at most to the end of the answer.
  CallResult Receive() {
    char buffer[kReadBytes];
    for (int i = 0; i < kReadsMax; ++i) {
      size_t bytes = 0;
      const CURLcode code = curl_easy_recv(transfer_->easy(), buffer, sizeof(buffer), &bytes);
      if (code == CURLE_AGAIN) return {};
      if (code != CURLE_OK) return transfer_->NoAnswer(code);
      if (bytes == 0) return NoAnswer(absl::StatusCode::kUnavailable, "the receiver closed the connection");
      read_bytes_ += bytes;
      if (read_bytes_ > kReadBytesMax) return NoAnswer(absl::StatusCode::kUnavailable, "the receiver sends too much");
      if (!stream_->Read({buffer, bytes})) return NoAnswer(absl::StatusCode::kUnavailable, stream_->error());
      if (stream_->is_over() && !stream_->is_reusable()) break;
    }
    return {};
  }

  const Headers fields_;
  const Headers secrets_;  // headers of the user, such as authorization
  const bool tls_;
  const std::unique_ptr<CurlTransfer> transfer_;
  std::unique_ptr<Http2Stream> stream_;  // of the connection; null: there is none
  curl_socket_t socket_ = CURL_SOCKET_BAD;
  int64_t connected_ns_ = 0, deadline_ns_ = 0;  // monotonic
  std::string_view unsent_;                     // points into *stream_
  size_t read_bytes_ = 0;                       // since the start of the request
  std::optional<CallResult> send_failure_;      // of the connection
  bool can_send_ = false;                       // says the socket
  bool is_stuck_ = false;                       // but it took no bytes
};

absl::StatusOr<std::unique_ptr<Http2Post>> Http2Post::Make(const TransportOptions& options, const std::string& path,
                                                           const Headers& fields) {
  ASSIGN_OR_RETURN(std::unique_ptr<CurlTransfer> transfer, CurlTransfer::Make(options, path));
  std::string authority = options.target;  // without the interface of an IPv6 address
  if (const size_t percent = authority.find('%'); percent != authority.npos) {
    authority.erase(percent, authority.find(']') - percent);
  }
  Headers all = {{":method", "POST"},
                 {":scheme", options.tls ? "https" : "http"},
                 {":path", path},
                 {":authority", std::move(authority)}};
  all.insert(all.end(), fields.begin(), fields.end());
  all.emplace_back("user-agent", UserAgent(options.version));
  return std::unique_ptr<Http2Post>(
      new Http2Post(std::make_unique<Impl>(std::move(transfer), std::move(all), options.headers, options.tls)));
}

Http2Post::Http2Post(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Http2Post::~Http2Post() = default;

PostResult Http2Post::Send(std::string_view body, const std::string& name, const std::string& value,
                           int64_t timeout_ns) {
  return impl_->Send(body, name, value, timeout_ns);
}

void Http2Post::Cancel() { impl_->Cancel(); }

}  // namespace tributary::otlp
