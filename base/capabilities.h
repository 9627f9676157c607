#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "absl/status/status.h"

namespace tributary {

// A set of Linux capabilities. Bit n stands for the capability with the number n in <linux/capability.h>.
class CapabilitySet {
 public:
  constexpr CapabilitySet() = default;
  constexpr explicit CapabilitySet(uint64_t bits) : bits_(bits) {}
  constexpr CapabilitySet(std::initializer_list<int> capabilities) {
    for (int capability : capabilities) Add(capability);
  }

  constexpr bool Has(int capability) const { return (bits_ >> capability & 1) != 0; }
  constexpr void Add(int capability) { bits_ |= uint64_t{1} << capability; }
  constexpr uint64_t bits() const { return bits_; }
  friend constexpr bool operator==(CapabilitySet, CapabilitySet) = default;

 private:
  uint64_t bits_ = 0;
};

// Returns the name, such as "CAP_BPF". For capabilities that this project does not use, returns a text with the number:
// "capability 22".
std::string CapabilityName(int capability);
// Returns the names in the order of their numbers, such as "CAP_SYS_PTRACE,CAP_BPF". Returns "none" for the empty set.
std::string CapabilityNames(CapabilitySet set);

// Returns the effective capabilities of the calling thread. Returns an empty set if the kernel returns an error.
CapabilitySet EffectiveCapabilities();

// Gives up every capability outside `keep` permanently, and sets no_new_privs. Applies to the calling thread, and to
// the threads and processes that it starts later: call it before the process starts a second thread. Kept capabilities
// stay effective and permitted. The inheritable and ambient sets become empty. The bounding set becomes empty too if
// the thread has CAP_SETPCAP. A program that this thread executes later gains no capability. If the bounding set is
// empty, that program has no capabilities at all. Returns an error if the kernel refuses one of these steps; no known
// situation causes this.
absl::Status KeepOnlyCapabilities(CapabilitySet keep);

// KeepOnlyCapabilities for processes that need no capabilities.
inline absl::Status DropAllCapabilities() { return KeepOnlyCapabilities(CapabilitySet()); }

}  // namespace tributary
