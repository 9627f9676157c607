#include "otlp/no_proxy.h"

#include <algorithm>
#include <string_view>

namespace tributary::otlp {

std::string NoProxyHosts(const char* no_proxy, const char* upper_case) {
  const char* variable = no_proxy == nullptr || *no_proxy == 0 ? upper_case : no_proxy;
  std::string_view rest = variable == nullptr ? "" : variable;
  std::string hosts;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find_first_of(", \t"), rest.size());
    const std::string_view host = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (host == "*") return "*";
    if (!host.empty()) hosts.append(host).append(",");
  }
  return hosts + "localhost,127.0.0.1,::1";
}

}  // namespace tributary::otlp
