#pragma once

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "reducer/store/store.h"
#include "reducer/symbolizer/symbol_store.h"

namespace tributary {

class ResourceJoiner;

// Sends what the store has committed to somewhere else, on a thread of its own, from construction until destruction.
// Its place is a cursor per shard kept with the data, saved after each success: at least once over restarts. The
// destructor makes a last pass over what was committed before it began and returns within 5 s, sent or not; what was
// not sent is sent by the next run.
class Exporter {
 public:
  virtual ~Exporter() = default;
};

// One exporter for one value of --export:
//   otlp://host:port    OTLP profiles over gRPC in the clear (port 4317 by default); ?signal=profiles may be added
//   otlps://host:port   the same over TLS, the server checked against the system's certificate authorities
//   console             text on stdout, as the OpenTelemetry Collector's profiles exporters print it;
//                       ?layout=lazybackend (default: with times and lines) or ?layout=collector (with value types)
// InvalidArgument: not such a URL, the message says what would be. Unimplemented: this build has no gRPC.
// `store`, `symbols`, `clock` and `metrics` outlive the exporter. Any thread.
struct ExportMetadata {
  const ResourceJoiner* joiner = nullptr;  // outlives the exporter; null: only what the store knows is told
  int64_t wait_ns = 0;                     // how long samples of a container that is not known are held
};
absl::StatusOr<std::unique_ptr<Exporter>> MakeExporter(std::string_view url, store::Store& store, SymbolStore& symbols,
                                                       const ExportMetadata& metadata, const Clock& clock,
                                                       Metrics& metrics);

}  // namespace tributary
