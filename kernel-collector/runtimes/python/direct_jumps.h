#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace tributary {

// Calls `jump` with the target address of each direct jump, conditional or not, in a piece of machine code of x86-64 or
// arm64. Calls and indirect jumps do not count. `address` is the address of the first instruction. On x86-64, it reads
// the instructions one after the other, and stops at an instruction that it does not know. So the code must not contain
// data. The input may be hostile: a wrong target is the worst result. Takes some 10 ns per instruction.
void ForEachDirectJump(uint16_t machine, std::string_view code, uint64_t address,
                       const std::function<void(uint64_t target)>& jump);

}  // namespace tributary
