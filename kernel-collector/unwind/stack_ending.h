#pragma once

#include "bpf/include/records.h"
#include "kernel-collector/unwind/unwinder.h"
#include "profile/model.h"

namespace tributary {

// Returns how the stack of `sample` ended, after its walk. `at_start`: its outermost user frame is a function where
// threads or processes start (Unwinder::IsStart).
Ending StackEnding(const trib_sample& sample, const WalkedStack& walked, bool at_start);

}  // namespace tributary
