#pragma once

#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"

namespace tributary {

// The values of the attributes service.* for a process. They are used unless the process, an annotation or the operator
// sets the attribute.
struct ServiceIdentity {
  std::string name, name_space, version, instance_id;
};

// Returns the value of an attribute or label of a process's resource, or "" if the resource does not have it.
using AttributeLookup = absl::FunctionRef<std::string_view(std::string_view key)>;

// Computes service.*. For a container in a pod, follows OpenTelemetry's rules ("Specify resource attributes using
// Kubernetes annotations", non-normative part of the semantic conventions). The name is then the first of these that
// exists: the label app.kubernetes.io/instance, the label app.kubernetes.io/name, the workload's name, the pod's name,
// the container's name. The version is the label app.kubernetes.io/version, or the version in the image's reference.
// Outside of pods, the name is the first of these that exists: Docker Compose's service, the systemd unit without
// `.service`, the executable's name.
ServiceIdentity MakeServiceIdentity(AttributeLookup attribute, std::string_view systemd_unit,
                                    std::string_view executable_name);

}  // namespace tributary
