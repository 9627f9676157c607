#include "otlp/grpc_answer.h"

#include <fmt/format.h>
#include <google/protobuf/message.h>

#include <optional>
#include <string>

#include "absl/strings/escaping.h"
#include "base/percent.h"
#include "base/status.h"
#include "otlp/grpc_frame.h"
#include "otlp/gzip.h"
#include "otlp/retry.h"

namespace tributary::otlp {
namespace {

constexpr long kHttpOk = 200, kHttpBadGateway = 502, kHttpGatewayTimeout = 504;

const PostAnswer::Fields& StatusFields(const PostAnswer& answer) {
  return answer.trailers.empty() ? answer.headers : answer.trailers;
}

// Returns OK for "", and Unknown for unknown numbers, as gRPC's own libraries do.
absl::StatusCode CodeOf(std::string_view grpc_status) {
  constexpr int kCodeMax = 16;
  int code = 0;
  for (const char c : grpc_status) {
    if (c < '0' || c > '9' || code > kCodeMax) return absl::StatusCode::kUnknown;
    code = code * 10 + (c - '0');
  }
  return code > kCodeMax ? absl::StatusCode::kUnknown : static_cast<absl::StatusCode>(code);
}

absl::StatusCode CodeOfHttp(long status) {
  switch (status) {
    case 400:
      return absl::StatusCode::kInternal;
    case 401:
      return absl::StatusCode::kUnauthenticated;
    case 403:
      return absl::StatusCode::kPermissionDenied;
    case 404:
      return absl::StatusCode::kUnimplemented;
    case 429:
    case 502:
    case 503:
    case 504:
      return absl::StatusCode::kUnavailable;
    default:
      return absl::StatusCode::kUnknown;
  }
}

// These codes may come from a proxy whose receiver has the request, or from a receiver that did not finish in time.
bool IsInDoubt(absl::StatusCode code) {
  return code == absl::StatusCode::kDeadlineExceeded || code == absl::StatusCode::kCancelled ||
         code == absl::StatusCode::kDataLoss || code == absl::StatusCode::kUnavailable;
}

CallResult Refusal(absl::StatusCode code, std::string_view message, std::optional<int64_t> retry_after_ns = {}) {
  return {.status = Error(code, message),
          .may_retry = IsRetryable(code, retry_after_ns.has_value()),
          .in_doubt = IsInDoubt(code),
          .retry_after_ns = retry_after_ns};
}

CallResult NoOtlp(std::string_view why) {
  return Refusal(absl::StatusCode::kInternal,
                 fmt::format("the receiver accepted the request, but the answer is no OTLP response: {}", why));
}

CallResult NoStatus(const PostAnswer& answer) {
  CallResult result =
      Refusal(CodeOfHttp(answer.status),
              fmt::format("HTTP {} without a gRPC status: check that the URL is that of an OTLP receiver for gRPC",
                          answer.status));
  // Of a gateway: the receiver behind it may have the request.
  result.in_doubt = answer.status == kHttpBadGateway || answer.status == kHttpGatewayTimeout;
  return result;
}

// The value of a field whose name ends with "-bin" is base64. Padding is optional. Several values have commas between
// them.
std::optional<int64_t> DelayOf(std::string_view details) {
  std::string bytes;
  if (!absl::Base64Unescape(ToAbsl(details.substr(0, details.find(','))), &bytes)) return std::nullopt;
  return RetryDelayNs(bytes);
}

CallResult ReadMessage(const PostAnswer& answer, google::protobuf::Message* response) {
  if (answer.is_cut) return NoOtlp("it is too long");
  const std::optional<GrpcFrame> frame = ParseGrpcFrame(answer.body);
  if (!frame) return NoOtlp("it is not exactly one message");
  std::optional<std::string> inflated;
  std::string_view message = frame->message;
  if (frame->is_compressed) {
    if (FieldOf(answer.headers, "grpc-encoding") != "gzip") return NoOtlp("its compression is unknown");
    inflated = Gunzip(message, kAnswerBytesMax);
    if (!inflated) return NoOtlp("its gzip is malformed or too long");
    message = *inflated;
  }
  if (!response->ParseFromArray(message.data(), static_cast<int>(message.size()))) {
    response->Clear();
    return NoOtlp("it is malformed");
  }
  return {};
}

}  // namespace

CallResult ReadGrpcAnswer(const PostAnswer& answer, google::protobuf::Message* response) {
  const PostAnswer::Fields& fields = StatusFields(answer);
  const std::string_view grpc_status = FieldOf(fields, "grpc-status");
  if (grpc_status.empty()) {
    const bool is_grpc = FieldOf(answer.headers, "content-type").starts_with("application/grpc");
    return answer.is_cut && answer.status == kHttpOk && is_grpc ? NoOtlp("it is too long") : NoStatus(answer);
  }
  const absl::StatusCode code = CodeOf(grpc_status);
  if (code == absl::StatusCode::kOk) return answer.status == kHttpOk ? ReadMessage(answer, response) : NoStatus(answer);
  const std::string message = PercentDecoded(FieldOf(fields, "grpc-message"));
  return Refusal(code, std::string_view(message).substr(0, kMessageBytesMax),
                 DelayOf(FieldOf(fields, "grpc-status-details-bin")));
}

bool DecidesGrpcCall(const PostAnswer& answer) {
  if (!answer.has_head || answer.status < kHttpOk) return false;
  const std::string_view grpc_status = FieldOf(StatusFields(answer), "grpc-status");
  return answer.status != kHttpOk || answer.is_cut || CodeOf(grpc_status) != absl::StatusCode::kOk;
}

}  // namespace tributary::otlp
