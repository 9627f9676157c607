#include "k8s-collector/watch/proxy_url.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/status.h"
#include "k8s-collector/watch/curl_url.h"

namespace tributary {
namespace {

constexpr size_t kUrlBytesMax = 2048;
constexpr std::array<std::string_view, 4> kSchemes = {"http", "https", "socks5", "socks5h"};

}  // namespace

absl::Status CheckProxyUrl(const std::string& url) {
  const absl::Status invalid =
      Error(absl::StatusCode::kInvalidArgument,
            "must be a URL like http://HOST:PORT, with the scheme http, https or socks5 (it is not shown here, because "
            "it may contain a password)");
  const bool is_plain =
      url.size() <= kUrlBytesMax && std::all_of(url.begin(), url.end(), [](char c) { return c > ' ' && c < 0x7f; });
  if (!is_plain) return invalid;
  const CurlUrl parsed(url);
  if (!parsed.valid() || parsed.Part(CURLUPART_HOST).empty()) return invalid;
  const std::string scheme = parsed.Part(CURLUPART_SCHEME);
  return std::find(kSchemes.begin(), kSchemes.end(), scheme) == kSchemes.end() ? invalid : absl::OkStatus();
}

std::string PublicProxyUrl(std::string_view url) {
  const CurlUrl parsed{std::string(url)};
  const std::string port = parsed.Part(CURLUPART_PORT);
  return fmt::format("{}://{}{}{}", parsed.Part(CURLUPART_SCHEME), parsed.Part(CURLUPART_HOST), port.empty() ? "" : ":",
                     port);
}

}  // namespace tributary
