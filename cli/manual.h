#pragma once

#include "base/docs/document.h"

namespace tributary::cli {

// Returns the texts of tributary's man pages, except the descriptions of options.
docs::Manual CliManual();

}  // namespace tributary::cli
