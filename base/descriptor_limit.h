#pragma once

#include <cstddef>

namespace tributary {

// Raises the soft limit on open files to the hard one: the soft limit protects programs that call select(), and ours do
// not. Returns the limit in force; child processes inherit it.
size_t RaiseDescriptorLimit();

// Warns if `limit`, of RaiseDescriptorLimit, is below `enough`: then the hard limit is low, and only an operator can
// raise it.
void WarnOfLowDescriptorLimit(size_t limit, size_t enough);

}  // namespace tributary
