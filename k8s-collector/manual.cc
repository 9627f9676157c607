#include "k8s-collector/manual.h"

namespace tributary {

docs::Manual ClusterManual() {
  return {
      .section = 8,
      .description =
          {"k8s-collector watches a Kubernetes cluster and sends metadata of its pods, containers, workloads, "
           "namespaces, nodes and rollouts to reducers. A reducer finds the metadata of a sample by the container id "
           "or pod UID of the sample's process. Run one k8s-collector in each cluster. kernel-collector needs no "
           "Kubernetes credentials.",
           "k8s-collector connects to the cluster of --kubeconfig, if this option is given. It runs the exec plug-in "
           "of the kubeconfig's user, if there is one, without a terminal. Without --kubeconfig, k8s-collector uses "
           "the service account of its pod. The account needs the permission to get, list and watch pods, namespaces, "
           "nodes, replicasets, deployments, statefulsets, daemonsets, jobs and cronjobs. If a permission is missing, "
           "the log names the permission, and k8s-collector watches the other kinds of objects.",
           "If --intake-host names several reducers, each of them gets all metadata."},
      .environment = {{"SOURCE_DATE_EPOCH",
                       "Date of the man page (--print-docs man). The value is a number of seconds since 1970."},
                      {"KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT",
                       "Host and port of the API server. Kubernetes sets both variables in every pod."}},
      .files = {{"/etc/tributary/k8s-collector.yaml",
                 "The configuration file of packages, for --config. Its keys are option names with _ for each dash. "
                 "k8s-collector --print-docs yaml prints such a file, with the default of each option."},
                {"/var/run/secrets/kubernetes.io/serviceaccount",
                 "Token, certificate authority and namespace of the pod's service account."}},
      .signals = {{"SIGTERM, SIGINT", "Exit."},
                  {"SIGHUP",
                   "Read the options again. New values of options that mention SIGHUP in their description take effect "
                   "without a restart. The log names the changed options that need a restart."},
                  {"SIGUSR1", "Write every metric to the log."}},
      .exit_status = {{"0",
                       "The program stopped after a signal, or printed the output of an option such as --version. With "
                       "--health-check: the running program is healthy."},
                      {"1",
                       "The program could not start, or a replay failed. The message on standard error says why. With "
                       "--health-check: the running program is not healthy, or no program runs."},
                      {"2", "An option is unknown, or its value is invalid."}},
      .examples = {{"In a pod with a service account:", "k8s-collector --intake-host reducer --cluster-name prod"},
                   {"Outside of a cluster, print the metadata that reducers would get:",
                    "k8s-collector --kubeconfig ~/.kube/config --print-entities"}},
      .see_also = {"kernel-collector(8)", "reducer(8)", "tributary(1)"},
  };
}

}  // namespace tributary
