#pragma once

#include <cstdint>
#include <span>

#include "bpf/include/records.h"
#include "bpf/include/unwind.h"

namespace tributary {

// A sample's copy of a stack. StepByRule reads it in the same way as the walk in the kernel reads the stack.
struct StackCopy {
  uint64_t begin = 0;  // the stack pointer when the copy was made
  std::span<const uint8_t> bytes;
  uint64_t start_stack = 0;  // the stack pointer that the process began with
  uint64_t thread_pointer = 0;
};

struct FrameRegisters {
  uint64_t pc = 0, sp = 0, fp = 0;
  uint64_t second = 0;     // rbx on x86-64, the link register on arm64
  bool is_caller = false;  // pc is a return address
};

enum class Architecture { kX86, kArm64 };
#if defined(__aarch64__)
constexpr Architecture kThisArchitecture = Architecture::kArm64;
#else
constexpr Architecture kThisArchitecture = Architecture::kX86;
#endif

struct StepResult {
  bool stopped = false;
  trib_stop stop = TRIB_STOP_NONE;
};

// Replaces a frame's registers with those of its caller, according to `rule`. If the walk must stop here, leaves the
// registers unchanged. TRIB_STOP_NO_PAGE: the copy does not contain the needed bytes.
StepResult StepByRule(uint64_t rule, const StackCopy& copy, Architecture architecture, FrameRegisters* registers);

}  // namespace tributary
