#include "otlp/grpc_transport.h"

#include <google/protobuf/message.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include <chrono>
#include <cstdlib>
#include <mutex>
#include <string>
#include <utility>

#include "base/status.h"
#include "otlp/retry.h"

namespace tributary::otlp {

using Stub = grpc::TemplatedGenericStub<google::protobuf::MessageLite, google::protobuf::MessageLite>;

struct GrpcTransport::Impl {
  std::unique_ptr<Stub> stub;
  std::string method;
  Headers headers;
  bool gzip = true;
  std::mutex mutex;
  bool cancelled = false;                  // guarded by mutex
  grpc::ClientContext* context = nullptr;  // of the current call; guarded by mutex
};

namespace {

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> Credentials(const TransportOptions& options) {
  if (!options.tls) return grpc::InsecureChannelCredentials();
  ASSIGN_OR_RETURN(TlsPem pem, ReadTlsFiles(options.tls_files));
  // gRPC looks for authorities in its own variable and in the usual places of most distributions, but not in
  // SSL_CERT_FILE. Its own variable has precedence over the system's authorities.
  if (options.tls_files.ca.empty() && getenv("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH") != nullptr) pem.ca.clear();
  return grpc::SslCredentials({.pem_root_certs = pem.ca, .pem_private_key = pem.key, .pem_cert_chain = pem.cert});
}

// Makes one call, and waits for its end.
grpc::Status CallAndWait(Stub& stub, const std::string& method, grpc::ClientContext& context,
                         const google::protobuf::Message& request, google::protobuf::Message* response) {
  grpc::CompletionQueue queue;
  grpc::Status status;
  const auto call = stub.PrepareUnaryCall(&context, method, request, &queue);
  call->StartCall();
  call->Finish(response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  return status;
}

}  // namespace

absl::StatusOr<std::unique_ptr<GrpcTransport>> GrpcTransport::Make(const TransportOptions& options,
                                                                   const Signal& signal) {
  ASSIGN_OR_RETURN(const std::shared_ptr<grpc::ChannelCredentials> credentials, Credentials(options));
  grpc::ChannelArguments arguments;
  arguments.SetUserAgentPrefix(UserAgent(options.version));
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 500);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 5000);
  auto impl = std::make_unique<Impl>();
  impl->stub = std::make_unique<Stub>(grpc::CreateCustomChannel(options.target, credentials, arguments));
  impl->method = signal.grpc_method;
  impl->headers = options.headers;
  impl->gzip = options.gzip;
  return std::unique_ptr<GrpcTransport>(new GrpcTransport(std::move(impl)));
}

GrpcTransport::GrpcTransport(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
GrpcTransport::~GrpcTransport() = default;

CallResult GrpcTransport::Call(const google::protobuf::Message& request, google::protobuf::Message* response,
                               int64_t timeout_ns) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::nanoseconds(timeout_ns));
  if (impl_->gzip) context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  for (const auto& [name, value] : impl_->headers) context.AddMetadata(name, value);
  {
    std::lock_guard lock(impl_->mutex);
    if (impl_->cancelled) return CancelledCall();
    impl_->context = &context;
  }
  const grpc::Status status = CallAndWait(*impl_->stub, impl_->method, context, request, response);
  {
    std::lock_guard lock(impl_->mutex);
    impl_->context = nullptr;
  }
  CallResult result;
  if (status.ok()) return result;
  result.status = Error(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  result.retry_after_ns = RetryDelayNs(status.error_details());
  result.may_retry = IsRetryable(result.status.code(), result.retry_after_ns.has_value());
  return result;
}

void GrpcTransport::Cancel() {
  std::lock_guard lock(impl_->mutex);
  impl_->cancelled = true;
  if (impl_->context != nullptr) impl_->context->TryCancel();
}

}  // namespace tributary::otlp
