#pragma once

#include <cstddef>

namespace tributary {

// Raises the soft limit on open files to the hard limit. The soft limit protects programs that call select(), and our
// programs do not. Returns the limit in force. Child processes inherit it.
size_t RaiseDescriptorLimit();

// Warns if `limit`, from RaiseDescriptorLimit, is below `enough`. The hard limit is then too low, and only an operator
// can raise it.
void WarnOfLowDescriptorLimit(size_t limit, size_t enough);

}  // namespace tributary
