#include "otlp/grpc_transport.h"

#include <fmt/format.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "base/types.h"
#include "otlp/grpc_answer.h"
#include "otlp/grpc_frame.h"

namespace tributary::otlp {
namespace {

// Returns the value of grpc-timeout. It has at most 8 digits, so the deadline is at most a day, in ms.
std::string TimeoutField(int64_t timeout_ns) {
  return fmt::format("{}m", std::clamp<int64_t>(timeout_ns / kNsPerMs, 1, 99'999'999));
}

}  // namespace

absl::StatusOr<std::unique_ptr<GrpcTransport>> GrpcTransport::Make(const TransportOptions& options,
                                                                   const Signal& signal) {
  Headers fields = {
      {"content-type", "application/grpc"}, {"te", "trailers"}, {"grpc-accept-encoding", "identity,gzip"}};
  if (options.gzip) fields.emplace_back("grpc-encoding", "gzip");
  ASSIGN_OR_RETURN(std::unique_ptr<Http2Post> post, Http2Post::Make(options, std::string(signal.grpc_method), fields));
  return std::unique_ptr<GrpcTransport>(new GrpcTransport(std::move(post), options.gzip));
}

CallResult GrpcTransport::Call(const google::protobuf::Message& request, google::protobuf::Message* response,
                               int64_t timeout_ns) {
  return CallWith([&request](std::string* out) { request.AppendToString(out); }, response, timeout_ns);
}

CallResult GrpcTransport::CallEncoded(EncodedRequest& request, google::protobuf::Message* response,
                                      int64_t timeout_ns) {
  return CallWith([&request](std::string* out) { request.AppendTo(out); }, response, timeout_ns);
}

CallResult GrpcTransport::CallWith(absl::FunctionRef<void(std::string*)> append, google::protobuf::Message* response,
                                   int64_t timeout_ns) {
  std::string frame;
  if (gzip_) {
    std::string bytes;
    append(&bytes);
    frame = compressor_.Compress(bytes, kGrpcPrefixBytes);
  } else {
    frame.resize(kGrpcPrefixBytes);
    append(&frame);
  }
  WriteGrpcPrefix(gzip_, &frame);
  const PostResult result = post_->Send(frame, "grpc-timeout", TimeoutField(timeout_ns), timeout_ns);
  if (!result.error.status.ok() && !DecidesGrpcCall(result.answer)) return result.error;
  CallResult answer = ReadGrpcAnswer(result.answer, response);
  answer.in_doubt &= result.may_have_arrived;
  return answer;
}

}  // namespace tributary::otlp
