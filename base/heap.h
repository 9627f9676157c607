#pragma once

#include <cstddef>
#include <cstdint>

namespace tributary {

// The memory of this process, and functions that return freed memory to the system. With glibc's default settings, a
// long-lived process keeps nearly all memory that it has freed. After the first large block was freed, glibc allocates
// later blocks of up to that size in a heap, and a heap shrinks only at its end. For example, a process that needs 1 MB
// still took 22 MB after it had read the kernel's symbols once.

// The defaults are for a small process with few threads.
struct HeapLimits {
  int heaps_max = 2;
  // Blocks of this size or more are allocated outside of the heaps, so their memory returns to the system as soon as
  // they are freed. Such a block costs a page fault for each of its pages.
  size_t large_block_bytes = 128u << 10;
  size_t kept_at_top_bytes = 512u << 10;  // free bytes at the end of a heap that the process keeps
};

// Call it first in main.
void LimitHeap(const HeapLimits& limits = {});

// Returns the free pages of the heaps to the system. Call it after work that allocated and freed much memory.
// Thread-safe, but other threads may have to wait for memory meanwhile. Takes less than 1 ms for 16 MB.
void TrimHeap();

// Returns the bytes of the heaps that the process has freed and not returned to the system. Thread-safe. Takes time for
// each free block.
size_t FreeHeapBytes();

// Returns the resident memory of this process, or 0 if it is unknown. Thread-safe.
uint64_t ResidentBytes();

}  // namespace tributary
