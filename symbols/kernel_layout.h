#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "profile/executable_id.h"

namespace tributary {

// Where kernel code is, in this boot's addresses. Read at start, and again when an address is met that is in none of
// it.
struct KernelModule {
  std::string name;
  uint64_t base = 0;  // address of its .text
  uint64_t size = 0;
  ExecutableId id;
};
// Code that the kernel made while it ran, and that is of no file: BPF programs and trampolines, ftrace's, kprobes'.
struct GeneratedCode {
  uint64_t begin = 0;
  uint64_t end = 0;        // where the next code begins, or far enough behind: kallsyms knows no sizes
  bool end_known = false;  // somebody else told it
  std::string owner;       // "bpf", "ftrace", "kprobes"
  std::string name;        // "bpf_prog_6deef7357e7b4530_sd_fw_egress", "bpf_trampoline_6442536467", "ftrace_trampoline"
};
constexpr uint64_t kBpfProgramBytesMax = 1 << 20;
constexpr uint64_t kTrampolineBytesMax = 4096;  // whatever is no BPF program is a page at most
struct KernelLayout {
  ExecutableId id;                       // /sys/kernel/notes
  uint64_t text_begin = 0;               // _stext
  uint64_t text_end = 0;                 // _etext
  std::vector<KernelModule> modules;     // sorted by base
  std::vector<GeneratedCode> generated;  // sorted by begin; 16,384 at most
};

// Where code is, without names but for generated code: for the collector, which names nothing else. PermissionDenied:
// kallsyms shows no addresses. 35 ms, nearly all of it the kernel's to write kallsyms.
absl::StatusOr<KernelLayout> ReadKernelLayout(const std::string& proc_root = "/proc",
                                              const std::string& sys_root = "/sys");

}  // namespace tributary
