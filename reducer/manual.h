#pragma once

#include "base/docs/document.h"

namespace tributary {

// The texts of reducer's man page that its options do not hold.
docs::Manual ReducerManual();

}  // namespace tributary
