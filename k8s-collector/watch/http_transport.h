#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/loop.h"
#include "base/metrics.h"
#include "k8s-collector/watch/api_access.h"
#include "k8s-collector/watch/api_transport.h"
#include "k8s-collector/watch/exec_credential.h"

namespace tributary {

// Sends requests to an API server over HTTP/1.1, with libcurl on a Loop, directly or through a proxy. Each request in
// progress has a connection of its own. Later requests use the connection again. Error codes that on_end gets:
//   Unavailable         no connection, or a broken one; the server's certificate is not accepted
//   FailedPrecondition  a file of `access` cannot be used
//   Cancelled           on_bytes returned false
class HttpTransport : public ApiTransport {
 public:
  // `loop` must outlive the transport. The transport must outlive its requests.
  HttpTransport(Loop& loop, ApiAccess access, Metrics& metrics);
  ~HttpTransport() override;

  std::unique_ptr<Request> Get(std::string_view target, std::string_view accept, Callbacks callbacks) override;
  // Makes later requests use these credentials instead of those of `access`. For a part that is "", requests use the
  // part of `access`.
  void Use(const ExecCredential& credential);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tributary
