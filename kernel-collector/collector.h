#pragma once

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "base/service.h"
#include "intake/metadata/metadata_feed.h"
#include "intake/recording/recording.h"
#include "kernel-collector/budget/cpu_budget.h"
#include "kernel-collector/collector_core.h"
#include "kernel-collector/metadata/node_metadata.h"
#include "kernel-collector/options.h"
#include "kernel-collector/probes/probes.h"
#include "kernel-collector/processes/worker.h"
#include "kernel-collector/uplink/outlet.h"
#include "kernel-collector/uplink/symbol_server.h"

namespace tributary {

// Connects the probes, the core, the symbol server and the outlet of batches, and runs them on one event loop. All code
// runs on the thread that calls Run, except the workers' jobs, and the sender of OTLP. On SIGUSR1, logs all metrics.
class Collector {
 public:
  // The caller must construct the Collector before it starts other threads (see Service). `parse` parses the options
  // again; it is called on a reload.
  Collector(const CollectorOptions& options, std::function<absl::StatusOr<Options::Outcome>(CollectorOptions*)> parse,
            Metrics& metrics);
  ~Collector();

  // Runs until SIGTERM or SIGINT. Then stops sampling, and waits at most --shutdown-timeout for the reducers to store
  // the captured samples, or for the receiver of OTLP to accept them. On SIGHUP, reads the options again. Returns an
  // error if sampling could not begin; the message is one sentence. It is not an error if no reducer can be reached.
  absl::Status Run();

 private:
  absl::Status Build();
  absl::Status OpenOutlet(const SessionInfo& session);
  void StartTimers();
  absl::Status SetPeriod(int64_t period_ns);
  absl::StatusOr<Reloader::Reloaded> Reload();
  void OnWakeup();
  void Poll();
  void Stop();
  void FinishStop();
  void LogTotals(std::string_view event, uint64_t unacked_samples);
  void ReadVdso();
  std::string NotReady() const;
  // Returns the sink for the core's batches: the outlet's sink. If a recording is configured and can be created,
  // returns the recording, which passes the batches to the outlet.
  BatchSink& OpenRecording(const SessionInfo& session);

  const CollectorOptions options_;
  const std::function<absl::StatusOr<Options::Outcome>(CollectorOptions*)> parse_;
  Metrics& metrics_;
  const uint64_t ring_bytes_;  // size of the sample ring, chosen for the rate at start
  // Members are destroyed from the last to the first, so a member may use the members above it in its destructor.
  Loop loop_;
  Service service_;
  std::unique_ptr<MetricsServer> metrics_server_;  // nullptr if it is switched off or its default port was taken
  std::unique_ptr<Worker> worker_;                 // reads for waiting samples: files, /proc, unwind rows
  std::unique_ptr<Worker> resource_worker_;        // reads from processes, which may block: resource attributes
  std::unique_ptr<Worker> runtime_worker_;         // reads the memory of processes with a language runtime; may block
  std::unique_ptr<Worker> symbol_worker_;          // makes symbol tables, which may take seconds
  std::unique_ptr<Worker> service_worker_;         // calls that may stay unanswered: a cloud's instance service, Docker
  std::unique_ptr<Probes> probes_;
  std::unique_ptr<CpuBudget> budget_;
  std::unique_ptr<intake::MetadataFeed> feed_;
  std::unique_ptr<Outlet> outlet_;                    // sends batches to reducers, or as OTLP
  std::unique_ptr<intake::RecordingSink> recording_;  // between core and outlet, if configured
  std::unique_ptr<NodeMetadata> metadata_;
  std::unique_ptr<CollectorCore> core_;
  std::unique_ptr<SymbolServer> symbols_;
  std::unique_ptr<ReadWatcher> wakeup_;  // for a ring that fills before the poll timer's time
  MonotonicNs woken_at_;                 // when a filling ring last caused a call of Poll
  std::unique_ptr<Timer> poll_timer_, wakeup_timer_, batch_timer_, hotplug_timer_, budget_timer_, summary_timer_;
  std::unique_ptr<SignalWatcher> sigterm_, sigint_, sigusr1_;
  uint32_t rate_hz_;  // the configured rate; the CPU budget may enforce a lower one
  bool sampling_ = false;
  bool stopping_ = false;
  MonotonicNs stop_began_;
};

}  // namespace tributary
