#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/loop.h"
#include "base/metrics.h"
#include "k8s-collector/watch/api_access.h"
#include "k8s-collector/watch/api_transport.h"

namespace tributary {

// An API server over HTTP/1.1, by libcurl on a Loop: one connection a request that is under way, kept for the next.
// Errors of requests, to on_end:
//   Unavailable         no connection, or one that broke; a server whose certificate is not accepted
//   FailedPrecondition  a file of the access cannot be used
//   Cancelled           on_bytes wanted no more
class HttpTransport : public ApiTransport {
 public:
  // The loop outlives the transport, which outlives its requests.
  HttpTransport(Loop& loop, ApiAccess access, Metrics& metrics);
  ~HttpTransport() override;

  std::unique_ptr<Request> Get(std::string_view target, std::string_view accept, Callbacks callbacks) override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tributary
