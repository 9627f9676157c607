#pragma once

namespace tributary {

// Limits the freed memory that a long-lived process keeps. With the C library's defaults, a process keeps nearly all of
// it: after one large block was freed, glibc takes later blocks of up to that size from the heap, and a heap shrinks
// only from its top. For example, a process that needs 1 MB stayed at 22 MB after it had read the kernel's symbols
// once.

// Call it first in main. Limits the process to two heaps, and keeps large blocks outside of the heaps, so that freeing
// a large block returns its memory to the system at once.
void LimitHeap();

// Call it after work that took much memory and freed it. Returns free pages to the system. Use it on any thread; other
// threads that allocate wait. Takes under 1 ms for 16 MB.
void TrimHeap();

}  // namespace tributary
