#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/loop.h"
#include "base/metrics.h"
#include "k8s-collector/watch/api_access.h"
#include "k8s-collector/watch/api_transport.h"

namespace tributary {

// An API server over HTTP/1.1, by libcurl on a Loop. Each request in progress has its own connection, which is kept for
// the next request. Errors of requests, passed to on_end:
//   Unavailable         no connection, or a broken one; a server with a certificate that is not accepted
//   FailedPrecondition  a file of the access cannot be used
//   Cancelled           on_bytes returned false
class HttpTransport : public ApiTransport {
 public:
  // The loop must outlive the transport. The transport must outlive its requests.
  HttpTransport(Loop& loop, ApiAccess access, Metrics& metrics);
  ~HttpTransport() override;

  std::unique_ptr<Request> Get(std::string_view target, std::string_view accept, Callbacks callbacks) override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tributary
