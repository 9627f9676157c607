#pragma once

#include "base/docs/document.h"

namespace tributary {

// Returns the texts of k8s-collector's man page that its options do not contain.
docs::Manual ClusterManual();

}  // namespace tributary
