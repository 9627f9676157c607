#pragma once

#include "base/docs/document.h"

namespace tributary {

// The texts of kernel-collector's man page that its options do not hold.
docs::Manual CollectorManual();

}  // namespace tributary
