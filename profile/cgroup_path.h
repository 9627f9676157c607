#pragma once

#include <string>
#include <string_view>

namespace tributary {

// The facts that a cgroup's path contains about its processes. If containers, pods or units are nested, the innermost
// one counts. For example, the nodes of a kind or minikube cluster are containers themselves: a process of a pod then
// belongs to the pod's container and not to the node's.
struct CgroupPath {
  // The container's id as its runtime writes it: 64 hexadecimal digits (Docker, containerd, CRI-O, podman, with the
  // systemd and the cgroupfs driver), a task's 32 digits and number (ECS on Fargate), or a Garden handle. "": in no
  // container. A runtime's own monitor (conmon) is not in the container that it monitors. The paths of LXC and
  // systemd-nspawn containers contain no id.
  std::string container_id;
  // OpenTelemetry's container.runtime.name: "docker", "containerd", "cri-o", "podman", "ecs", "garden". "" if the path
  // does not contain it, for example below a pod under the cgroupfs driver.
  std::string runtime;
  // The uid as Kubernetes writes it, with dashes. For a static pod: the 32 hexadecimal digits of its manifest's hash.
  // The static pod's mirror at the API server has this hash as annotation kubernetes.io/config.hash. "": in no pod.
  std::string pod_uid;
  // "nginx.service", "machine-web.scope". "" in a container, and if there is no unit. Also "" if the innermost unit
  // names no workload, even if outer units exist: its name was generated at start (session-3.scope,
  // vte-spawn-UUID.scope, app-firefox-2114.scope, run-u12.service), or it is init.scope (systemd itself).
  std::string systemd_unit;

  friend bool operator==(const CgroupPath&, const CgroupPath&) = default;
};

// Accepts paths of cgroup v1 and v2, as the host sees them or relative to another cgroup ("/../../kubepods.slice/…", as
// seen from a cgroup namespace). Paths are hostile input: any bytes are accepted. A path of more than 4,096 bytes
// returns an empty result.
CgroupPath ParseCgroupPath(std::string_view path);

}  // namespace tributary
