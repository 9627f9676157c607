#pragma once

#include <string>
#include <string_view>

namespace tributary {

// What a cgroup's path tells of the processes in it. Of nested containers, pods and units the innermost counts: a pod
// of a cluster whose nodes are containers (kind, minikube) is that pod, not the container that is its node.
struct CgroupPath {
  // As its runtime names it: 64 hexadecimal digits (Docker, containerd, CRI-O, podman, under systemd's and cgroupfs's
  // drivers), a task's 32 digits and number (ECS on Fargate), or a Garden handle; "" = in none. A runtime's own monitor
  // (conmon) is not in the container that it monitors. LXC's containers and systemd-nspawn's have no id in their paths.
  std::string container_id;
  // OpenTelemetry's container.runtime.name: "docker", "containerd", "cri-o", "podman", "ecs", "garden"; "" where the
  // path does not say, as below a pod under the cgroupfs driver.
  std::string runtime;
  // As Kubernetes writes it, with dashes; of a static pod the 32 hexadecimal digits of its manifest's hash, which its
  // mirror at the API server bears as annotation kubernetes.io/config.hash. "" = in none.
  std::string pod_uid;
  // "nginx.service", "machine-web.scope"; "" in a container, and where there is none. A name that is made up when
  // something is started (session-3.scope, vte-spawn-UUID.scope, app-firefox-2114.scope, run-u12.service) names no
  // workload, and nor does init.scope, systemd itself: there is none then, whatever is around it.
  std::string systemd_unit;

  friend bool operator==(const CgroupPath&, const CgroupPath&) = default;
};

// Takes paths of cgroup v1 and v2, as the host sees them or relative to another cgroup ("/../../kubepods.slice/…", as
// from within a cgroup namespace). Paths are hostile: any bytes will do, more than 4,096 of them tell nothing.
CgroupPath ParseCgroupPath(std::string_view path);

}  // namespace tributary
