#pragma once

#include <cstdint>
#include <vector>

#include "elf/address_range.h"
#include "elf/elf_file.h"

namespace tributary {

// Addresses of the code of a relocatable file (a kernel module) after it is loaded. The kernel places executable
// sections one after the other, in the file's order, each with its own alignment (kernel/module/main.c,
// layout_sections). Addresses count from .text, as the addresses of samples do. sysfs contains the load address of
// .text (/sys/module/X/sections/.text).
//
// Not placed: sections before .text; sections that are freed after the module's start (.init…); sections of data; and
// all sections after a section that the loader fills and enlarges (arm64's .plt and .text.ftrace_trampoline).
class ModuleLayout {
 public:
  // Address of .text. It is not 0: in debug information address 0 means no code, or the end of a list.
  static constexpr uint64_t kTextAddress = uint64_t{1} << 32;
  // Code ends below this address.
  static constexpr uint64_t kCodeEnd = uint64_t{1} << 40;
  // Address of sections that are not placed. It lies above all code, even with an addend.
  static constexpr uint64_t kNowhere = uint64_t{1} << 62;

  explicit ModuleLayout(const std::vector<ElfSection>& sections);

  // Returns 0 for a section that is not loaded, such as debug information.
  uint64_t AddressOf(size_t section) const { return section < addresses_.size() ? addresses_[section] : kNowhere; }
  // Range from .text to the end of the placed sections.
  AddressRange code() const { return code_; }

 private:
  std::vector<uint64_t> addresses_;
  AddressRange code_{kTextAddress, kTextAddress};
};

}  // namespace tributary
