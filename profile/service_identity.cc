#include "profile/service_identity.h"

#include <fmt/format.h>

#include <initializer_list>

#include "profile/metadata.h"

namespace tributary {
namespace {

std::string_view FirstOf(AttributeLookup attribute, std::initializer_list<std::string_view> keys) {
  for (std::string_view key : keys) {
    if (std::string_view value = attribute(key); !value.empty()) return value;
  }
  return {};
}

std::string_view NameOf(AttributeLookup attribute, std::string_view systemd_unit, std::string_view executable_name) {
  const std::string_view name =
      FirstOf(attribute, {"k8s.pod.label.app.kubernetes.io/instance", "k8s.pod.label.app.kubernetes.io/name",
                          "k8s.deployment.name", "k8s.replicaset.name", "k8s.statefulset.name", "k8s.daemonset.name",
                          "k8s.cronjob.name", "k8s.job.name", "k8s.pod.name", "k8s.container.name",
                          "container.label.com.docker.compose.service"});
  if (!name.empty()) return name;
  if (systemd_unit.ends_with(".service")) systemd_unit.remove_suffix(8);
  return systemd_unit.empty() ? executable_name : systemd_unit;
}

}  // namespace

ServiceIdentity MakeServiceIdentity(AttributeLookup attribute, std::string_view systemd_unit,
                                    std::string_view executable_name) {
  ServiceIdentity identity;
  identity.name = NameOf(attribute, systemd_unit, executable_name);
  identity.name_space = attribute("k8s.namespace.name");
  identity.version = FirstOf(attribute, {"k8s.pod.label.app.kubernetes.io/version", kImageVersion});
  const std::string_view pod = attribute("k8s.pod.name"), container = attribute("k8s.container.name");
  if (!identity.name_space.empty() && !pod.empty() && !container.empty()) {
    identity.instance_id = fmt::format("{}.{}.{}", identity.name_space, pod, container);
  }
  return identity;
}

}  // namespace tributary
