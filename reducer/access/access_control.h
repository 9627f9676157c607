#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/token_table.h"
#include "reducer/access/ip_range.h"
#include "reducer/access/rights.h"

namespace tributary {

// How a caller has signed in.
enum class SignIn {
  kNone,         // not at all: the server is only for this machine, or lets everyone in
  kToken,        // a bearer token, or the password of HTTP basic authentication
  kCertificate,  // a TLS client certificate
  kProxy,        // a trusted proxy names the user
};
// "none", "token", "certificate" or "proxy".
std::string_view NameOf(SignIn sign_in);

struct Caller {
  SignIn sign_in = SignIn::kNone;
  std::string name;  // of the token, of the certificate, or of the proxy's user; may be ""
  Rights rights = Rights::None();
};

// The parts of an HTTP request that say who sends it.
struct SignInRequest {
  std::string_view peer_address;                 // without a port
  std::vector<std::string_view> authorizations;  // values of all Authorization headers
  std::vector<std::string_view> proxy_users;     // values of all headers with the name `proxy_user_header`
  std::vector<std::string> certificate_names;    // of the peer's verified certificate; empty: it has presented none
  int64_t certificate_ends_s = 0;                // unix time: the certificate is not valid after it
  // A header that only proxies send, such as X-Forwarded-For. "": the request has none.
  std::string_view proxy_header;
};

// Decides who a caller of the HTTP server is, and what the caller may do. Any thread may call the methods.
//
// The first of these that applies decides:
//   1. An Authorization header, if there is a file of tokens. A wrong token is an error, and nothing else is tried.
//   2. The peer address is one of `proxies`. The header `proxy_user_header` must then name the user.
//   3. The peer has presented a certificate. A certificate that has expired since then is an error.
//   4. The server listens only on loopback: the caller has all rights. But a request with a header of a proxy is an
//      error, unless `allow_anonymous` is set: the proxy may have let in a caller from anywhere.
//   5. `allow_anonymous`. The caller has all rights. If there is another way to sign in, the caller may only read.
class AccessControl {
 public:
  // Users of certificates and proxies whose name matches `pattern` have these rights. The first match counts.
  struct UserRights {
    std::string pattern;  // with * and ?
    Rights rights = Rights::None();
  };
  struct Options {
    bool is_loopback = true;  // the server listens only on a loopback address
    bool allow_anonymous = false;
    std::string token_file;  // "": no tokens; lines: TOKEN RIGHT[,RIGHT] [NAME]
    std::vector<IpRange> proxies;
    std::string proxy_user_header;
    bool certificates = false;      // the server verifies client certificates
    std::vector<UserRights> users;  // users that match none may read

    // Returns true if one of `proxies` may be a loopback address.
    bool has_loopback_proxy() const;
    // Returns true if there is a way to sign in.
    bool can_sign_in() const { return !token_file.empty() || !proxies.empty() || certificates; }
  };
  static constexpr size_t kNameBytesMax = 256;  // of a proxy's user

  // Returns the errors of TokenTable::Load. `clock` must outlive the object.
  static absl::StatusOr<std::unique_ptr<AccessControl>> Create(Options options, const Clock& clock);

  // Unauthenticated: the caller must sign in. The message says how.
  absl::StatusOr<Caller> Identify(const SignInRequest& request);
  // PermissionDenied: the caller does not have the right. The message names the right.
  static absl::Status CheckRight(const Caller& caller, Right right);

  // Parses NAME-PATTERN=RIGHT[,RIGHT], or NAME-PATTERN=none.
  static absl::StatusOr<UserRights> ParseUserRights(std::string_view text);

  const Options& options() const { return options_; }
  // Returns true if requests from this numeric address come from a trusted proxy.
  bool IsProxy(std::string_view address) const;

 private:
  AccessControl(Options options, const Clock& clock) : options_(std::move(options)), clock_(clock) {}
  absl::StatusOr<Caller> ByToken(const std::vector<std::string_view>& authorizations);
  absl::StatusOr<Caller> ByProxy(const std::vector<std::string_view>& users) const;
  Caller ByName(SignIn sign_in, const std::vector<std::string>& names) const;
  absl::Status MustSignIn() const;

  const Options options_;
  const Clock& clock_;
  std::mutex mutex_;
  std::unique_ptr<TokenTable> tokens_;  // guarded by mutex_; nullptr: no tokens
};

}  // namespace tributary
