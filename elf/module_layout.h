#pragma once

#include <cstdint>
#include <vector>

#include "elf/address_range.h"
#include "elf/elf_file.h"

namespace tributary {

// The addresses of a kernel module's code after the kernel has loaded the module. The file of a module is relocatable.
// The kernel loads executable sections one after the other, in the file's order, each with its own alignment
// (kernel/module/main.c, layout_sections). An address is kTextAddress plus the offset from .text. An address of a
// sample is only this offset. sysfs contains the load address of .text (/sys/module/X/sections/.text).
//
// The addresses of these sections are unknown (kNowhere): sections before .text; sections that are freed after the
// module's start (.init…); sections of data; a section that the loader enlarges (.plt and .text.ftrace_trampoline on
// arm64), and all sections after it.
class ModuleLayout {
 public:
  // The address of .text. It is not 0, because in debug information the address 0 means no code, or the end of a list.
  static constexpr uint64_t kTextAddress = uint64_t{1} << 32;
  // All code is below this address.
  static constexpr uint64_t kCodeEnd = uint64_t{1} << 40;
  // Stands for an unknown address. It is above all code, even after an addend is added.
  static constexpr uint64_t kNowhere = uint64_t{1} << 62;

  explicit ModuleLayout(const std::vector<ElfSection>& sections);

  // Returns the address of a section, 0 for a section that is not loaded (such as debug information), or kNowhere.
  uint64_t AddressOf(size_t section) const { return section < addresses_.size() ? addresses_[section] : kNowhere; }
  // The range from .text to the end of the last section that has an address.
  AddressRange code() const { return code_; }

 private:
  std::vector<uint64_t> addresses_;
  AddressRange code_{kTextAddress, kTextAddress};
};

}  // namespace tributary
