#pragma once

#include <google/protobuf/any.pb.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "base/http_server_testing.h"
#include "otlp/grpc_frame.h"
#include "otlp/grpc_transport.h"
#include "otlp/h2_server_testing.h"
#include "otlp/http_transport.h"
#include "schemas/otlp/profiles_service.pb.h"
#include "schemas/otlp/rpc_status.pb.h"

// A receiver of OTLP that has one fault until Heal, and the answers that make up the faults.

namespace tributary::otlp {

enum class Way { kGrpc, kProtobuf, kJson };
inline constexpr std::array kWays = {Way::kGrpc, Way::kProtobuf, Way::kJson};
inline std::string_view NameOf(Way way) {
  return way == Way::kGrpc ? "gRPC" : way == Way::kProtobuf ? "HTTP/protobuf" : "HTTP/JSON";
}

using GrpcAnswer = h2::TestServer::Answer;
using GrpcHandler = std::function<GrpcAnswer(uint32_t stream)>;

inline const h2::Fields kGrpcHead = {{":status", "200"}, {"content-type", "application/grpc"}};

// Returns an answer with a gRPC status. `more` are further trailers.
inline GrpcHandler GrpcStatus(int code, const h2::Fields& more = {}) {
  return [=](uint32_t stream) {
    h2::Fields fields = {{"grpc-status", std::to_string(code)}, {"grpc-message", "no"}};
    fields.insert(fields.end(), more.begin(), more.end());
    return GrpcAnswer{.bytes = h2::Headers(stream, kGrpcHead, false) + h2::Headers(stream, fields, true)};
  };
}
// Returns the trailer of a google.rpc.RetryInfo.
inline h2::Fields RetryInfo(int64_t seconds) {
  rpc::RetryInfo info;
  info.mutable_retry_delay()->set_seconds(seconds);
  rpc::Status details;
  details.add_details()->set_type_url("type.googleapis.com/google.rpc.RetryInfo");
  details.mutable_details(0)->set_value(info.SerializeAsString());
  return {{"grpc-status-details-bin", absl::Base64Escape(details.SerializeAsString())}};
}
// Returns an answer of a proxy, without a gRPC status.
inline GrpcHandler GrpcHttpStatus(int status) {
  return [=](uint32_t stream) {
    return GrpcAnswer{.bytes = h2::Headers(stream, {{":status", std::to_string(status)}}, true)};
  };
}
inline std::string GrpcMessage(uint32_t stream, const std::string& message) {
  std::string frame(kGrpcPrefixBytes, '\0');
  frame += message;
  WriteGrpcPrefix(/*is_compressed=*/false, &frame);
  return h2::Headers(stream, kGrpcHead, false) + h2::Data(stream, frame) +
         h2::Headers(stream, {{"grpc-status", "0"}}, true);
}

// The responses of all signals have the same fields, with the same numbers.
inline std::string PartialSuccess(int64_t rejected) {
  ::opentelemetry::proto::collector::profiles::v1development::ExportProfilesServiceResponse response;
  response.mutable_partial_success()->set_rejected_profiles(rejected);
  response.mutable_partial_success()->set_error_message("too old");
  return response.SerializeAsString();
}

struct Fault {
  std::string name;
  bool refuses = false;                         // refuses connections
  std::optional<TestHttpServer::Options> http;  // nullopt: the fault does not exist over HTTP
  GrpcHandler grpc;                             // null: not over gRPC
};

// Speaks one way of OTLP. After Heal, it accepts everything.
class FaultReceiver {
 public:
  FaultReceiver(Way way, const Fault& fault, const TestTlsFiles& tls = {}) : way_(way) {
    if (way == Way::kGrpc) {
      grpc_ = std::make_unique<h2::TestServer>(
          [this, broken = fault.grpc](uint32_t stream, int) {
            return healed_ || !broken ? GrpcAnswer{.bytes = GrpcMessage(stream, "")} : broken(stream);
          },
          h2::TestServer::Options{.refuses = fault.refuses, .tls = tls});
    } else {
      TestHttpServer::Options options = fault.http.value_or(Accepting());
      options.refuses = fault.refuses;
      options.tls_cert = tls.cert;
      options.tls_key = tls.key;
      options.tls_client_authority = tls.client_authority;
      http_ = std::make_unique<TestHttpServer>(std::move(options));
    }
    refuses_ = fault.refuses;
  }

  void Heal() {
    healed_ = true;
    if (http_) http_->Change(Accepting());
    if (!std::exchange(refuses_, false)) return;
    if (http_) http_->Listen();
    if (grpc_) grpc_->Listen();
  }
  std::vector<std::string> Bodies() const { return http_ ? http_->Bodies() : grpc_->Bodies(); }
  int connections() const { return http_ ? http_->connections() : grpc_->connections(); }

  // Returns whether a client of TLS that checks no certificate can connect.
  bool ServesTls() const {
    const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in address = TestListener::Loopback(port());
    if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) return false;
    const std::unique_ptr<SSL_CTX, TestTls::Free> context(SSL_CTX_new(TLS_client_method()));
    const TestTls::Connection tls(SSL_new(context.get()));
    return SSL_set_fd(tls.get(), socket.get()) == 1 && SSL_connect(tls.get()) == 1;
  }

  // `options`: what the sender's end needs for TLS. Requests are not compressed.
  std::unique_ptr<Transport> Connect(const Signal& signal, TransportOptions options, const Clock& clock) const {
    options.target = "127.0.0.1:" + std::to_string(port());
    options.gzip = false;
    if (way_ == Way::kGrpc) return *GrpcTransport::Make(options, signal);
    const Encoding encoding = way_ == Way::kJson ? Encoding::kJson : Encoding::kProtobuf;
    return *HttpTransport::Make(
        {.common = std::move(options), .path = std::string(signal.http_path), .encoding = encoding}, clock);
  }

 private:
  uint16_t port() const { return http_ ? http_->port() : grpc_->port(); }
  TestHttpServer::Options Accepting() const {
    if (way_ == Way::kJson) return {.body = "{}", .header = "Content-Type: application/json"};
    return {.body = "", .header = "Content-Type: application/x-protobuf"};
  }

  const Way way_;
  std::atomic<bool> healed_{false};
  bool refuses_ = false;
  std::unique_ptr<TestHttpServer> http_;
  std::unique_ptr<h2::TestServer> grpc_;
};

}  // namespace tributary::otlp
