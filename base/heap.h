#pragma once

namespace tributary {

// What a long-lived process keeps of memory that it has freed. The C library's defaults keep nearly all: once it has
// freed one large block it takes blocks of up to that size from the heap, and a thread's heap shrinks only from its
// top. A process that holds 1 MB stayed at 22 MB after reading the kernel's symbols once.

// First thing in main: few heaps, and large blocks outside of them, so that freeing one gives it back at once.
void LimitHeap();

// After a piece of work that took much memory and gave it back: free pages go to the system. Any thread; others that
// allocate wait. Under 1 ms for 16 MB.
void TrimHeap();

}  // namespace tributary
