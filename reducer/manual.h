#pragma once

#include "base/docs/document.h"

namespace tributary {

// Returns the texts of reducer's man page that its options do not contain.
docs::Manual ReducerManual();

}  // namespace tributary
