#include "otlp/grpc_transport.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <cstdlib>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "base/certificates_testing.h"
#include "base/status.h"
#include "base/types.h"
#include "otlp/otlp_profiles_sender.h"
#include "otlp/relay_testing.h"
#include "schemas/otlp/profiles_service.grpc.pb.h"
#include "schemas/otlp/rpc_status.pb.h"

namespace tributary::otlp {
namespace {

using ::opentelemetry::proto::collector::profiles::v1development::ExportProfilesServiceResponse;
using ::opentelemetry::proto::collector::profiles::v1development::ProfilesService;
using ::testing::HasSubstr;

constexpr int64_t kTimeoutNs = 10 * kNsPerSecond;

// A receiver with a server of gRPC's own library, on its own port, that gives the configured answer.
class Receiver : public ProfilesService::Service {
 public:
  explicit Receiver(std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials())
      : credentials_(std::move(credentials)) {
    Start();
  }
  ~Receiver() override { Stop(); }

  // Listens on the same port again if it has listened before.
  void Start() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(target(), credentials_, &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  void Stop() {
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
  }

  grpc::Status Export(grpc::ServerContext* context, const ProfilesRequest* request,
                      ExportProfilesServiceResponse* response) override {
    if (compresses) context->set_compression_algorithm(GRPC_COMPRESS_GZIP);
    {
      std::lock_guard lock(mutex_);
      for (const auto& [key, value] : context->client_metadata()) {
        metadata[std::string(key.data(), key.size())] = std::string(value.data(), value.size());
      }
      received = *request;
      deadline = context->deadline();
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
  uint16_t port() const { return static_cast<uint16_t>(port_); }
  std::string target() const { return "127.0.0.1:" + std::to_string(port_); }

  std::map<std::string, std::string> metadata;
  ProfilesRequest received;
  std::chrono::system_clock::time_point deadline;
  ExportProfilesServiceResponse answer;
  grpc::Status status;
  bool hang = false;
  bool compresses = false;

 private:
  const std::shared_ptr<grpc::ServerCredentials> credentials_;
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
  EXPECT_EQ(receiver.metadata["user-agent"], "OTel-OTLP-Exporter-cpp/1.2.3");
}

TEST(GrpcTransport, SendsItsDeadline) {
  Receiver receiver;
  OtlpProfilesSender sender = Sender({.target = receiver.target()});
  const auto before = std::chrono::system_clock::now();
  EXPECT_TRUE(sender.Send(Request(), {}, 500 * kNsPerSecond).status.ok());
  EXPECT_GT(receiver.deadline, before + std::chrono::seconds(400));
  EXPECT_LT(receiver.deadline, std::chrono::system_clock::now() + std::chrono::seconds(501));
}

// Returns a request of about this size, which hardly gets smaller in gzip.
ProfilesRequest LargeRequest(size_t bytes) {
  ProfilesRequest request = Request();
  std::mt19937_64 random(1);
  std::string text(bytes, '\0');
  for (char& c : text) c = static_cast<char>('!' + random() % 90);
  request.mutable_dictionary()->add_string_table(text);
  return request;
}

TEST(GrpcTransport, DeliversALargeRequestWithAndWithoutGzip) {
  Receiver receiver;
  const ProfilesRequest request = LargeRequest(4'000'000);
  for (const bool gzip : {true, false}) {
    OtlpProfilesSender sender = Sender({.target = receiver.target(), .gzip = gzip});
    for (int i = 0; i < 2; ++i) {
      const SendResult result = sender.Send(request, {}, kTimeoutNs);
      EXPECT_TRUE(result.status.ok()) << result.status;
      EXPECT_EQ(receiver.received.ByteSizeLong(), request.ByteSizeLong());
    }
  }
}

// gRPC's servers refuse messages of more than 4 MiB, and do not read all of such a message.
TEST(GrpcTransport, ReportsThatARequestIsTooLarge) {
  Receiver receiver;
  for (const bool gzip : {true, false}) {
    OtlpProfilesSender sender = Sender({.target = receiver.target(), .gzip = gzip});
    const SendResult result = sender.Send(LargeRequest(12'000'000), {}, kTimeoutNs);
    EXPECT_EQ(result.status.code(), absl::StatusCode::kResourceExhausted) << result.status;
    EXPECT_FALSE(result.may_retry);
    EXPECT_TRUE(sender.Send(Request(), {}, kTimeoutNs).status.ok());
  }
}

TEST(GrpcTransport, ReadsACompressedAnswer) {
  Receiver receiver;
  receiver.compresses = true;
  receiver.answer.mutable_partial_success()->set_error_message(std::string(1000, 'x'));
  OtlpProfilesSender sender = Sender({.target = receiver.target()});
  SendResult result = sender.Send(Request(), {}, kTimeoutNs);
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.message, std::string(1000, 'x'));
  receiver.answer.mutable_partial_success()->set_error_message(std::string(1u << 20, 'x'));
  result = sender.Send(Request(), {}, kTimeoutNs);
  EXPECT_EQ(result.status.code(), absl::StatusCode::kInternal) << result.status;
  EXPECT_THAT(Message(result.status), HasSubstr("too long"));
}

TEST(GrpcTransport, DeliversToARestartedReceiver) {
  Receiver receiver;
  OtlpProfilesSender sender = Sender({.target = receiver.target()});
  EXPECT_TRUE(sender.Send(Request(), {}, kTimeoutNs).status.ok());
  receiver.Stop();
  const SendResult lost = sender.Send(Request(), {}, kTimeoutNs);
  EXPECT_EQ(lost.status.code(), absl::StatusCode::kUnavailable) << lost.status;
  EXPECT_TRUE(lost.may_retry);
  receiver.Start();
  const SendResult result = sender.Send(Request(), {}, kTimeoutNs);
  EXPECT_TRUE(result.status.ok()) << result.status;
}

// A receiver with TLS, and an authority that signs its certificate.
class GrpcTransportTls : public ::testing::Test {
 protected:
  std::shared_ptr<grpc::ServerCredentials> Credentials() const {
    const PemPair pair = authority_.Issue({.common_name = "localhost", .alternatives = "DNS:localhost,IP:127.0.0.1"});
    grpc::SslServerCredentialsOptions options;
    options.pem_key_cert_pairs.push_back({pair.key, pair.cert});
    return grpc::SslServerCredentials(options);
  }
  OtlpProfilesSender SenderWith(const TlsFiles& files) const {
    return Sender({.target = receiver_.target(), .tls = true, .tls_files = files});
  }

  const TestAuthority authority_{"test"};
  const TestFiles files_;
  const std::string ca_ = files_.Write("ca.pem", authority_.pem());
  Receiver receiver_{Credentials()};
};

TEST_F(GrpcTransportTls, TrustsTheAuthoritiesFromTheEnvironment) {
  EXPECT_FALSE(SenderWith({}).Send(Request(), {}, kTimeoutNs).status.ok());
  setenv("SSL_CERT_FILE", ca_.c_str(), 1);
  const SendResult result = SenderWith({}).Send(Request(), {}, kTimeoutNs);
  unsetenv("SSL_CERT_FILE");
  EXPECT_TRUE(result.status.ok()) << result.status;
}

TEST_F(GrpcTransportTls, ConnectsAgainIfALoadBalancerForgotTheConnection) {
  TestRelay relay(receiver_.port());
  OtlpProfilesSender sender = Sender({.target = relay.target(), .tls = true, .tls_files = {.ca = ca_}});
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(sender.Send(Request(), {}, kTimeoutNs).status.ok());
  EXPECT_EQ(relay.connections(), 1u);
  relay.Forget();
  const SendResult lost = sender.Send(Request(), {}, 50 * kNsPerMs);
  EXPECT_EQ(lost.status.code(), absl::StatusCode::kDeadlineExceeded) << lost.status;
  EXPECT_TRUE(lost.may_retry);
  const SendResult again = sender.Send(Request(), {}, kTimeoutNs);
  EXPECT_TRUE(again.status.ok()) << again.status;
  EXPECT_EQ(relay.connections(), 2u);
}

// The receiver announces its end on the open connection (GOAWAY), which the next request must not use.
TEST_F(GrpcTransportTls, DeliversToARestartedReceiver) {
  OtlpProfilesSender sender = SenderWith({.ca = ca_});
  for (int i = 0; i < 3; ++i) {
    const SendResult result = sender.Send(Request(), {}, kTimeoutNs);
    EXPECT_TRUE(result.status.ok()) << result.status;
    receiver_.Stop();
    receiver_.Start();
  }
}

TEST_F(GrpcTransportTls, ReadsTheFilesAgainForANewConnection) {
  OtlpProfilesSender sender = SenderWith({.ca = ca_});
  EXPECT_TRUE(sender.Send(Request(), {}, kTimeoutNs).status.ok());
  files_.Write("ca.pem", TestAuthority("other").pem());
  receiver_.Stop();
  receiver_.Start();
  EXPECT_FALSE(sender.Send(Request(), {}, kTimeoutNs).status.ok());
  files_.Write("ca.pem", authority_.pem());
  EXPECT_TRUE(sender.Send(Request(), {}, kTimeoutNs).status.ok());
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
