#pragma once

namespace tributary {

// Gives back the pages of code, of this program and its libraries, that were needed to get here: the loader and the
// constructors of libraries touch megabytes that are never looked at again, and every process counts its own. What is
// needed after all comes back from the page cache, by a fault each; breakpoints (a debugger's, a uprobe's) do not. Any
// thread, at any time; some 50 µs.
void ReleaseCodePages();

}  // namespace tributary
