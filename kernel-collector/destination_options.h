#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "base/options.h"
#include "kernel-collector/distribution/exporter.h"
#include "kernel-collector/options.h"

namespace tributary {

// The options that say where samples go, and in which form.
class DestinationOptionTable {
 public:
  // Both objects must live until Options::Parse has returned.
  void AddTo(Options& table, CollectorOptions& options);
  // Fills the reducers or the receiver of `options`, and what belongs to them. `settings`: those of an exporter in the
  // file of --config. Call it when `options` has the credentials. Returns InvalidArgument if options contradict each
  // other.
  absl::Status Take(const Options& table, const Options::Environment& environment,
                    const std::optional<ReceiverSettings>& settings, CollectorOptions& options) const;

 private:
  absl::Status TakeReceiver(const Options& table, const Options::Environment& environment,
                            const std::optional<ReceiverSettings>& settings, CollectorOptions& options) const;

  std::string hosts_, console_, generation_, names_memory_, metrics_interval_;
  int64_t port_ = 0;
};

// Returns a value that changes with these settings, so that SIGHUP can report that a change of them needs a restart.
// They are no options, and may be secret. The log lists its name among those of options: `options=a,config-exporters`.
OptionValue ValueOf(const std::optional<ReceiverSettings>& settings);

}  // namespace tributary
