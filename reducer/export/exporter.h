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

// Sends the data that the store has committed to the receiver that a URL names, on its own thread, from construction
// until destruction. Its position is one cursor per shard. The cursors are stored with the data and saved after each
// success, so data is sent at least once, also over restarts. The destructor makes a last pass over the data that was
// committed before the destructor began. It returns within 5 s, even if data is unsent; the next run sends that data.
class Exporter {
 public:
  virtual ~Exporter() = default;
};

// The metadata that an exporter adds to the samples.
struct ExportMetadata {
  const ResourceJoiner* joiner = nullptr;  // must outlive the exporter; null: sends only the store's data
  int64_t wait_ns = 0;                     // how long samples of an unknown container are held back
};

// Makes an exporter for one value of --export:
//   otlp://host:port    OTLP profiles over gRPC without TLS (port 4317 by default); ?signal=profiles may be added
//   otlps://host:port   the same over TLS, the server checked against the system's certificate authorities
//   console             text on stdout, as the OpenTelemetry Collector's profiles exporters print it;
//                       ?layout=lazybackend (default: with times and lines) or ?layout=collector (with value types)
// InvalidArgument: not such a URL; the message says what is allowed. Unimplemented: this build has no gRPC.
// `store`, `symbols`, `clock` and `metrics` must outlive the exporter. Any thread may call it.
absl::StatusOr<std::unique_ptr<Exporter>> MakeExporter(std::string_view url, store::Store& store, SymbolStore& symbols,
                                                       const ExportMetadata& metadata, const Clock& clock,
                                                       Metrics& metrics);

}  // namespace tributary
