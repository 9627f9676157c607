#pragma once

#include <string>
#include <string_view>

namespace tributary {

// The path of a cgroup contains this information about the processes in the cgroup. If containers, pods or systemd
// units are nested, the innermost one is used. For example, a node of a kind or minikube cluster is itself a container.
// A process of a pod then belongs to the pod's container, not to the node's container.
struct CgroupPath {
  // The container's id as its runtime writes it. Docker, containerd, CRI-O, podman: 64 hexadecimal digits, with the
  // systemd and the cgroupfs driver. ECS on Fargate: the 32 digits of a task, and a number. Garden: a handle. "": the
  // processes are in no container, or the path contains no id, as with LXC and systemd-nspawn. A runtime's own monitor
  // (conmon) is not in the container that it monitors.
  std::string container_id;
  // OpenTelemetry's container.runtime.name: "docker", "containerd", "cri-o", "podman", "ecs", "garden". "" if the path
  // does not name the runtime, as in pods with the cgroupfs driver.
  std::string runtime;
  // The pod's uid as Kubernetes writes it, with dashes. For a static pod, it is the hash of its manifest, 32
  // hexadecimal digits. The API server has this hash as the annotation kubernetes.io/config.hash of the static pod's
  // mirror. "": the processes are in no pod.
  std::string pod_uid;
  // The systemd unit: "nginx.service", "machine-web.scope". "" in a container, and if there is no unit. Also "" if the
  // name of the innermost unit was generated when it started (session-3.scope, vte-spawn-UUID.scope,
  // app-firefox-2114.scope, run-u12.service), or if it is init.scope (systemd itself): such a name identifies no
  // workload. Outer units are not used instead.
  std::string systemd_unit;

  friend bool operator==(const CgroupPath&, const CgroupPath&) = default;
};

// Parses a path of cgroup v1 or v2. The path may be the host's path, or relative to the root of a cgroup namespace
// ("/../../kubepods.slice/…"). Paths may be hostile: any bytes are accepted. If the path has more than 4,096 bytes, the
// result is empty.
CgroupPath ParseCgroupPath(std::string_view path);

}  // namespace tributary
