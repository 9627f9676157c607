#include "reducer/web/request_guard.h"

#include <fmt/format.h>

#include <utility>

#include "base/ascii_case.h"
#include "base/log.h"
#include "base/status.h"
#include "reducer/web/cross_site.h"
#include "reducer/web/host_check.h"
#include "reducer/web/routes.h"

namespace tributary {
namespace {

// Headers that proxies add.
constexpr std::string_view kProxyHeaders[] = {"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP", "Via"};

SignInRequest SignInOf(const WebRequest& request, const AccessControl::Options& options) {
  SignInRequest sign_in{.peer_address = AddressOf(request.peer), .certificate_names = request.certificate_names};
  sign_in.certificate_ends_s = request.certificate_ends_s;
  for (const auto& [name, value] : request.headers) {
    for (const std::string_view header : kProxyHeaders) {
      if (EqualsIgnoringCase(name, header)) sign_in.proxy_header = header;
    }
    if (name == "authorization") sign_in.authorizations.push_back(value);
    if (EqualsIgnoringCase(name, options.proxy_user_header)) sign_in.proxy_users.push_back(value);
  }
  return sign_in;
}

WebResponse MustSignIn(const absl::Status& status) {
  WebResponse response = HttpError(401, Message(status));
  // No challenge for HTTP basic authentication: browsers would open a dialog of their own.
  response.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"tributary\"");
  return response;
}

WebResponse WrongHost(const WebRequest& request) {
  return HttpError(403, fmt::format("this server accepts the host names localhost, 127.0.0.1 and [::1], not '{}'; for "
                                    "other host names, set --http-listen to an address that is not loopback, or "
                                    "--http-proxy-from to the address of your proxy",
                                    EscapeForDisplay(std::string_view(request.host).substr(0, 64))));
}

WebResponse MustSignInToChange(const WebRequest& request) {
  return HttpError(403, fmt::format("sign in to change something here by the name '{}': a page of another site could "
                                    "have made this name resolve to this server; without a sign-in, use the numeric "
                                    "address of the server in the URL",
                                    EscapeForDisplay(std::string_view(request.host).substr(0, 64))));
}

}  // namespace

Counter& RequestRefusals(Metrics& metrics, std::string_view reason) {
  return metrics.AddCounter(
      "tributary_query_refusals_total",
      "HTTP requests that were refused, by reason; sign_in: the caller has not signed in, or not correctly; right: the "
      "caller does not have the right; host: a host name that is not allowed; cross_site: a change that a page of "
      "another site asked for; method: neither GET nor HEAD; busy: too many queries or uploads were running.",
      {{"reason", std::string(reason)}});
}

std::string_view AddressOf(std::string_view peer) {
  peer = peer.substr(0, peer.rfind(':'));
  if (peer.starts_with('[') && peer.ends_with(']')) peer = peer.substr(1, peer.size() - 2);
  return peer;
}

RequestGuard::RequestGuard(std::shared_ptr<AccessControl> access, std::string bound_host, Metrics& metrics)
    : access_(std::move(access)),
      bound_host_(std::move(bound_host)),
      sign_in_(RequestRefusals(metrics, "sign_in")),
      host_(RequestRefusals(metrics, "host")),
      right_(RequestRefusals(metrics, "right")),
      cross_site_(RequestRefusals(metrics, "cross_site")) {}

std::shared_ptr<AccessControl> RequestGuard::access() {
  const std::lock_guard lock(mutex_);
  return access_;
}

void RequestGuard::SetAccess(std::shared_ptr<AccessControl> access) {
  const std::lock_guard lock(mutex_);
  access_ = std::move(access);
}

RequestGuard::Outcome RequestGuard::Check(const WebRequest& request) {
  const std::shared_ptr<AccessControl> access = this->access();
  const Needs needs = NeedsOf(request.method, request.path);
  absl::StatusOr<Caller> caller = access->Identify(SignInOf(request, access->options()));
  if (!caller.ok()) {
    if (!needs.sign_in) return {};
    sign_in_.Add();
    return {.refusal = MustSignIn(caller.status())};
  }
  if (access->options().is_loopback && caller->sign_in == SignIn::kNone && !IsLocalHost(request.host, bound_host_)) {
    host_.Add();
    return {.refusal = WrongHost(request)};
  }
  if (needs.right) {
    if (absl::Status status = AccessControl::CheckRight(*caller, *needs.right); !status.ok()) {
      right_.Add();
      return {.refusal = HttpError(403, Message(status))};
    }
  }
  const bool is_change = request.method != "GET" && request.method != "HEAD";
  if (is_change && caller->sign_in == SignIn::kNone && !access->options().is_loopback &&
      !IsFixedHost(request.host, bound_host_)) {
    host_.Add();
    return {.refusal = MustSignInToChange(request)};
  }
  if (is_change && IsCrossSite(request, caller->sign_in, access->IsProxy(AddressOf(request.peer)))) {
    cross_site_.Add();
    return {.refusal = HttpError(403,
                                 "a page of another site must not change anything here; if your proxy changes the Host "
                                 "header, make it send X-Forwarded-Host, too")};
  }
  return {.caller = *std::move(caller)};
}

}  // namespace tributary
