#pragma once

#include <cstdint>
#include <vector>

#include "elf/address_range.h"
#include "elf/elf_file.h"

namespace tributary {

// Where the code of a relocatable file, a kernel module, is once it is loaded. The kernel puts executable sections one
// after the other, in the file's order, each aligned as it asks (kernel/module/main.c, layout_sections). Addresses
// count from .text, of which sysfs tells where it was loaded (/sys/module/X/sections/.text), as those of samples do.
//
// Not placed: what lies before .text; what is there for the module's start and goes again (.init…); sections of data;
// and all behind a section that the loader fills and enlarges (arm64's .plt and .text.ftrace_trampoline).
class ModuleLayout {
 public:
  // Of .text: no code is at address 0, which in debug information is no code, or a list's end.
  static constexpr uint64_t kTextAddress = uint64_t{1} << 32;
  // Code ends below.
  static constexpr uint64_t kCodeEnd = uint64_t{1} << 40;
  // Of what is not placed: behind all code, also with an addend.
  static constexpr uint64_t kNowhere = uint64_t{1} << 62;

  explicit ModuleLayout(const std::vector<ElfSection>& sections);

  // Of a section that is not loaded, as debug information, 0.
  uint64_t AddressOf(size_t section) const { return section < addresses_.size() ? addresses_[section] : kNowhere; }
  // From .text to the end of what is placed.
  AddressRange code() const { return code_; }

 private:
  std::vector<uint64_t> addresses_;
  AddressRange code_{kTextAddress, kTextAddress};
};

}  // namespace tributary
