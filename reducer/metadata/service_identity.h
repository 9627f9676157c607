#pragma once

#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"

namespace tributary {

// What service.* is where nobody says it: neither the process, nor an annotation, nor the operator.
struct ServiceIdentity {
  std::string name, name_space, version, instance_id;
};

// An attribute or label of what a sample belongs to; "" = none.
using AttributeLookup = absl::FunctionRef<std::string_view(std::string_view key)>;

// Of a container in a pod, by OpenTelemetry's rules ("Specify resource attributes using Kubernetes annotations",
// non-normative part of the semantic conventions): the first that is there of the labels app.kubernetes.io/instance and
// /name, the workload's name, the pod's, the container's; the label app.kubernetes.io/version, the version in the
// image's reference. Elsewhere: Docker Compose's service, the systemd unit without `.service`, the executable's name.
ServiceIdentity MakeServiceIdentity(AttributeLookup attribute, std::string_view systemd_unit,
                                    std::string_view executable_name);

}  // namespace tributary
