#pragma once

#include <string_view>

namespace tributary {

// Returns true if requests to `host` use no proxy. `list` is the value of the environment variable no_proxy: names,
// addresses and networks ("10.0.0.0/8") with commas or blanks between them. A name also stands for all names below it.
// "*" stands for all hosts. `host` is that of a URL, so an IPv6 address has brackets. The rules are those of libcurl
// 7.86 and later (lib/noproxy.c).
bool IsWithoutProxy(std::string_view host, std::string_view list);

}  // namespace tributary
