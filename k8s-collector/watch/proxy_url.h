#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

// The proxy between k8s-collector and an API server: a kubeconfig's proxy-url. The URL may contain a password, so no
// message and no log line contains the URL itself.

namespace tributary {

// Returns OK for a URL with a host and one of the schemes http, https, socks5 and socks5h. Returns InvalidArgument for
// other texts.
absl::Status CheckProxyUrl(const std::string& url);

// Returns the URL without user name, password and path, for logs. `url` must have passed CheckProxyUrl.
std::string PublicProxyUrl(std::string_view url);

}  // namespace tributary
