#pragma once

#include <memory>
#include <string_view>

#include "k8s-collector/watch/api_transport.h"
#include "k8s-collector/watch/exec_plugin.h"
#include "k8s-collector/watch/http_transport.h"

namespace tributary {

// Sends requests with the credentials of an exec plug-in. A request waits until there are credentials. If the API
// server answers 401, this class gets new credentials and sends the request again, once. Error codes that on_end gets,
// in addition to those of HttpTransport:
//   Unauthenticated  there are no credentials, or the API server has refused them. ExecPlugin has logged it
class ExecTransport : public ApiTransport {
 public:
  // Both must outlive the transport.
  ExecTransport(HttpTransport& below, ExecPlugin& plugin) : below_(below), plugin_(plugin) {}
  std::unique_ptr<Request> Get(std::string_view target, std::string_view accept, Callbacks callbacks) override;

 private:
  HttpTransport& below_;
  ExecPlugin& plugin_;
};

}  // namespace tributary
