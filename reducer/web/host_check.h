#pragma once

#include <string_view>

namespace tributary {

// Whether a server that only this machine can reach may answer a request with this Host header. A page from elsewhere
// whose name was made to resolve to 127.0.0.1 (DNS rebinding) comes with that page's name. `bound_host`: what the
// server was told to listen on.
bool IsLocalHost(std::string_view host_header, std::string_view bound_host);

}  // namespace tributary
