#include "reducer/access/access_control.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>

#include "base/ascii_case.h"
#include "base/glob.h"
#include "base/log.h"
#include "base/status.h"
#include "base/trim.h"
#include "base/utf8.h"

namespace tributary {
namespace {

constexpr std::string_view kLineForm = "a line must be TOKEN RIGHT[,RIGHT] or TOKEN RIGHT[,RIGHT] NAME";

absl::Status Unauthenticated(std::string_view message) { return Error(absl::StatusCode::kUnauthenticated, message); }

absl::Status CheckRights(std::string_view text) {
  const std::string_view rights = TakeWord(text);
  if (rights.empty()) return Error(absl::StatusCode::kInvalidArgument, kLineForm);
  return Rights::Parse(rights).status();
}

// Returns the password of HTTP basic authentication (RFC 7617), or nullopt if the text is not valid base64 or has no
// colon.
std::optional<std::string> BasicPassword(std::string_view encoded) {
  constexpr size_t kEncodedBytesMax = 8192;
  if (encoded.empty() || encoded.size() > kEncodedBytesMax || encoded.size() % 4 != 0) return std::nullopt;
  std::string decoded(encoded.size() / 4 * 3, '\0');
  const int size =
      EVP_DecodeBlock(reinterpret_cast<unsigned char*>(decoded.data()),
                      reinterpret_cast<const unsigned char*>(encoded.data()), static_cast<int>(encoded.size()));
  if (size < 0) return std::nullopt;
  // EVP_DecodeBlock decodes each '=' as a zero byte.
  const size_t padding = encoded.size() - std::min(encoded.find('='), encoded.size());
  if (padding > 2) return std::nullopt;
  decoded.resize(static_cast<size_t>(size) - padding);
  const size_t colon = decoded.find(':');
  if (colon == std::string::npos) return std::nullopt;
  return decoded.substr(colon + 1);
}

// Returns the token of an Authorization header, or nullopt if the header has another form.
std::optional<std::string> TokenOf(std::string_view authorization) {
  std::string_view rest = Trim(authorization, kHttpBlanks);
  const std::string_view scheme = TakeWord(rest);
  if (EqualsIgnoringCase(scheme, "bearer")) return std::string(rest);
  if (EqualsIgnoringCase(scheme, "basic")) return BasicPassword(rest);
  return std::nullopt;
}

absl::Status ForwardedWithoutSignIn(std::string_view header) {
  return Unauthenticated(fmt::format(
      "the request comes through a proxy (header '{}'), which may have let in anyone: on the reducer, set "
      "--http-proxy-from and --http-proxy-user-header if the proxy signs users in, or set --http-token-file and send a "
      "token, or set --allow-anonymous",
      header));
}

bool IsUserName(std::string_view name) {
  return !name.empty() && name.size() <= AccessControl::kNameBytesMax && IsUtf8(name) &&
         std::none_of(name.begin(), name.end(), [](char c) { return static_cast<uint8_t>(c) < 0x20 || c == 0x7f; });
}

}  // namespace

std::string_view NameOf(SignIn sign_in) {
  switch (sign_in) {
    case SignIn::kNone:
      return "none";
    case SignIn::kToken:
      return "token";
    case SignIn::kCertificate:
      return "certificate";
    case SignIn::kProxy:
      return "proxy";
  }
  return "";
}

absl::StatusOr<std::unique_ptr<AccessControl>> AccessControl::Create(Options options, const Clock& clock) {
  std::unique_ptr<AccessControl> access(new AccessControl(std::move(options), clock));
  if (!access->options_.token_file.empty()) {
    ASSIGN_OR_RETURN(access->tokens_, TokenTable::Load(access->options_.token_file, "HTTP tokens", CheckRights, clock));
  }
  return access;
}

bool AccessControl::Options::has_loopback_proxy() const {
  const IpRange v4 = IpRange::Parse("127.0.0.0/8").value(), v6 = IpRange::Parse("::1").value();
  return std::any_of(proxies.begin(), proxies.end(),
                     [&](const IpRange& range) { return range.Overlaps(v4) || range.Overlaps(v6); });
}

absl::StatusOr<Caller> AccessControl::Identify(const SignInRequest& request) {
  if (!request.authorizations.empty() && !options_.token_file.empty()) return ByToken(request.authorizations);
  if (IsProxy(request.peer_address)) return ByProxy(request.proxy_users);
  if (!request.certificate_names.empty()) {
    if (clock_.Unix().value / kNsPerSecond > request.certificate_ends_s) {
      return Unauthenticated("the TLS client certificate has expired: connect again with a new one");
    }
    return ByName(SignIn::kCertificate, request.certificate_names);
  }
  if (options_.is_loopback && request.proxy_header.empty()) return Caller{.rights = Rights::All()};
  if (options_.is_loopback && !options_.allow_anonymous) return ForwardedWithoutSignIn(request.proxy_header);
  if (!options_.allow_anonymous) return MustSignIn();
  return Caller{.rights = options_.can_sign_in() ? Rights::Of(Right::kRead) : Rights::All()};
}

absl::Status AccessControl::MustSignIn() const {
  std::string ways;
  const auto add = [&](std::string_view way) { ways += fmt::format("{}{}", ways.empty() ? "" : ", or ", way); };
  if (!options_.token_file.empty()) add("send a token in the header 'Authorization: Bearer TOKEN'");
  if (options_.certificates) add("present a TLS client certificate");
  if (!options_.proxies.empty()) add("come through the sign-in proxy");
  if (ways.empty()) return Unauthenticated("this server has no way to sign in, and lets nobody in without it");
  return Unauthenticated(fmt::format("sign in: {}", ways));
}

absl::StatusOr<Caller> AccessControl::ByToken(const std::vector<std::string_view>& authorizations) {
  if (authorizations.size() > 1) return Unauthenticated("the request has several Authorization headers: send one");
  const std::optional<std::string> token = TokenOf(authorizations.front());
  if (!token) {
    return Unauthenticated(
        "the Authorization header must be 'Bearer TOKEN', or 'Basic' with the token as the password");
  }
  Caller caller{.sign_in = SignIn::kToken};
  bool known = false;
  {
    const std::lock_guard lock(mutex_);
    tokens_->ReloadIfChanged();
    tokens_->Find(*token, [&](std::string_view text) {
      known = true;
      const absl::StatusOr<Rights> rights = Rights::Parse(TakeWord(text));
      if (rights.ok()) caller.rights.Add(*rights);
      if (caller.name.empty()) caller.name = text;
    });
  }
  if (!known) return Unauthenticated("the token is not known");
  return caller;
}

absl::StatusOr<Caller> AccessControl::ByProxy(const std::vector<std::string_view>& users) const {
  if (users.empty()) {
    return Unauthenticated(fmt::format("sign in: the proxy's request has no header '{}'", options_.proxy_user_header));
  }
  if (users.size() > 1 || !IsUserName(users.front())) {
    return Unauthenticated(fmt::format("the proxy's header '{}' is not one name of at most {} printable bytes",
                                       options_.proxy_user_header, kNameBytesMax));
  }
  return ByName(SignIn::kProxy, {std::string(users.front())});
}

Caller AccessControl::ByName(SignIn sign_in, const std::vector<std::string>& names) const {
  Caller caller{.sign_in = sign_in, .name = names.front(), .rights = Rights::Of(Right::kRead)};
  for (const UserRights& user : options_.users) {
    const auto match = std::find_if(names.begin(), names.end(),
                                    [&](const std::string& name) { return GlobMatches(user.pattern, name); });
    if (match == names.end()) continue;
    caller.name = *match;
    caller.rights = user.rights;
    break;
  }
  return caller;
}

bool AccessControl::IsProxy(std::string_view address) const {
  return std::any_of(options_.proxies.begin(), options_.proxies.end(),
                     [&](const IpRange& range) { return range.Contains(address); });
}

absl::Status AccessControl::CheckRight(const Caller& caller, Right right) {
  if (caller.rights.Has(right)) return absl::OkStatus();
  return Error(absl::StatusCode::kPermissionDenied,
               fmt::format("this needs the right '{}', which {} does not have", NameOf(right),
                           caller.name.empty() ? "the caller" : fmt::format("'{}'", EscapeForDisplay(caller.name))));
}

absl::StatusOr<AccessControl::UserRights> AccessControl::ParseUserRights(std::string_view text) {
  const size_t equals = text.rfind('=');  // names of certificates may contain '='
  if (equals == std::string_view::npos || equals == 0) {
    return Error(absl::StatusCode::kInvalidArgument,
                 fmt::format("'{}' must be NAME-PATTERN=RIGHT[,RIGHT] or NAME-PATTERN=none",
                             EscapeForDisplay(text.substr(0, 64))));
  }
  std::string pattern(text.substr(0, equals));
  const std::string_view names = text.substr(equals + 1);
  if (names == "none") return UserRights{std::move(pattern), Rights::None()};
  ASSIGN_OR_RETURN(const Rights rights, Rights::Parse(names));
  return UserRights{std::move(pattern), rights};
}

}  // namespace tributary
