#include "kernel-collector/runtimes/python/thread_state_access.h"

#include "elf/byte_reader.h"
#include "elf/elf_format.h"

namespace tributary {
namespace {

using namespace std::literals;

int64_t DecodeX86(std::string_view code) {
  constexpr auto kBranchTarget = "\xf3\x0f\x1e\xfa"sv;  // endbr64
  constexpr auto kFrame = "\x55\x48\x89\xe5"sv;         // push rbp; mov rbp, rsp
  constexpr auto kLoad = "\x64\x48\x8b\x04\x25"sv;      // mov rax, fs:[disp32]
  if (code.substr(0, kBranchTarget.size()) == kBranchTarget) code.remove_prefix(kBranchTarget.size());
  const bool has_frame = code.substr(0, kFrame.size()) == kFrame;
  if (has_frame) code.remove_prefix(kFrame.size());
  if (code.substr(0, kLoad.size()) != kLoad) return 0;
  ByteReader reader(code.substr(kLoad.size()));
  const auto offset = reader.Fixed<int32_t>();
  const auto leave = has_frame ? "\x5d\xc3"sv : "\xc3"sv;  // pop rbp; ret
  return reader.rest().substr(0, leave.size()) == leave ? offset : 0;
}

// MRS Xa, TPIDR_EL0; ADD Xb, Xa, #high, LSL #12; then either LDR X0, [Xb, #low], or ADD Xb, Xb, #low; LDR X0, [Xb].
int64_t DecodeArm64(std::string_view code) {
  constexpr uint32_t kBranchTarget = 0xd503245f, kReturn = 0xd65f03c0;  // BTI c, RET
  const auto immediate = [](uint32_t instruction) { return static_cast<int64_t>(instruction >> 10 & 0xfff); };
  const auto source = [](uint32_t instruction) { return instruction >> 5 & 31; };
  ByteReader reader(code);
  auto instruction = reader.Fixed<uint32_t>();
  if (instruction == kBranchTarget) instruction = reader.Fixed<uint32_t>();
  if ((instruction & ~31u) != 0xd53bd040) return 0;
  uint32_t base = instruction & 31;
  int64_t offset = 0;
  for (int i = 0; i < 2; ++i) {
    instruction = reader.Fixed<uint32_t>();
    const bool is_high = (instruction & 0xffc00000) == 0x91400000, is_low = (instruction & 0xffc00000) == 0x91000000;
    if (!is_high && !is_low) break;
    if (source(instruction) != base) return 0;
    base = instruction & 31;
    offset += immediate(instruction) << (is_high ? 12 : 0);
    if (i == 1) instruction = reader.Fixed<uint32_t>();
  }
  const bool is_load = (instruction & 0xffc0001f) == 0xf9400000 && source(instruction) == base;
  if (!is_load || reader.Fixed<uint32_t>() != kReturn) return 0;
  return offset + immediate(instruction) * 8;
}

}  // namespace

int64_t DecodeThreadStateAccess(uint16_t machine, std::string_view code) {
  return machine == kElfMachineArm64 ? DecodeArm64(code) : DecodeX86(code);
}

}  // namespace tributary
