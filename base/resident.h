#pragma once

namespace tributary {

// Releases the pages with code and constants of this program and its libraries from this process's resident memory. The
// dynamic loader and the constructors of libraries touch megabytes of code that is not used again, and these pages
// count as memory of each process. If a released page is needed, a page fault maps it again from the page cache.
// Breakpoints (of a debugger or a uprobe) in released pages are lost. May be called on any thread, at any time. Takes
// about 50 µs.
void ReleaseCodePages();

}  // namespace tributary
