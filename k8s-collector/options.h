#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/log_setup.h"
#include "base/metrics_server.h"
#include "base/options.h"
#include "base/parse.h"
#include "intake/credentials/credentials.h"

namespace tributary {

// The values of k8s-collector's options. The options are defined in options.cc.
struct ClusterOptions {
  std::vector<HostPort> reducers;  // 1 to 8; each of them receives everything
  IntakeCredentialOptions credentials;
  std::string kubeconfig, context;  // kubeconfig "": none; context "": the current one
  std::string api_server;           // "": from the kubeconfig or the pod's environment
  std::string cluster_name;         // "": none
  std::string record_dir, replay_dir;
  bool print_entities = false;
  LogSetup log;
  std::vector<OptionValue> values;
  MetricsListen metrics_listen;
  bool health_check = false;  // ask a running collector for its health instead of running one
};

absl::StatusOr<Options::Outcome> ParseClusterOptions(int argc, const char* const* argv,
                                                     const Options::Environment& environment, ClusterOptions* options);

}  // namespace tributary
