#pragma once

#include <array>
#include <cstddef>

#include "base/metrics.h"

namespace tributary {

// The reason why the web server refused a request or closed a connection.
enum class WebRefusal {
  kMalformed,    // not HTTP, or ambiguous
  kTooLarge,     // the head of the request is over its limit
  kSlowRequest,  // the head took too long
  kSlowUpload,   // the body stalled, or was under the minimum rate
  kSlowAnswer,   // the client read under the minimum rate
  kBusy,         // the queue of the workers was full
  kConnections,  // too many connections
  kAddress,      // too many connections of one address
  kAnswers,      // too many bytes of answers in memory
  kTls,          // no TLS, an invalid certificate, or too many messages of TLS itself
};
constexpr size_t kWebRefusalCount = 10;

// The counters of these reasons.
class WebRefusals {
 public:
  explicit WebRefusals(Metrics& metrics);
  void Add(WebRefusal refusal) { counters_[static_cast<size_t>(refusal)]->Add(); }

 private:
  std::array<Counter*, kWebRefusalCount> counters_{};
};

}  // namespace tributary
