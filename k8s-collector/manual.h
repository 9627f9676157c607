#pragma once

#include "base/docs/document.h"

namespace tributary {

// Returns those texts of k8s-collector's man page that are not generated from its options.
docs::Manual ClusterManual();

}  // namespace tributary
