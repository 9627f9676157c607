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
             .help = "file with the API server's address and credentials, or several files with colons between them; "
                     "its exec plug-in is run, if it has one; if empty, the pod's service account is used",
             .value_name = "FILE",
             .env_aliases = {"KUBECONFIG"}},
            &options.kubeconfig, "");
  table.Add({.name = "context",
             .help = "context of the kubeconfig; if empty, the kubeconfig's current-context",
             .value_name = "NAME"},
            &options.context, "");
  table.Add({.name = "api-server",
             .help = "URL of the API server; replaces the server in the kubeconfig; without --kubeconfig, requests "
                     "have no credentials, which is enough for kubectl proxy",
             .value_name = "URL",
             .check = [](std::string_view v) { return v.empty() ? absl::OkStatus() : CheckServerUrl(v).status(); }},
            &options.api_server, "");
  table.Add({.name = "cluster-name",
             .help = "name of the cluster: the attribute k8s.cluster.name of its pods and nodes; reducers show "
                     "k8s-collector as cluster/NAME; if empty, they show the uid of the namespace kube-system instead "
                     "of NAME, or else the API server's URL",
             .value_name = "NAME"},
            &options.cluster_name, "");
  table.Add({.name = "record",
             .help = "directory to which k8s-collector writes the API server's answers, for --replay; the answers "
                     "contain whole pod specifications, with literal values of environment variables; credentials of "
                     "k8s-collector are not written",
             .value_name = "DIR"},
            &options.record_dir, "");
  table.Add({.name = "replay",
             .help = "directory that --record wrote; k8s-collector reads the recorded answers instead of requesting "
                     "objects from an API server",
             .value_name = "DIR"},
            &options.replay_dir, "");
  table.Add({.name = "print-entities",
             .help = "print the cluster's metadata as JSON lines instead of sending it to reducers"},
            &options.print_entities, false);
}

}  // namespace

absl::StatusOr<Options::Outcome> ParseClusterOptions(int argc, const char* const* argv,
                                                     const Options::Environment& environment, ClusterOptions* options) {
  std::string hosts, metrics_listen;
  int64_t port = 0;
  Options table("k8s-collector", "Sends the metadata of a Kubernetes cluster's pods, workloads and nodes to reducers.");
  table.SetManual(ClusterManual);
  table.Add({.name = "intake-host",
             .help = "host of the reducer, or HOST:PORT; to use several reducers, separate them with commas: each "
                     "reducer gets all metadata",
             .value_name = "HOST",
             .check = [](std::string_view v) { return intake::ParseReducers(v, 1).status(); }},
            &hosts, "127.0.0.1");
  table.Add({.name = "intake-port",
             .help = "port of each reducer that --intake-host names without a port",
             .value_name = "PORT"},
            &port, 8000, 1, 65'535);
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
    return Error(absl::StatusCode::kInvalidArgument,
                 "--record and --replay cannot be used together: give only one of them");
  }
  return outcome;
}

}  // namespace tributary
