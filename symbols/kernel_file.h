#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "elf/address_range.h"
#include "elf/elf_file.h"

namespace tributary {

// Return true if the file is a kernel or a kernel module, or a separate debug file of one. They check for sections that
// programs do not have.
bool IsKernel(ElfFile& file);        // vmlinux
bool IsKernelModule(ElfFile& file);  // .ko

// Returns the range of ELF addresses that samples can refer to. Addresses of samples are offsets from the begin of this
// range, because kernels and modules are loaded at varying addresses. For a kernel, the range is _stext to _etext. For
// any relocatable file, such as a module, it begins at .text (elf/module_layout.h). For programs and libraries, it is
// all addresses from 0 on. NotFound if a kernel has no symbols _stext and _etext.
absl::StatusOr<AddressRange> FindSampledWindow(ElfFile& file);

}  // namespace tributary
