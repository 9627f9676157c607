#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/options.h"
#include "kernel-collector/distribution/exporter.h"

namespace tributary {

// Where a node sends its samples, as the flags of the OpenTelemetry eBPF profiler and the exporters of its Collector
// distribution say it, in terms of our options.
struct Destination {
  std::vector<Options::ForeignValue> values;  // of intake-encoder, intake-host, tls…, console
  std::optional<ReceiverSettings> settings;   // of an exporter that sends
  std::vector<std::string> warnings;
};

struct DestinationRequest {
  std::string agent;  // the address of -collection-agent; "" = none
  bool agent_is_plain = false;
  std::vector<Exporter> exporters;  // in use
  std::string host_option;          // "--intake-host" or "--intake-port", if one of them is given
  std::string encoder;              // --intake-encoder, if it is given
};

// Our own options have precedence. -collection-agent outranks the exporters. Of these, one sends, and one prints. If
// both are in use, the node sends and prints. An exporter that is not used gives a warning with the reducer's matching
// option, and with the option that decided. `debug` prints if there is nothing else. Returns InvalidArgument if several
// exporters would send or the used one has a problem, with line and column, and if the address of -collection-agent is
// invalid.
absl::StatusOr<Destination> ChooseDestination(const DestinationRequest& request);

}  // namespace tributary
