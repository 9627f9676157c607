#pragma once

#include <cstdint>
#include <vector>

#include "bpf/include/unwind.h"

// Code with known unwind rules: a chain of calls in which each frame needs another kind of rule. chain_root → a → d → b
// → c → *chain_leaf, which spins. No function of the chain returns.

extern "C" {
extern const char chain_begin[], chain_end[];
[[noreturn]] void chain_root();     // END; alone on the second page
extern const char chain_in_root[];  // return addresses
extern const char chain_a[], chain_in_a[];
extern const char chain_b[], chain_in_b[];
extern const char chain_c[], chain_in_c[];
extern const char chain_d[], chain_in_d[];
extern const char chain_spin[];                             // leaves: CFA = sp + 8
extern const char chain_calling[], chain_in_calling[];      //   getpid() in a loop
extern const char chain_register[];                         //   CFA = r11
extern const char chain_popped[];                           //   return address in rdi
extern const char chain_plt[];                              //   a PLT's second half
extern const char chain_realigned[], chain_in_realigned[];  // CFA saved on top of the stack; calls chain_spin
extern const char chain_handler[], chain_in_handler[];      // of a signal
extern const char chain_restorer[], chain_in_restorer[];    // begins one byte before its code
extern const char chain_deep[], chain_in_deep[];            // calls itself 300 times
extern const char chain_pointers[], chain_in_pointers[];    // frame pointers only; the outermost is 0
extern const char chain_pointers_2[], chain_in_pointers_2[];
extern const char chain_start[];  // frame pointer 0; its stack pointer is chain_stack
extern const void* chain_leaf;
extern uint64_t chain_stack;
}

namespace tributary {

constexpr uint64_t Rule(trib_rule_kind kind, int offset, trib_saved fp = TRIB_SAVED_SAME, int fp_at = 0,
                        trib_saved second = TRIB_SAVED_SAME, int extra = 0) {
  return static_cast<uint64_t>(kind) | static_cast<uint64_t>(fp) << 4 | static_cast<uint64_t>(second) << 6 |
         (static_cast<uint64_t>(offset) & 0xffffff) << 8 | (static_cast<uint64_t>(fp_at) & 0xffff) << 32 |
         static_cast<uint64_t>(extra) << 48;
}

struct ChainRow {
  const char* begin;
  uint64_t rule;
};
// Returns the unwind rows in order of address. The first row belongs to chain_begin. chain_root has its own page.
std::vector<ChainRow> ChainRows();

}  // namespace tributary
