#pragma once

#include <cstdlib>
#include <string>

#include "base/clock.h"
#include "base/http_server_testing.h"
#include "otlp/http_transport.h"
#include "otlp/otlp_profiles_sender.h"
#include "schemas/otlp/profiles_service.pb.h"

// For tests: sends small requests to a TestHttpServer.

namespace tributary::otlp {

inline constexpr int64_t kSendNs = 10 * kNsPerSecond;

// Removes the variables of proxies, those of the developer's machine and later those of a test.
class CleanProxyVariables {
 public:
  CleanProxyVariables() { Clean(); }
  ~CleanProxyVariables() { Clean(); }
  CleanProxyVariables(const CleanProxyVariables&) = delete;
  CleanProxyVariables& operator=(const CleanProxyVariables&) = delete;

 private:
  static void Clean() {
    for (const char* name :
         {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"}) {
      unsetenv(name);
    }
  }
};

inline ProfilesRequest Request() {
  ProfilesRequest request;
  request.mutable_dictionary()->add_string_table("");
  request.mutable_dictionary()->add_string_table("name");
  return request;
}

inline HttpTransport::Options OptionsFor(const TestHttpServer& server) {
  return {.common = {.target = "127.0.0.1:" + std::to_string(server.port()), .version = "1.2.3"},
          .path = std::string(kProfilesSignal.http_path)};
}

inline OtlpProfilesSender Sender(const HttpTransport::Options& options) {
  return OtlpProfilesSender(*HttpTransport::Make(options, Clock::Real()));
}

inline SendResult SendTo(const TestHttpServer& server) {
  return Sender(OptionsFor(server)).Send(Request(), {}, kSendNs);
}

}  // namespace tributary::otlp
