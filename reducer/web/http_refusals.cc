#include "reducer/web/http_refusals.h"

#include <string>
#include <string_view>

namespace tributary {
namespace {

constexpr std::array<std::string_view, kWebRefusalCount> kNames = {
    "malformed", "too_large",   "slow_request", "slow_upload", "slow_answer",
    "busy",      "connections", "address",      "answers",     "tls",
};

}  // namespace

WebRefusals::WebRefusals(Metrics& metrics) {
  for (size_t i = 0; i < kWebRefusalCount; ++i) {
    counters_[i] = &metrics.AddCounter("tributary_web_refusals_total",
                                       "HTTP requests that the web server refused, and connections that it closed, by "
                                       "reason",
                                       {{"reason", std::string(kNames[i])}});
  }
}

}  // namespace tributary
