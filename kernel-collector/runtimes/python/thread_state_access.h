#pragma once

#include <cstdint>
#include <string_view>

namespace tributary {

constexpr size_t kThreadStateAccessBytes = 32;

// Returns the offset from the thread pointer to the variable that a function returns, such as _PyThreadState_GetCurrent
// of a program with a static CPython. `code` is the begin of the function, up to kThreadStateAccessBytes bytes. Returns
// 0 if the function is not such a function: in a library, the offset differs between processes.
int64_t DecodeThreadStateAccess(uint16_t machine, std::string_view code);

}  // namespace tributary
