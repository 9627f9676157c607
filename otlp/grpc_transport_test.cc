#include "otlp/grpc_transport.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>

#include "base/certificates_testing.h"
#include "base/types.h"
#include "otlp/otlp_profiles_sender.h"
#include "schemas/otlp/profiles_service.grpc.pb.h"
#include "schemas/otlp/rpc_status.pb.h"

namespace tributary::otlp {
namespace {

using ::opentelemetry::proto::collector::profiles::v1development::ExportProfilesServiceResponse;
using ::opentelemetry::proto::collector::profiles::v1development::ProfilesService;

constexpr int64_t kTimeoutNs = 10 * kNsPerSecond;

// A receiver on its own port that gives the configured answer.
class Receiver : public ProfilesService::Service {
 public:
  explicit Receiver(std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials()) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", credentials, &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~Receiver() override { server_->Shutdown(std::chrono::system_clock::now()); }

  grpc::Status Export(grpc::ServerContext* context, const ProfilesRequest* request,
                      ExportProfilesServiceResponse* response) override {
    for (const auto& [key, value] : context->client_metadata()) {
      metadata[std::string(key.data(), key.size())] = std::string(value.data(), value.size());
    }
    received = *request;
    {
      std::lock_guard lock(mutex_);
      called_ = true;
    }
    changed_.notify_all();
    while (hang && !context->IsCancelled()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    *response = answer;
    return status;
  }
  void AwaitCall() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return called_; });
  }
  std::string target() const { return "127.0.0.1:" + std::to_string(port_); }

  std::map<std::string, std::string> metadata;
  ProfilesRequest received;
  ExportProfilesServiceResponse answer;
  grpc::Status status;
  bool hang = false;

 private:
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool called_ = false;  // guarded by mutex_
};

ProfilesRequest Request() {
  ProfilesRequest request;
  request.mutable_dictionary()->add_string_table("");
  return request;
}

OtlpProfilesSender Sender(const TransportOptions& options) {
  return OtlpProfilesSender(*GrpcTransport::Make(options, kProfilesSignal));
}

TEST(GrpcTransport, DeliversARequest) {
  Receiver receiver;
  OtlpProfilesSender sender = Sender({.target = receiver.target(), .version = "1.2.3"});
  SendResult result = sender.Send(Request(), {}, kTimeoutNs);
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(receiver.received.SerializeAsString(), Request().SerializeAsString());
  EXPECT_TRUE(receiver.metadata["user-agent"].starts_with("OTel-OTLP-Exporter-cpp/1.2.3 "))
      << receiver.metadata["user-agent"];
}

TEST(GrpcTransport, TrustsTheAuthoritiesFromTheEnvironment) {
  unsetenv("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH");  // it would have precedence
  const TestAuthority authority("test");
  const PemPair server = authority.Issue({.common_name = "localhost", .alternatives = "DNS:localhost,IP:127.0.0.1"});
  Receiver receiver(grpc::SslServerCredentials([&] {
    grpc::SslServerCredentialsOptions options;
    options.pem_key_cert_pairs.push_back({server.key, server.cert});
    return options;
  }()));
  OtlpProfilesSender stranger = Sender({.target = receiver.target(), .tls = true});
  EXPECT_FALSE(stranger.Send(Request(), {}, kTimeoutNs).status.ok());
  const TestFiles files;
  setenv("SSL_CERT_FILE", files.Write("ca.pem", authority.pem()).c_str(), 1);
  OtlpProfilesSender sender = Sender({.target = receiver.target(), .tls = true});
  const SendResult result = sender.Send(Request(), {}, kTimeoutNs);
  unsetenv("SSL_CERT_FILE");
  EXPECT_TRUE(result.status.ok()) << result.status;
}

TEST(GrpcTransport, PresentsItsCertificateToAReceiverOfAnAuthorityOfItsOwn) {
  const TestAuthority authority("test");
  const PemPair server = authority.Issue({.common_name = "localhost", .alternatives = "DNS:localhost,IP:127.0.0.1"});
  const PemPair client = authority.Issue({.common_name = "reducer"});
  grpc::SslServerCredentialsOptions options(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = authority.pem();
  options.pem_key_cert_pairs.push_back({server.key, server.cert});
  Receiver receiver(grpc::SslServerCredentials(options));
  const TestFiles files;
  TlsFiles paths{.ca = files.Write("ca.pem", authority.pem())};
  OtlpProfilesSender stranger = Sender({.target = receiver.target(), .tls = true, .tls_files = paths});
  EXPECT_FALSE(stranger.Send(Request(), {}, kTimeoutNs).status.ok());
  paths.cert = files.Write("client.pem", client.cert);
  paths.key = files.Write("client.key", client.key);
  OtlpProfilesSender sender = Sender({.target = receiver.target(), .tls = true, .tls_files = paths});
  const SendResult result = sender.Send(Request(), {}, kTimeoutNs);
  EXPECT_TRUE(result.status.ok()) << result.status;
}

TEST(GrpcTransport, RefusesUnusableTlsFiles) {
  const TestFiles files;
  const std::string text = files.Write("text.pem", "no PEM");
  for (const TlsFiles& paths : {TlsFiles{.ca = files.Path("missing")}, TlsFiles{.ca = text}, TlsFiles{.cert = text}}) {
    EXPECT_FALSE(GrpcTransport::Make({.target = "h:1", .tls = true, .tls_files = paths}, kProfilesSignal).ok());
  }
}

TEST(GrpcTransport, SendsHeaders) {
  Receiver receiver;
  OtlpProfilesSender sender =
      Sender({.target = receiver.target(), .headers = {{"authorization", "Bearer t"}}, .gzip = false});
  EXPECT_TRUE(sender.Send(Request(), {}, kTimeoutNs).status.ok());
  EXPECT_EQ(receiver.metadata["authorization"], "Bearer t");
}

TEST(GrpcTransport, ReportsPartialSuccess) {
  Receiver receiver;
  receiver.answer.mutable_partial_success()->set_rejected_profiles(3);
  receiver.answer.mutable_partial_success()->set_error_message("too old");
  OtlpProfilesSender sender = Sender({.target = receiver.target()});
  SendResult result = sender.Send(Request(), {}, kTimeoutNs);
  EXPECT_TRUE(result.status.ok());
  EXPECT_EQ(result.rejected_items, 3);
  EXPECT_EQ(result.message, "too old");
}

TEST(GrpcTransport, ReportsRetryableFailuresAndTheirDelay) {
  Receiver receiver;
  OtlpProfilesSender sender = Sender({.target = receiver.target()});
  receiver.status = grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "no");
  SendResult refused = sender.Send(Request(), {}, kTimeoutNs);
  EXPECT_EQ(refused.status, absl::InvalidArgumentError("no"));
  EXPECT_FALSE(refused.may_retry);

  receiver.status = grpc::Status(grpc::StatusCode::UNAVAILABLE, "later");
  EXPECT_TRUE(sender.Send(Request(), {}, kTimeoutNs).may_retry);

  receiver.status = grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "too large");
  EXPECT_FALSE(sender.Send(Request(), {}, kTimeoutNs).may_retry);

  rpc::RetryInfo info;
  info.mutable_retry_delay()->set_seconds(2);
  rpc::Status details;
  details.add_details()->set_type_url("type.googleapis.com/google.rpc.RetryInfo");
  details.mutable_details(0)->set_value(info.SerializeAsString());
  receiver.status = grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "busy", details.SerializeAsString());
  SendResult throttled = sender.Send(Request(), {}, kTimeoutNs);
  EXPECT_TRUE(throttled.may_retry);
  EXPECT_EQ(throttled.retry_after_ns, 2 * kNsPerSecond);
}

TEST(GrpcTransport, MissingReceiverMayBeRetried) {
  std::string target;
  {
    Receiver gone;
    target = gone.target();
  }
  OtlpProfilesSender sender = Sender({.target = target});
  SendResult result = sender.Send(Request(), {}, kTimeoutNs);
  EXPECT_EQ(result.status.code(), absl::StatusCode::kUnavailable) << result.status;
  EXPECT_TRUE(result.may_retry);
}

TEST(GrpcTransport, GivesUpAtItsDeadline) {
  Receiver receiver;
  receiver.hang = true;
  OtlpProfilesSender sender = Sender({.target = receiver.target()});
  SendResult result = sender.Send(Request(), {}, 50 * kNsPerMs);
  EXPECT_EQ(result.status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(result.may_retry);
}

TEST(GrpcTransport, CancelEndsTheCurrentCallAndLaterOnes) {
  Receiver receiver;
  receiver.hang = true;
  OtlpProfilesSender sender = Sender({.target = receiver.target()});
  std::thread stopper([&] {
    receiver.AwaitCall();
    sender.Cancel();
  });
  EXPECT_EQ(sender.Send(Request(), {}, 600 * kNsPerSecond).status.code(), absl::StatusCode::kCancelled);
  stopper.join();
  SendResult later = sender.Send(Request(), {}, kTimeoutNs);
  EXPECT_EQ(later.status.code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(later.may_retry);
}

}  // namespace
}  // namespace tributary::otlp
