#pragma once

namespace tributary {

// Limits the freed memory that a long-lived process keeps. With the C library's defaults it keeps nearly everything.
// Once it has freed one large block, it takes blocks of up to that size from the heap. A thread's heap shrinks only
// from its top. For example, a process that needs 1 MB stayed at 22 MB after it had read the kernel's symbols once.

// Call it first in main. Sets few heaps, and keeps large blocks outside of them, so that freeing a large block returns
// it at once.
void LimitHeap();

// Call it after work that took much memory and freed it. Returns free pages to the system. Use it on any thread; other
// threads that allocate wait. Takes under 1 ms for 16 MB.
void TrimHeap();

}  // namespace tributary
