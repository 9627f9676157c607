#include "k8s-collector/options.h"

#include "base/health_check.h"
#include "base/status.h"
#include "intake/credentials/intake_options.h"
#include "k8s-collector/manual.h"
#include "k8s-collector/watch/api_access.h"

namespace tributary {
namespace {

void AddCluster(Options& table, ClusterOptions& options) {
  table.Add({.name = "kubeconfig",
             .help = "file that says where the API server is, and who we are to it; a pod's service account when empty",
             .value_name = "FILE",
             .env_aliases = {"KUBECONFIG"}},
            &options.kubeconfig, "");
  table.Add({.name = "context", .help = "context of the kubeconfig; its current one when empty", .value_name = "NAME"},
            &options.context, "");
  table.Add({.name = "api-server",
             .help = "the API server, instead of the kubeconfig's; without one, of a server that asks for no "
                     "credentials, as kubectl proxy",
             .value_name = "URL",
             .check = [](std::string_view v) { return v.empty() ? absl::OkStatus() : CheckServerUrl(v).status(); }},
            &options.api_server, "");
  table.Add({.name = "cluster-name",
             .help = "k8s.cluster.name of everything here, and the name that reducers know us by; the uid of the "
                     "namespace kube-system is that when empty",
             .value_name = "NAME"},
            &options.cluster_name, "");
  table.Add({.name = "record",
             .help = "directory to write the API server's answers to, for --replay; without credentials, but with "
                     "labels, annotations and specifications",
             .value_name = "DIR"},
            &options.record_dir, "");
  table.Add({.name = "replay",
             .help = "directory with recorded answers, to tell them as if an API server gave them now",
             .value_name = "DIR"},
            &options.replay_dir, "");
  table.Add({.name = "print-entities", .help = "print what reducers would be told, as JSON lines, and tell none"},
            &options.print_entities, false);
}

}  // namespace

absl::StatusOr<Options::Outcome> ParseClusterOptions(int argc, const char* const* argv,
                                                     const Options::Environment& environment, ClusterOptions* options) {
  std::string hosts, metrics_listen;
  int64_t port = 0;
  Options table("k8s-collector", "Tells reducers what the pods, workloads and nodes of a Kubernetes cluster are.");
  table.SetManual(ClusterManual);
  table.Add({.name = "intake-host",
             .help = "host of the reducer, or HOST:PORT; of several, with commas between them, all are told",
             .value_name = "HOST",
             .check = [](std::string_view v) { return intake::ParseReducers(v, 1).status(); }},
            &hosts, "127.0.0.1");
  table.Add({.name = "intake-port", .help = "port of the reducer", .value_name = "PORT"}, &port, 8000, 1, 65'535);
  intake::AddCredentials(table, options->credentials);
  AddCluster(table, *options);
  AddMetricsListen(table, "127.0.0.1:4042", &metrics_listen);
  AddHealthCheck(table, &options->health_check);
  ASSIGN_OR_RETURN(Options::Outcome outcome, table.Parse(argc, argv, environment));
  if (outcome == Options::Outcome::kExit) return outcome;
  options->log = table.log_setup();
  options->values = table.values();
  ASSIGN_OR_RETURN(options->metrics_listen, TakeMetricsListen(table, metrics_listen));
  if (options->health_check) return outcome;
  ASSIGN_OR_RETURN(options->reducers, intake::ParseReducers(hosts, static_cast<uint16_t>(port)));
  RETURN_IF_ERROR(intake::TakeCredentials(options->credentials));
  if (!options->record_dir.empty() && !options->replay_dir.empty()) {
    return Error(absl::StatusCode::kInvalidArgument, "--record and --replay exclude each other");
  }
  return outcome;
}

}  // namespace tributary
