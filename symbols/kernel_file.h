#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "elf/address_range.h"
#include "elf/elf_file.h"

namespace tributary {

// Recognize the file of a kernel or of a module, or its separate debug file, by sections that programs lack.
bool IsKernel(ElfFile& file);        // vmlinux
bool IsKernelModule(ElfFile& file);  // .ko

// Returns the range of the file's addresses that samples have. The addresses of samples count from its begin, because
// kernels and modules are loaded at varying addresses. The range of a kernel is _stext to _etext. The range of any
// relocatable file, such as a module, begins at .text (elf/module_layout.h). The range of programs and libraries has
// all addresses, from 0. NotFound for a kernel without those symbols.
absl::StatusOr<AddressRange> FindSampledWindow(ElfFile& file);

}  // namespace tributary
