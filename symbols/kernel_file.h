#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "elf/address_range.h"
#include "elf/elf_file.h"

namespace tributary {

// A file of a kernel or of a module, or its separate debug file, is known by sections that no program has.
bool IsKernel(ElfFile& file);        // vmlinux
bool IsKernelModule(ElfFile& file);  // .ko

// What is loaded wherever there is room has its samples counted from a place of its own; this says which addresses of
// the file have samples, and where these count from: of a kernel from _stext on to _etext, of any relocatable file,
// as modules are, from .text on (elf/module_layout.h). Of programs and libraries all, from 0. NotFound: a kernel
// without those symbols.
absl::StatusOr<AddressRange> FindSampledWindow(ElfFile& file);

}  // namespace tributary
