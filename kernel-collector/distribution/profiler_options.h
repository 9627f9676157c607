#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/options.h"
#include "kernel-collector/distribution/config.h"
#include "kernel-collector/distribution/destination.h"

namespace tributary {

// The flags of the OpenTelemetry eBPF profiler and of its Collector distribution that are not options of
// kernel-collector under another name: -collection-agent, -disable-tls, -tracers and --feature-gates. It also reads the
// distribution's configuration files, and those of the profiler itself. If -collection-agent or the file's exporters
// say where samples go and our own options do not, it sets our options (destination.h).
class ProfilerOptionTable {
 public:
  // The object, `table` and `environment` must live until Options::Parse has returned.
  void AddTo(Options& table, const Options::Environment& environment);
  // Returns one sentence for each setting, of flags and of the file, whose feature does not exist here. Call it after
  // Options::Parse.
  std::vector<std::string> TakeWarnings();
  // Returns the settings of the exporter in the file that decides where samples go. Call it after Options::Parse.
  const std::optional<ReceiverSettings>& receiver_settings() const { return destination_.settings; }

 private:
  absl::StatusOr<std::optional<std::vector<Options::ForeignValue>>> ReadFile(std::string_view text);
  absl::StatusOr<std::vector<Options::ForeignValue>> Derive();

  const Options* table_ = nullptr;
  const Options::Environment* environment_ = nullptr;
  std::string collection_agent_, tracers_;
  bool disable_tls_ = false;
  std::vector<std::string> feature_gates_;
  DistributionConfig file_;
  Destination destination_;
};

}  // namespace tributary
