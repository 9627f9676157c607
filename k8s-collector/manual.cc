#include "k8s-collector/manual.h"

namespace tributary {

docs::Manual ClusterManual() {
  return {
      .section = 8,
      .description =
          {"k8s-collector watches a Kubernetes cluster and sends reducers the names of what runs there: pods, "
           "containers, workloads, namespaces, nodes and rollouts. The reducer joins them with the samples by "
           "container id. Run one in each cluster. Nodes need no Kubernetes credentials.",
           "In a pod it uses the service account. Elsewhere it reads --kubeconfig. It gets, lists and watches pods, "
           "namespaces, nodes, replicasets, deployments, statefulsets, daemonsets, jobs and cronjobs. If a permission "
           "is missing, the log names it, and k8s-collector watches the other kinds of objects.",
           "If --intake-host names several reducers, each of them gets all metadata."},
      .environment = {{"SOURCE_DATE_EPOCH",
                       "The date of the page that --print-docs man prints, in seconds since 1970."},
                      {"KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT",
                       "Host and port of the API server. Kubernetes sets both variables in every pod."}},
      .files = {{"/etc/tributary/k8s-collector.yaml",
                 "The configuration file that packages install, for --config. Its keys are the options' names with _ "
                 "for each dash. --print-docs yaml prints it anew."},
                {"/var/run/secrets/kubernetes.io/serviceaccount",
                 "Token, certificate authority and namespace of the pod's service account."}},
      .signals = {{"SIGTERM, SIGINT", "Exit."},
                  {"SIGHUP",
                   "Read the options again. Options that mention SIGHUP in their description take effect at once. The "
                   "log names the other options that changed: they need a restart."},
                  {"SIGUSR1", "Write every metric to the log."}},
      .exit_status = {{"0",
                       "The program stopped after a signal, or printed what an option asked for. With --health-check: "
                       "it is healthy."},
                      {"1",
                       "Watching could not begin, or a replay failed. The message on standard error says what to do. "
                       "With --health-check: it is not healthy."},
                      {"2", "An option is wrong."}},
      .examples = {{"In a pod with a service account:", "k8s-collector --intake-host reducer --cluster-name prod"},
                   {"From anywhere, print what reducers would get:",
                    "k8s-collector --kubeconfig ~/.kube/config --print-entities"}},
      .see_also = {"kernel-collector(8)", "reducer(8)", "tributary(1)"},
  };
}

}  // namespace tributary
