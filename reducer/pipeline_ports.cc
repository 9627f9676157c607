#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <utility>

#include "base/descriptor_limit.h"
#include "base/log.h"
#include "base/status.h"
#include "reducer/pipeline.h"

// The ports of a Pipeline, and who may use them.

namespace tributary {
namespace {

// Descriptors that collectors do not use: files of the store, HTTP connections, exporters.
constexpr size_t kOwnDescriptors = 1'024;
constexpr size_t kConnectionsMin = 64;
// Before Hello a connection may hold 64 KiB. All such connections together may hold no more than this.
constexpr size_t kWaitingBytesMax = 64u << 20;

// Enough for 3,000 collectors: a smaller limit deserves a warning, a larger one does not.
constexpr size_t kEnoughDescriptors = 4'096;

// Returns the number of connections that a limit on open files allows.
size_t ConnectionsWithin(size_t descriptors, size_t wanted) {
  if (descriptors < kOwnDescriptors + kConnectionsMin) return kConnectionsMin;
  return std::min(wanted, descriptors - kOwnDescriptors);
}

constexpr std::string_view kHttpTlsFlags = "--http-tls-cert, --http-tls-key, --http-tls-ca";

TlsContext::Options HttpTlsOptions(const ReducerOptions& options) {
  return {.side = TlsContext::Side::kServer,
          .cert_path = options.http_tls_cert,
          .key_path = options.http_tls_key,
          .ca_path = options.http_tls_ca,
          .certificates_are_optional = true,
          .port = "http"};
}

// A taken port is the one error that another program causes.
absl::Status ListenStatus(const absl::Status& status, std::string_view flag) {
  if (!absl::IsAlreadyExists(status)) return WithContext(status, flag);
  return Error(status.code(), fmt::format("{}: {}. Another reducer may be running: stop it or choose another port",
                                          flag, Message(status)));
}

}  // namespace

intake::ServerOptions Pipeline::IntakeOptions() {
  limits_.push_back(std::make_unique<intake::Limits>(
      intake::Limits::Options{.node_bytes_per_second = options_.node_bytes_per_second,
                              .node_work_per_second = options_.node_work_per_second,
                              .node_generations_per_second = options_.node_generations_per_second},
      clock_));
  intake::ServerOptions options;
  options.limits = limits_.back().get();
  options.symbol_parts = symbol_parts_.get();
  options.refusals = &refusals_;
  return options;
}

absl::StatusOr<std::shared_ptr<intake::Security>> Pipeline::OpenSecurity(const ReducerOptions& options) const {
  auto security = std::make_shared<intake::Security>();
  security->certificate_names_node = options.certificate_names_node;
  if (!options.tls_cert.empty()) {
    auto tls = TlsContext::Load({.side = TlsContext::Side::kServer,
                                 .cert_path = options.tls_cert,
                                 .key_path = options.tls_key,
                                 .ca_path = options.tls_ca,
                                 .port = "intake"},
                                clock_, metrics_);
    if (!tls.ok()) return WithContext(tls.status(), "--tls-cert, --tls-key, --tls-ca");
    security->tls = *std::move(tls);
  }
  if (!options.intake_token_file.empty()) {
    auto tokens = intake::TokenFile::Load(options.intake_token_file, clock_);
    if (!tokens.ok()) return WithContext(tokens.status(), "--intake-token-file");
    security->tokens = *std::move(tokens);
  }
  return security;
}

absl::StatusOr<std::shared_ptr<AccessControl>> Pipeline::OpenAccess(const ReducerOptions& options) const {
  AccessControl::Options access = options.http_access;
  access.is_loopback = http_is_loopback_;
  if (!access.is_loopback && !access.allow_anonymous && !access.can_sign_in()) {
    return Error(absl::StatusCode::kInvalidArgument,
                 fmt::format("--http-listen {} is not a loopback address, so callers must sign in: set "
                             "--http-token-file, --http-tls-ca or --http-proxy-from, or set --allow-anonymous to let "
                             "everyone in, or listen only on 127.0.0.1",
                             FormatHostPort(options_.http_listen)));
  }
  if (access.is_loopback && !access.proxies.empty() && !access.has_loopback_proxy()) {
    return Error(absl::StatusCode::kInvalidArgument,
                 fmt::format("--http-proxy-from: --http-listen {} is a loopback address, so all requests come from "
                             "this machine, and those of a proxy come from 127.0.0.1 (or ::1): set --http-proxy-from "
                             "127.0.0.1",
                             FormatHostPort(options_.http_listen)));
  }
  absl::StatusOr<std::unique_ptr<AccessControl>> opened = AccessControl::Create(std::move(access), clock_);
  if (!opened.ok()) return WithContext(opened.status(), "--http-token-file");
  return std::shared_ptr<AccessControl>(*std::move(opened));
}

absl::StatusOr<std::shared_ptr<TlsContext>> Pipeline::OpenHttpTls() const {
  if (options_.http_tls_cert.empty()) return std::shared_ptr<TlsContext>();
  absl::StatusOr<std::unique_ptr<TlsContext>> opened = TlsContext::Load(HttpTlsOptions(options_), clock_, metrics_);
  if (!opened.ok()) return WithContext(opened.status(), kHttpTlsFlags);
  return std::shared_ptr<TlsContext>(*std::move(opened));
}

absl::Status Pipeline::ReplaceCredentials(const ReducerOptions& options) {
  ASSIGN_OR_RETURN(std::shared_ptr<intake::Security> security, OpenSecurity(options));
  ASSIGN_OR_RETURN(std::shared_ptr<AccessControl> access, OpenAccess(options));
  if (options.http_tls_cert.empty() != options_.http_tls_cert.empty()) {
    return Error(absl::StatusCode::kFailedPrecondition,
                 "--http-tls-cert: the web server begins or ceases to use TLS only at a restart");
  }
  // The last step that may fail.
  if (!options.http_tls_cert.empty()) {
    RETURN_IF_ERROR(WithContext(web_->ChangeTls(HttpTlsOptions(options)), kHttpTlsFlags));
  }
  std::promise<void> replaced;
  accept_loop_->Post([&] {
    acceptor_->SetSecurity(std::move(security));
    replaced.set_value();
  });
  replaced.get_future().wait();
  web_->SetAccess(std::move(access));
  return absl::OkStatus();
}

absl::Status Pipeline::Listen() {
  limits_.push_back(
      std::make_unique<intake::Limits>(intake::Limits::Options{.memory_bytes_max = kWaitingBytesMax}, clock_));
  intake::ServerOptions options;
  options.host = options_.intake_listen.host;
  options.port = options_.intake_listen.port;
  const size_t descriptors = RaiseDescriptorLimit();
  options.connections_max = ConnectionsWithin(descriptors, options.connections_max);
  options.limits = limits_.back().get();
  ASSIGN_OR_RETURN(options.security, OpenSecurity(options_));
  if (options.security->tokens != nullptr && options.security->tls == nullptr) {
    LogWarning("intake tokens are sent in plain text: use --tls-cert and --tls-key");
  }
  accept_loop_ = std::make_unique<Loop>();
  absl::StatusOr<std::unique_ptr<intake::Acceptor>> acceptor =
      intake::Acceptor::Listen(*accept_loop_, options, clock_, metrics_, [this](intake::PendingSession session) {
        const uint32_t shard = store::ShardOf(session.hello.session.node_id, options_.shards);
        shards_[shard]->Accept(std::move(session));
      });
  if (!acceptor.ok()) return ListenStatus(acceptor.status(), "--intake-listen");
  acceptor_ = *std::move(acceptor);
  acceptor_port_ = acceptor_->port();
  RETURN_IF_ERROR(ListenForHttp());
  // Warns only now: if the reducer cannot start, the error must be its only message.
  WarnOfLowDescriptorLimit(descriptors, kEnoughDescriptors);
  return absl::OkStatus();
}

absl::Status Pipeline::ListenForHttp() {
  absl::StatusOr<ListeningSocket> http = ListenTcp(options_.http_listen.host, options_.http_listen.port);
  if (!http.ok()) return ListenStatus(http.status(), "--http-listen");
  http_listening_ = *std::move(http);
  http_is_loopback_ = http_listening_.is_loopback;
  RETURN_IF_ERROR(OpenAccess(options_).status());
  RETURN_IF_ERROR(OpenHttpTls().status());
  ASSIGN_OR_RETURN(metrics_server_, MetricsServer::Open(*accept_loop_, options_.metrics_listen, metrics_,
                                                        [this] { return NotReady(); }));
  return absl::OkStatus();
}

}  // namespace tributary
