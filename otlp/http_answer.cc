#include "otlp/http_answer.h"

#include <curl/curl.h>
#include <fmt/format.h>
#include <google/protobuf/message.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <ctime>

#include "base/ascii_case.h"
#include "base/status.h"
#include "base/trim.h"
#include "otlp/retry.h"
#include "schemas/otlp/rpc_status.pb.h"

namespace tributary::otlp {
namespace {

constexpr int64_t kRetryAfterMaxS = kRetryAfterMaxNs / kNsPerSecond;
constexpr long kProxyWantsCredentials = 407;

enum class BodyKind { kProtobuf, kJson, kText };

// Some receivers send protobuf with another type, such as application/octet-stream, or without a type.
BodyKind KindOf(std::string_view content_type) {
  const std::string type = LowerCase(Trim(content_type.substr(0, content_type.find(';')), kHttpBlanks));
  if (type == "application/json") return BodyKind::kJson;
  return type.starts_with("text/") ? BodyKind::kText : BodyKind::kProtobuf;
}

bool ParseJson(const std::string& text, google::protobuf::Message* out) {
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  return google::protobuf::util::JsonStringToMessage(text, out, options).ok();
}

// Parses the body. Returns false if it is no such message.
bool ParseBody(const HttpAnswer& answer, google::protobuf::Message* out) {
  const BodyKind kind = KindOf(answer.content_type);
  if (kind == BodyKind::kJson) return ParseJson(answer.body, out);
  return kind == BodyKind::kProtobuf && out->ParseFromString(answer.body);
}

// Returns the receiver's explanation of a refusal with ": " before it, or "".
std::string ReasonOf(const HttpAnswer& answer) {
  std::string_view reason;
  rpc::Refusal refusal;
  if (KindOf(answer.content_type) == BodyKind::kText) {
    reason = answer.body;
  } else if (!answer.is_cut && ParseBody(answer, &refusal)) {
    reason = refusal.message();
  }
  reason = Trim(reason.substr(0, kMessageBytesMax), kAsciiBlanks);
  return reason.empty() ? "" : fmt::format(": {}", reason);
}

absl::StatusCode CodeOf(long status) {
  switch (status) {
    case 400:
      return absl::StatusCode::kInvalidArgument;
    case 401:
      return absl::StatusCode::kUnauthenticated;
    case 403:
      return absl::StatusCode::kPermissionDenied;
    case 404:
      return absl::StatusCode::kNotFound;
    case 413:
    case 429:
      return absl::StatusCode::kResourceExhausted;
    case 501:
      return absl::StatusCode::kUnimplemented;
    case kProxyWantsCredentials:
    case 502:
    case 503:
      return absl::StatusCode::kUnavailable;
    case 504:
      return absl::StatusCode::kDeadlineExceeded;
    default:
      return status >= 500 ? absl::StatusCode::kInternal : absl::StatusCode::kFailedPrecondition;
  }
}

std::string_view AdviceOf(long status) {
  if (status >= 300 && status < 400) return " (redirects are not followed: use the final URL)";
  if (status == kProxyWantsCredentials) return " (the proxy wants a name and a password: add them to its URL)";
  if (status == 404) return " (check the path of the URL)";
  if (status == 413) return " (the request is too large for the receiver: raise its limit)";
  return "";
}

// Accepts all three forms of RFC 9110.
std::optional<int64_t> UnixSeconds(const std::string& date) {
  if (date.empty() || LowerCase(date[0]) < 'a' || LowerCase(date[0]) > 'z') return std::nullopt;
  const time_t seconds = curl_getdate(date.c_str(), nullptr);
  return seconds < 0 ? std::nullopt : std::optional<int64_t>(seconds);
}

}  // namespace

std::optional<int64_t> RetryAfterNs(const std::string& retry_after, const std::string& date, UnixNs now) {
  if (retry_after.empty()) return std::nullopt;
  int64_t seconds = 0;
  if (retry_after.find_first_not_of("0123456789") == std::string::npos) {
    for (const char c : retry_after) seconds = std::min(seconds * 10 + (c - '0'), kRetryAfterMaxS);
  } else {
    const std::optional<int64_t> then = UnixSeconds(retry_after);
    if (!then) return std::nullopt;
    seconds = *then - UnixSeconds(date).value_or(now.value / kNsPerSecond);
  }
  return std::clamp<int64_t>(seconds, 0, kRetryAfterMaxS) * kNsPerSecond;
}

CallResult ReadHttpAnswer(const HttpAnswer& answer, UnixNs now, google::protobuf::Message* response) {
  CallResult result;
  const long status = answer.status;
  if (status >= 200 && status < 300) {
    if (answer.is_cut || (!answer.body.empty() && !ParseBody(answer, response))) {
      response->Clear();
      result.status = Error(absl::StatusCode::kInternal,
                            fmt::format("HTTP {}, but the answer is no OTLP response: check that the URL is that of an "
                                        "OTLP receiver",
                                        status));
    }
    return result;
  }
  result.status = Error(CodeOf(status), fmt::format("HTTP {}{}{}", status, AdviceOf(status), ReasonOf(answer)));
  result.may_retry =
      status == 429 || status == 502 || status == 503 || status == 504 || status == kProxyWantsCredentials;
  result.in_doubt = status == 502 || status == 504;  // of a gateway: the receiver behind it may have the request
  if (result.may_retry) result.retry_after_ns = RetryAfterNs(answer.retry_after, answer.date, now);
  return result;
}

}  // namespace tributary::otlp
