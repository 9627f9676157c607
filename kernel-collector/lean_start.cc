#include "base/resident.h"

// The dynamic loader and the constructors of some 70 libraries touch 13 MiB of pages before main begins, and the helper
// processes load the same libraries. The functions in this file release these pages after each step. So the peak of a
// process is the largest step, not the sum of the steps. Sanitizers are not yet usable in such functions.

#if defined(__has_feature)
#define TRIB_HAS_FEATURE(name) __has_feature(name)
#else
#define TRIB_HAS_FEATURE(name) 0
#endif

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !TRIB_HAS_FEATURE(address_sanitizer) && \
    !TRIB_HAS_FEATURE(thread_sanitizer) && !TRIB_HAS_FEATURE(memory_sanitizer)
namespace tributary {
namespace {

using Initializer = void (*)(int, char**, char**);

// After the relocations, and before the constructors of the libraries.
__attribute__((section(".preinit_array"), used))
const Initializer kAfterLoading = [](int, char**, char**) { ReleaseCodePages(); };

// After the constructors of the libraries, and before this program's own ones.
__attribute__((constructor(101))) void ReleaseAfterLibraries() { ReleaseCodePages(); }

}  // namespace
}  // namespace tributary
#endif
