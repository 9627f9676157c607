#pragma once

#include <string_view>

namespace tributary {

// Returns true if a server that listens only on loopback may answer a request with this Host header. This prevents DNS
// rebinding: a foreign web page, whose name was made to resolve to 127.0.0.1, sends requests with its own name as Host.
// Allowed are localhost, 127.0.0.1, [::1] and `bound_host`, which is the host of the configured listen address, without
// the port.
bool IsLocalHost(std::string_view host_header, std::string_view bound_host);

// Returns true if DNS rebinding cannot cause a request with this Host header, because the host is not a name that
// another site can own: a numeric address, localhost, or `bound_host`.
bool IsFixedHost(std::string_view host_header, std::string_view bound_host);

}  // namespace tributary
