#pragma once

#include "base/docs/document.h"

namespace tributary {

// The texts of k8s-collector's man page that its options do not hold.
docs::Manual ClusterManual();

}  // namespace tributary
