#pragma once

#include <string_view>

namespace tributary {

// Returns true if a server that only this machine can reach may answer a request with this Host header. A foreign page
// with a name that was made to resolve to 127.0.0.1 (DNS rebinding) sends the page's own name. `bound_host`: the
// address on which the server was configured to listen.
bool IsLocalHost(std::string_view host_header, std::string_view bound_host);

}  // namespace tributary
