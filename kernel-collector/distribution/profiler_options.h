#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/options.h"
#include "kernel-collector/distribution/config.h"

namespace tributary {

// The flags of the OpenTelemetry eBPF profiler and of its Collector distribution that are not options of
// kernel-collector under another name: -collection-agent, -disable-tls, -tracers and --feature-gates. It also reads the
// distribution's configuration files.
class ProfilerOptionTable {
 public:
  // The object must live until Options::Parse has returned.
  void AddTo(Options& table);
  // Returns one sentence for each setting, of flags and of the file, whose feature does not exist here. Call it after
  // Options::Parse. Returns InvalidArgument for a -collection-agent that is no address.
  absl::StatusOr<std::vector<std::string>> TakeWarnings();

 private:
  absl::StatusOr<std::optional<std::vector<Options::ForeignValue>>> ReadFile(const YamlNode& root);

  std::string collection_agent_, tracers_;
  bool disable_tls_ = false;
  std::vector<std::string> feature_gates_;
  std::vector<std::string> file_warnings_;
  std::optional<Interpreters> interpreters_;
};

}  // namespace tributary
