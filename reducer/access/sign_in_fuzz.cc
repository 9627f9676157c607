#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/certificates_testing.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/utf8.h"
#include "reducer/access/access_control.h"

namespace tributary {
namespace {

constexpr std::string_view kToken = "token-of-the-fuzz-target";
constexpr std::string_view kProxy = "10.0.0.1";

std::unique_ptr<AccessControl> MakeAccess() {
  static const TestFiles files;
  AccessControl::Options options{.is_loopback = false,
                                 .token_file = files.Write("tokens", std::string(kToken) + " admin\n"),
                                 .proxies = {IpRange::Parse(kProxy).value()},
                                 .proxy_user_header = "X-User"};
  return AccessControl::Create(std::move(options), Clock::Real()).value();
}

}  // namespace
}  // namespace tributary

// The first byte chooses the header; the rest is its value. Only the token signs in, however it is written.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tributary;
  static const std::unique_ptr<AccessControl> access = MakeAccess();
  if (size == 0) return 0;
  const std::string_view value(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 0) {
    const absl::StatusOr<Caller> caller = access->Identify({.peer_address = kProxy, .authorizations = {value}});
    const bool has_token = value.find(kToken) != value.npos || value.size() > kToken.size() * 4 / 3;  // or as base64
#ifdef TRIBUTARY_PLANT_CRASH
    if (caller.ok() && value.front() == 'b') abort();
#endif
    TRIBUTARY_CHECK(!caller.ok() || (has_token && caller->sign_in == SignIn::kToken));
    TRIBUTARY_CHECK(caller.ok() || absl::IsUnauthenticated(caller.status()));
  } else {
    const absl::StatusOr<Caller> caller = access->Identify({.peer_address = kProxy, .proxy_users = {value}});
    TRIBUTARY_CHECK(!caller.ok() ||
                    (caller->name == value && IsUtf8(value) && !value.empty() &&
                     value.size() <= AccessControl::kNameBytesMax && caller->rights == Rights::Of(Right::kRead)));
  }
  return 0;
}
