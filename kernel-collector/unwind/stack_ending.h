#pragma once

#include "bpf/include/records.h"
#include "kernel-collector/unwind/unwinder.h"
#include "profile/model.h"

namespace tributary {

// Returns how the stack of `sample` ended. `walked` is the result of its walk. `at_start`: whether its outermost user
// frame is in a function where threads or processes start (Unwinder::IsStart).
Ending StackEnding(const trib_sample& sample, const WalkedStack& walked, bool at_start);

}  // namespace tributary
