#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/metrics.h"
#include "reducer/access/access_control.h"
#include "reducer/web/http_message.h"

namespace tributary {

// Returns the counter of HTTP requests that were refused for `reason`.
Counter& RequestRefusals(Metrics& metrics, std::string_view reason);

// Decides whether a request may be handled, before anything else looks at it:
//   1. AccessControl says who the caller is. Status 401 if the path needs a sign-in (routes.h).
//   2. A server that listens only on loopback answers callers without a sign-in only if the Host header is one of its
//      own names (host_check.h). Status 403. A signed-in caller may use any name: a proxy sends the name that its
//      client used.
//   3. The caller has the right that the path needs. Status 403.
//   4. On other servers, a caller without a sign-in may change something only if the Host header is not a name that
//      another site can own (host_check.h). Status 403.
//   5. A request that changes something does not come from a page of another site (cross_site.h). Status 403.
// Any thread may call the methods.
class RequestGuard {
 public:
  struct Outcome {
    Caller caller;
    std::optional<WebResponse> refusal;  // nullopt: the request may be handled
  };

  // `bound_host` is the host of the configured address, without the port.
  RequestGuard(std::shared_ptr<AccessControl> access, std::string bound_host, Metrics& metrics);

  Outcome Check(const WebRequest& request);
  // Decides about later requests with `access`.
  void SetAccess(std::shared_ptr<AccessControl> access);

 private:
  std::shared_ptr<AccessControl> access();

  std::mutex mutex_;
  std::shared_ptr<AccessControl> access_;  // guarded by mutex_
  const std::string bound_host_;
  Counter &sign_in_, &host_, &right_, &cross_site_;
};

// Returns the address in "127.0.0.1:54321" or "[::1]:54321", without brackets and port.
std::string_view AddressOf(std::string_view peer);

}  // namespace tributary
