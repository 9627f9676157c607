#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "reducer/export/export_settings.h"
#include "reducer/store/store.h"
#include "reducer/symbolizer/symbol_store.h"

namespace tributary {

class ResourceJoiner;
class RolloutLog;

// Sends data to one receiver: committed samples from the store, and process events, losses and rollouts if the receiver
// takes them; or the values of all metrics, without a cursor (MetricsExport). It works on its own thread, from
// construction until destruction. A cursor per shard marks how far the samples were sent. The store keeps the cursors.
// A cursor moves after each request that was sent. So after a restart, at most the samples of one request are sent
// again, with the same numbers, and no sample is skipped, unless the store has deleted it meanwhile. Such samples are
// counted. Samples that the receiver refuses for good count as sent. The destructor makes a last pass over the samples
// that were committed before the destructor began. It begins no request that the receiver could not answer in time, and
// returns within 5 s, even if samples are unsent. The reducer sends these samples after its next start.
class Exporter {
 public:
  virtual ~Exporter() = default;
};

// What all exporters of a reducer have in common.
struct ExportCommon {
  // Adds metadata, such as pods and services, to the samples. Must outlive the exporter; null: exporters send only the
  // store's data.
  const ResourceJoiner* joiner = nullptr;
  const RolloutLog* rollouts = nullptr;  // must outlive the exporter; null: there are none
  int64_t metadata_wait_ns = 0;          // how long samples wait for the metadata of their container
  int64_t lag_max_ns = 0;  // of samples, if the URL has no parameter `lag_max`; 0: no limit but the store's retention
  int64_t interval_ns = kNsPerSecond;  // between two passes, if the URL has no parameter `interval`
};

// Returns how long samples may wait for the receiver of `url`, or 0: no limit but the store's retention. `common_ns` is
// the value of --export-lag-max. It is not for the console and files: they are as local as the store, so a full disk
// must not lose samples that the store still has.
absl::StatusOr<int64_t> LagMaxOf(const ExportUrl& url, int64_t common_ns);

// Makes an exporter for one value of --export, after ResolveExportUrls has parsed it:
//   otlp://host:port             OTLP profiles over gRPC without TLS (port 4317 by default)
//   otlps://host:port            the same over TLS
//   otlp+http://host:port/path   OTLP profiles over HTTP without TLS (port 4318 and OTLP's path by default)
//   otlp+https://host:port/path  the same over TLS
//   otlp                         the URL that OTEL_EXPORTER_OTLP_* name (export_settings.h)
//                                each of these with ?signal=logs: OTLP logs, also of process events,
//                                losses and rollouts
//   …?signal=metrics             not samples, but OTLP metrics with the values of `metrics` (MetricsExport)
//   console                      text on stdout: samples as the OpenTelemetry Collector's profiles exporters
//                                print them, and a line for each process event, loss and rollout; ?layout=lazybackend
//                                (default: with times and lines) or ?layout=collector (with value types)
//   file:///directory            files with folded stacks, or with OTLP in JSON, of each service or container; no
//   events
// docs/export.md describes the parameters that a URL may have behind a question mark.
//
// InvalidArgument: a header is invalid. Returns the errors of ReadTlsFiles and ReadSecretFile for the files that the
// URL and the variables name, and of FileSender::Open. `store`, `symbols`, `clock` and `metrics` must outlive the
// exporter. Any thread may call MakeExporter. Two exporters must not have the same cursor name.
absl::StatusOr<std::unique_ptr<Exporter>> MakeExporter(const ExportUrl& url, const ExportVariables& variables,
                                                       store::Store& store, SymbolStore& symbols,
                                                       const ExportCommon& common, const Clock& clock,
                                                       Metrics& metrics);

}  // namespace tributary
