#include "otlp/http_transport.h"

#include <google/protobuf/message.h>

#include <utility>

#include "base/status.h"
#include "otlp/http_answer.h"
#include "otlp/json.h"

namespace tributary::otlp {

absl::StatusOr<std::unique_ptr<HttpTransport>> HttpTransport::Make(const Options& options, const Clock& clock) {
  const bool gzip = options.common.gzip;
  const char* type = options.encoding == Encoding::kJson ? "application/json" : "application/x-protobuf";
  ASSIGN_OR_RETURN(std::unique_ptr<HttpPost> post, HttpPost::Make(options.common, options.path, type));
  return std::unique_ptr<HttpTransport>(new HttpTransport(std::move(post), options.encoding, gzip, clock));
}

HttpTransport::HttpTransport(std::unique_ptr<HttpPost> post, Encoding encoding, bool gzip, const Clock& clock)
    : post_(std::move(post)), encoding_(encoding), gzip_(gzip), clock_(clock) {}

CallResult HttpTransport::Call(const google::protobuf::Message& request, google::protobuf::Message* response,
                               int64_t timeout_ns) {
  return Post(encoding_ == Encoding::kJson ? ToJson(request) : request.SerializeAsString(), response, timeout_ns);
}

CallResult HttpTransport::CallEncoded(EncodedRequest& request, google::protobuf::Message* response,
                                      int64_t timeout_ns) {
  if (encoding_ == Encoding::kJson) return Call(request.AsMessage(), response, timeout_ns);
  std::string body;
  request.AppendTo(&body);
  return Post(std::move(body), response, timeout_ns);
}

CallResult HttpTransport::Post(std::string body, google::protobuf::Message* response, int64_t timeout_ns) {
  if (gzip_) body = compressor_.Compress(body);
  PostResult result = post_->Send(body, timeout_ns);
  PostAnswer& answer = result.answer;
  // The body of a refusal is only its explanation. A receiver that refuses a request need not read all of it, and may
  // close the connection early.
  const bool is_whole = answer.status >= 300 || (answer.status >= 200 && (result.error.status.ok() || answer.is_cut));
  if (!answer.has_head || !is_whole) return result.error;
  CallResult call = ReadHttpAnswer({.status = answer.status,
                                    .content_type = std::string(FieldOf(answer.headers, "content-type")),
                                    .retry_after = std::string(FieldOf(answer.headers, "retry-after")),
                                    .date = std::string(FieldOf(answer.headers, "date")),
                                    .body = std::move(answer.body),
                                    .is_cut = answer.is_cut},
                                   clock_.Unix(), response);
  call.in_doubt &= result.may_have_arrived;
  return call;
}

}  // namespace tributary::otlp
