#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "absl/status/status.h"

namespace tributary {

// Linux capabilities, by their numbers in <linux/capability.h>. Bit n stands for capability n.
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

// "CAP_BPF". Capabilities that this program never names are "capability 22".
std::string CapabilityName(int capability);
// "CAP_SYS_PTRACE,CAP_BPF", in order of their numbers; "none".
std::string CapabilityNames(CapabilitySet set);

// The calling thread's. Empty if the kernel does not answer.
CapabilitySet EffectiveCapabilities();

// Gives up every capability outside `keep`, for good, and sets no_new_privs. It changes the calling thread, and so the
// threads and processes that it starts later: call it before the first thread starts. What is kept stays effective and
// permitted. The inheritable and ambient sets become empty. So does the bounding set if the thread has CAP_SETPCAP: a
// program that this one starts then has no capability at all. Error: the kernel refuses, which it does for no reason
// that a program meets.
absl::Status KeepOnlyCapabilities(CapabilitySet keep);

// For programs and processes that need none.
inline absl::Status DropAllCapabilities() { return KeepOnlyCapabilities(CapabilitySet()); }

}  // namespace tributary
