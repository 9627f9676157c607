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

// What an operator can say to a k8s-collector. One table: options.cc.
struct ClusterOptions {
  std::vector<HostPort> reducers;  // 1 to 8: all of them are told
  IntakeCredentialOptions credentials;
  std::string kubeconfig, context;  // "" = none, the current one
  std::string api_server;           // "" = as the kubeconfig or the pod's environment says
  std::string cluster_name;         // "" = none
  std::string record_dir, replay_dir;
  bool print_entities = false;
  LogSetup log;
  std::vector<OptionValue> values;
  MetricsListen metrics_listen;
  bool health_check = false;  // to ask a running collector how it is, instead of being one
};

absl::StatusOr<Options::Outcome> ParseClusterOptions(int argc, const char* const* argv,
                                                     const Options::Environment& environment, ClusterOptions* options);

}  // namespace tributary
