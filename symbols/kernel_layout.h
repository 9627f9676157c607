#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "profile/executable_id.h"

namespace tributary {

// A loaded kernel module. All addresses in this header file are runtime addresses of the current boot.
struct KernelModule {
  std::string name;
  uint64_t base = 0;  // address of its .text
  uint64_t size = 0;
  ExecutableId id;
};
// Code that the kernel generated at run time and that is in no file: BPF programs, and trampolines of BPF, ftrace and
// kprobes.
struct GeneratedCode {
  uint64_t begin = 0;
  uint64_t end = 0;        // begin of the next code, or a limit, because kallsyms has no sizes
  bool end_known = false;  // true: `end` is exact, from another source than kallsyms
  std::string owner;       // "bpf", "ftrace", "kprobes"
  std::string name;        // "bpf_prog_6deef7357e7b4530_sd_fw_egress", "bpf_trampoline_6442536467", "ftrace_trampoline"
};
constexpr uint64_t kBpfProgramBytesMax = 1 << 20;
constexpr uint64_t kTrampolineBytesMax = 4096;  // code other than BPF programs has at most one page
struct KernelLayout {
  ExecutableId id;                       // /sys/kernel/notes
  uint64_t text_begin = 0;               // _stext
  uint64_t text_end = 0;                 // _etext
  std::vector<KernelModule> modules;     // sorted by base
  std::vector<GeneratedCode> generated;  // sorted by begin; 16,384 at most
};

// Returns the addresses of all kernel code. Call it at start, and again when a sample has a kernel address outside of
// this code. Contains function names only of generated code, because the collector names no other code.
// PermissionDenied if kallsyms shows no addresses. Takes 35 ms, nearly all of it in the kernel, which generates
// kallsyms.
absl::StatusOr<KernelLayout> ReadKernelLayout(const std::string& proc_root = "/proc",
                                              const std::string& sys_root = "/sys");

}  // namespace tributary
