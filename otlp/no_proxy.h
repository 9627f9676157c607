#pragma once

#include <string>

namespace tributary::otlp {

// Returns the list of hosts that are reached without a proxy, in libcurl's form: those of the variables no_proxy and
// NO_PROXY, and this machine. `no_proxy` and `upper_case` are the values of these variables, or nullptr. As for
// libcurl, the second one counts only if the first one is not set or empty. If an element is "*", no host is reached
// through a proxy, and the result is "*", because libcurl knows "*" only on its own.
std::string NoProxyHosts(const char* no_proxy, const char* upper_case);

}  // namespace tributary::otlp
