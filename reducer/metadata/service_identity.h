#pragma once

#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"

namespace tributary {

// The values of service.* if no other source sets them: neither the process, nor an annotation, nor the operator.
struct ServiceIdentity {
  std::string name, name_space, version, instance_id;
};

// Returns an attribute or label of a sample's resource; "": absent.
using AttributeLookup = absl::FunctionRef<std::string_view(std::string_view key)>;

// Computes service.*. For a container in a pod, it follows OpenTelemetry's rules ("Specify resource attributes using
// Kubernetes annotations", non-normative part of the semantic conventions). The name is the first of these that exists:
// the labels app.kubernetes.io/instance and /name, the workload's name, the pod's name, the container's name. The
// version is the label app.kubernetes.io/version, or the version in the image's reference. Elsewhere, the name is
// Docker Compose's service, the systemd unit without `.service`, or the executable's name.
ServiceIdentity MakeServiceIdentity(AttributeLookup attribute, std::string_view systemd_unit,
                                    std::string_view executable_name);

}  // namespace tributary
