#pragma once

namespace tributary {

// Functions that return freed memory to the system. With glibc's default settings, a long-lived process keeps nearly
// all memory that it has freed. After the first large block was freed, glibc allocates later blocks of up to that size
// in a heap, and a heap shrinks only at its end. For example, a process that needs 1 MB still took 22 MB after it had
// read the kernel's symbols once.

// Call it first in main. Limits the process to two heaps. Blocks of 128 KiB or more are allocated outside of the heaps,
// so their memory returns to the system as soon as they are freed.
void LimitHeap();

// Returns the free pages of the heaps to the system. Call it after work that allocated and freed much memory.
// Thread-safe, but other threads may have to wait for memory meanwhile. Takes less than 1 ms for 16 MB.
void TrimHeap();

}  // namespace tributary
