#pragma once

#include "base/docs/document.h"

namespace tributary {

// Returns the texts of kernel-collector's man page, except those of its options.
docs::Manual CollectorManual();

}  // namespace tributary
