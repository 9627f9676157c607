#include "otlp/http_post.h"

#include <fmt/format.h>

#include "base/status.h"

namespace tributary::otlp {
namespace {

// These return fewer bytes than they get to make libcurl stop.
size_t OnHeader(char* data, size_t size, size_t count, void* answer) {
  const std::string_view line(data, size * count);
  return static_cast<PostAnswer*>(answer)->AddHeaderLine(line) ? line.size() : 0;
}
size_t OnBody(char* data, size_t size, size_t count, void* answer) {
  const std::string_view bytes(data, size * count);
  return static_cast<PostAnswer*>(answer)->AddBody(bytes) ? bytes.size() : 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpPost>> HttpPost::Make(const TransportOptions& options, const std::string& path,
                                                         const std::string& content_type) {
  ASSIGN_OR_RETURN(std::unique_ptr<CurlTransfer> transfer, CurlTransfer::Make(options, path));
  std::unique_ptr<HttpPost> post(new HttpPost(std::move(transfer)));
  if (!post->AddHeaders(options, content_type)) {
    return Error(absl::StatusCode::kResourceExhausted, "no memory for libcurl");
  }
  CurlTransfer& curl = *post->transfer_;
  curl.Set(CURLOPT_PATH_AS_IS, 1L);
  curl.Set(CURLOPT_POST, 1L);
  curl.Set(CURLOPT_HTTPHEADER, post->headers_.get());
  curl.Set(CURLOPT_HEADERFUNCTION, OnHeader);
  curl.Set(CURLOPT_WRITEFUNCTION, OnBody);
  return post;
}

bool HttpPost::AddHeader(const std::string& line) {
  curl_slist* list = curl_slist_append(headers_.get(), line.c_str());
  if (list == nullptr) return false;
  (void)headers_.release();  // `list` owns it now
  headers_.reset(list);
  return true;
}

bool HttpPost::AddHeaders(const TransportOptions& options, const std::string& content_type) {
  bool ok = AddHeader("Content-Type: " + content_type);
  // Otherwise curl may wait for a second before it sends a large body.
  ok = ok && AddHeader("Expect:");
  if (options.gzip) ok = ok && AddHeader("Content-Encoding: gzip");
  for (const auto& [name, value] : options.headers) {
    // A header without a value ends with a semicolon for curl.
    ok = ok && AddHeader(value.empty() ? name + ";" : fmt::format("{}: {}", name, value));
  }
  return ok;
}

PostResult HttpPost::Send(std::string_view body, int64_t timeout_ns) {
  PostResult result;
  transfer_->Set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
  transfer_->Set(CURLOPT_POSTFIELDS, body.data());
  transfer_->Set(CURLOPT_HEADERDATA, &result.answer);
  transfer_->Set(CURLOPT_WRITEDATA, &result.answer);
  const CURLcode code = transfer_->Perform(timeout_ns);
  result.may_have_arrived = transfer_->BytesUploaded() == body.size();
  if (code == CURLE_ABORTED_BY_CALLBACK) {
    transfer_->CloseConnections();
    result.answer = {};
    result.error = CancelledCall();
    result.error.in_doubt = result.may_have_arrived;
    return result;
  }
  curl_easy_getinfo(transfer_->easy(), CURLINFO_RESPONSE_CODE, &result.answer.status);
  if (result.answer.header_bytes > kAnswerHeaderBytesMax) {
    result.error = NoAnswer(absl::StatusCode::kUnavailable, "the headers of the answer are too long");
  } else if (code != CURLE_OK) {
    result.error = transfer_->NoAnswer(code);
  } else if (!result.answer.has_head) {
    result.error = NoAnswer(absl::StatusCode::kUnavailable,
                            "the receiver closed the connection before the end of the answer's headers");
  }
  result.error.in_doubt = !result.error.status.ok() && result.may_have_arrived;
  return result;
}

}  // namespace tributary::otlp
