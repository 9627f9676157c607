#pragma once

#include <cstddef>

namespace tributary {

// Raises the soft limit on open files to the hard limit, and returns the limit that is then in force. This is safe: the
// soft limit only protects programs that call select(), and our programs do not. Child processes inherit the limit.
size_t RaiseDescriptorLimit();

// Logs a warning if `limit`, the result of RaiseDescriptorLimit, is below `enough`. Then the hard limit is too low, and
// only an operator can raise it.
void WarnOfLowDescriptorLimit(size_t limit, size_t enough);

}  // namespace tributary
