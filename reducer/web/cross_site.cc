#include "reducer/web/cross_site.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "base/ascii_case.h"
#include "base/trim.h"

namespace tributary {
namespace {

constexpr std::string_view kBearer = "bearer ";

// "https://a.example" and "a.example:443" are the same site.
std::string_view WithoutPort(std::string_view host, std::string_view default_port) {
  if (host.ends_with(default_port)) host.remove_suffix(default_port.size());
  return host;
}

}  // namespace

bool IsCrossSite(const WebRequest& request, SignIn sign_in, bool from_proxy) {
  // If the server has no file of tokens, it ignores the header.
  if (sign_in == SignIn::kToken &&
      EqualsIgnoringCase(std::string_view(request.Header("authorization")).substr(0, kBearer.size()), kBearer)) {
    return false;
  }
  if (HasField(request.headers, "sec-fetch-site")) {
    const std::string site = request.Header("sec-fetch-site");
    if (site != "same-origin" && site != "none") return true;
  }
  if (!HasField(request.headers, "origin")) return false;
  const std::string origin = request.Header("origin");
  const size_t scheme_end = origin.find("://");
  if (scheme_end == std::string::npos) return true;  // such as "null"
  const std::string_view default_port = origin.starts_with("https:") ? ":443" : ":80";
  const std::string_view site = WithoutPort(std::string_view(origin).substr(scheme_end + 3), default_port);
  const auto is_site = [&](std::string_view host) {
    host = Trim(host, kHttpBlanks);
    return !host.empty() && EqualsIgnoringCase(WithoutPort(host, default_port), site);
  };
  if (is_site(request.host)) return false;
  const std::string forwarded = from_proxy ? request.Header("x-forwarded-host") : std::string();
  // A chain of proxies adds one host each. No browser lets a page of another site set this header.
  for (std::string_view rest = forwarded; !rest.empty();) {
    const size_t comma = std::min(rest.find(','), rest.size());
    if (is_site(rest.substr(0, comma))) return false;
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return true;
}

}  // namespace tributary
