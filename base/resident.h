#pragma once

namespace tributary {

// Releases the code pages, of this program and its libraries, that were needed until now. The loader and the
// constructors of libraries touch megabytes that are never used again, and each process pays for its own pages. A page
// that is needed later comes back from the page cache, with one page fault. Breakpoints (of a debugger or a uprobe) do
// not come back. Call it on any thread, at any time. Takes about 50 µs.
void ReleaseCodePages();

}  // namespace tributary
