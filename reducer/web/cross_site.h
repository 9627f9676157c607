#pragma once

#include "reducer/access/access_control.h"
#include "reducer/web/http_message.h"

namespace tributary {

// Returns true if a browser may have sent the request for a page of another site. A browser adds the user's HTTP basic
// password, TLS certificate, network address, or cookie of a proxy to such a request, without the user's knowledge. So
// requests that change something must not be cross-site. `sign_in` is how the caller has signed in.
//
// Browsers say where a request comes from in the headers Sec-Fetch-Site and Origin. Other clients send neither. A
// request that is signed in by a bearer token is never cross-site, because a browser adds no bearer token on its own.
// The Origin must be the Host, or, for requests `from_proxy`, a trusted proxy, a host of X-Forwarded-Host.
bool IsCrossSite(const WebRequest& request, SignIn sign_in, bool from_proxy);

}  // namespace tributary
