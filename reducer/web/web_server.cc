#include "reducer/web/web_server.h"

#include <utility>
#include <vector>

#include "base/log.h"
#include "base/status.h"
#include "reducer/web/api.h"
#include "reducer/web/http_server.h"
#include "reducer/web/routes.h"

#if TRIBUTARY_HAS_PAGE
#include "ui/embedded/ui_assets.h"
#endif

namespace tributary {
namespace {

std::vector<PageFile> EmbeddedFiles() {
  std::vector<PageFile> files;
#if TRIBUTARY_HAS_PAGE
  for (const embedded::Asset& asset : embedded::UiAssets()) {
    files.push_back(PageFile{asset.path, asset.content_type, asset.bytes});
  }
#endif
  return files;
}

}  // namespace

struct WebServer::Impl {
  Impl(const Options& options, const WebContext& context) : page(EmbeddedFiles()), api(options, context, page) {}
  ~Impl() {
    api.Stop();
    http.reset();
  }

  const std::vector<PageFile> page;
  Api api;
  std::unique_ptr<HttpServer> http;
};

WebServer::WebServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
WebServer::~WebServer() = default;

absl::StatusOr<std::unique_ptr<WebServer>> WebServer::Start(Options options, const WebContext& context) {
  ASSIGN_OR_RETURN(ListeningSocket listening, ListenTcp(options.host, options.port));
  return StartOn(std::move(listening), std::move(options), context);
}

absl::StatusOr<std::unique_ptr<WebServer>> WebServer::StartOn(ListeningSocket listening, Options options,
                                                              const WebContext& context) {
  options.host = listening.host;
  if (options.access == nullptr) {
    ASSIGN_OR_RETURN(options.access, AccessControl::Create({.is_loopback = listening.is_loopback}, context.clock));
  }
  auto impl = std::make_unique<Impl>(options, context);
  Api& api = impl->api;
  HttpServer::Options http{.limits = {.request_bytes_max = options.request_bytes_max,
                                      .request_timeout_ms = options.request_timeout_ms,
                                      .idle_timeout_ms = options.idle_timeout_ms,
                                      .upload_path = std::string(kUploadPath),
                                      .upload_bytes_max = options.upload_bytes_max + options.request_bytes_max,
                                      .answer_grace_ms = options.answer_grace_ms},
                           .caps = {.connections_max = options.connections_max,
                                    .connections_per_address_max = options.connections_per_address_max,
                                    .answer_bytes_max = options.answer_bytes_max},
                           .workers = options.workers,
                           .reserved_paths = {"/healthz", "/readyz", "/metrics"},
                           .tls = std::move(options.tls)};
  impl->http = HttpServer::StartOn(
      std::move(listening), std::move(http), [&api](const WebRequest& request) { return api.Handle(request); },
      context.metrics);
  return std::unique_ptr<WebServer>(new WebServer(std::move(impl)));
}

uint16_t WebServer::port() const { return impl_->http->port(); }

absl::Status WebServer::ChangeTls(TlsContext::Options options) { return impl_->http->ChangeTls(std::move(options)); }

void WebServer::SetAccess(std::shared_ptr<AccessControl> access) { impl_->api.SetAccess(std::move(access)); }

}  // namespace tributary
