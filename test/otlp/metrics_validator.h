#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "schemas/otlp/metrics_service.pb.h"
#include "test/otlp/validator.h"

namespace tributary::otlp {

// Checks the metrics requests of one sender, in the order in which they were sent: every MUST and SHOULD of OTLP
// metrics (1.11) and of OpenTelemetry's metrics data model that a receiver can see, and a few limits of common
// receivers. Also remembers the last data point of each series, because times must grow, and sums must not fall unless
// they begin again. metrics_validator_test.cc breaks each rule. Not thread-safe.
class MetricsValidator {
 public:
  using Request = ::opentelemetry::proto::collector::metrics::v1::ExportMetricsServiceRequest;

  // Returns at most kFindingsMax findings.
  std::vector<Finding> Check(const Request& request);
  // Checks serialized bytes. Bytes that do not parse are a finding too.
  std::vector<Finding> CheckBytes(std::string_view bytes);

 private:
  struct Last {
    uint64_t start = 0, time = 0;
    double value = 0;
  };
  class Pass;

  std::map<std::string, Last> last_;  // key: resource, scope, metric and attributes
};

}  // namespace tributary::otlp
