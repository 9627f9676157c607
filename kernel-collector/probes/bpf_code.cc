#include "kernel-collector/probes/bpf_code.h"

#include <bpf/bpf.h>

#include <algorithm>
#include <array>

#include "base/fd.h"

namespace tributary {
namespace {

constexpr size_t kCodeMax = 16'384;
constexpr size_t kFunctionsMax = 256;  // the kernel's own limit for one program

void AddFunctions(const Fd& program, std::vector<BpfCode>* out) {
  std::array<uint64_t, kFunctionsMax> begins = {};
  std::array<uint32_t, kFunctionsMax> lengths = {};
  bpf_prog_info info = {};
  info.nr_jited_ksyms = info.nr_jited_func_lens = kFunctionsMax;
  info.jited_ksyms = reinterpret_cast<uint64_t>(begins.data());
  info.jited_func_lens = reinterpret_cast<uint64_t>(lengths.data());
  uint32_t bytes = sizeof info;
  if (bpf_obj_get_info_by_fd(program.get(), &info, &bytes) != 0) return;
  const size_t count = std::min<size_t>({info.nr_jited_ksyms, info.nr_jited_func_lens, kFunctionsMax});
  for (size_t i = 0; i < count; ++i) {
    if (begins[i] != 0 && lengths[i] != 0) out->push_back({begins[i], lengths[i]});
  }
}

}  // namespace

std::vector<BpfCode> ListBpfCode() {
  std::vector<BpfCode> code;
  for (uint32_t id = 0; code.size() < kCodeMax && bpf_prog_get_next_id(id, &id) == 0;) {
    Fd program(bpf_prog_get_fd_by_id(id));
    if (program.valid()) AddFunctions(program, &code);
  }
  return code;
}

}  // namespace tributary
