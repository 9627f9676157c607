#pragma once

#include "base/docs/document.h"

namespace tributary {

// Returns the texts of the reducer's man page, except the descriptions of options.
docs::Manual ReducerManual();

}  // namespace tributary
