#include "otlp/grpc_sender.h"

#include <fcntl.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdlib>
#include <mutex>
#include <string>

#include "base/fd.h"
#include "base/log.h"
#include "base/status.h"
#include "base/system_ca.h"
#include "base/whole_file.h"
#include "otlp/retry.h"
#include "schemas/otlp/profiles_service.grpc.pb.h"

namespace tributary::otlp {

using ::opentelemetry::proto::collector::profiles::v1development::ExportProfilesServiceResponse;
using ::opentelemetry::proto::collector::profiles::v1development::ProfilesService;

constexpr size_t kAuthoritiesBytesMax = 16u << 20;

struct GrpcSender::Impl {
  std::unique_ptr<ProfilesService::Stub> stub;
  std::mutex mutex;
  bool cancelled = false;                  // guarded by mutex
  grpc::ClientContext* context = nullptr;  // of the current call; guarded by mutex
};

namespace {

// Returns the system's authorities as PEM. If "", gRPC looks for them itself. gRPC knows its own variable, which has
// precedence, and the usual places of most distributions, but not SSL_CERT_FILE.
std::string SystemAuthorities() {
  const std::string path = SystemCaFile();
  if (path.empty() || getenv("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH") != nullptr) return "";
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  absl::StatusOr<std::string> pem = ReadWholeFile(file.get(), kAuthoritiesBytesMax, path);
  if (!pem.ok()) {
    LogWarning("cannot read the certificate authorities for --export cause=\"{}\"", Message(pem.status()));
    return "";
  }
  return *std::move(pem);
}

}  // namespace

GrpcSender::GrpcSender(const Options& options) : impl_(std::make_unique<Impl>()) {
  grpc::ChannelArguments arguments;
  arguments.SetUserAgentPrefix("OTel-OTLP-Exporter-cpp/" + options.version);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 500);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 5000);
  std::shared_ptr<grpc::ChannelCredentials> credentials =
      options.tls ? grpc::SslCredentials({.pem_root_certs = SystemAuthorities()}) : grpc::InsecureChannelCredentials();
  impl_->stub = ProfilesService::NewStub(grpc::CreateCustomChannel(options.target, credentials, arguments));
}

GrpcSender::~GrpcSender() = default;

SendResult GrpcSender::Send(const ProfilesRequest& request, int64_t timeout_ns) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::nanoseconds(timeout_ns));
  context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  {
    std::lock_guard lock(impl_->mutex);
    if (impl_->cancelled) return SendResult{.status = absl::CancelledError("export is stopping"), .may_retry = true};
    impl_->context = &context;
  }
  ExportProfilesServiceResponse response;
  grpc::Status status = impl_->stub->Export(&context, request, &response);
  {
    std::lock_guard lock(impl_->mutex);
    impl_->context = nullptr;
  }
  SendResult result;
  if (status.ok()) {
    result.rejected_profiles = response.partial_success().rejected_profiles();
    result.message = response.partial_success().error_message();
    return result;
  }
  result.status = Error(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  result.retry_after_ns = RetryDelayNs(status.error_details());
  result.may_retry = IsRetryable(result.status.code(), result.retry_after_ns.has_value());
  return result;
}

void GrpcSender::Cancel() {
  std::lock_guard lock(impl_->mutex);
  impl_->cancelled = true;
  if (impl_->context != nullptr) impl_->context->TryCancel();
}

}  // namespace tributary::otlp
