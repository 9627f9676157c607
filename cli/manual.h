#pragma once

#include "base/docs/document.h"

namespace tributary::cli {

// The texts of tributary's man pages that its options do not hold.
docs::Manual CliManual();

}  // namespace tributary::cli
