#include "kernel-collector/probes/unwind_chain_testing.h"

#include <algorithm>

const void* chain_leaf = chain_spin;
uint64_t chain_stack = 0;

// clang-format off
asm(R"(
  .pushsection chain_text, "ax", @progbits
  .p2align 12
  .globl chain_begin, chain_end, chain_root, chain_in_root, chain_a, chain_in_a, chain_b, chain_in_b, chain_c, chain_in_c
  .globl chain_d, chain_in_d, chain_spin, chain_calling, chain_in_calling, chain_register, chain_popped, chain_plt, chain_realigned, chain_in_realigned
  .globl chain_handler, chain_in_handler, chain_restorer, chain_in_restorer, chain_deep, chain_in_deep
  .globl chain_pointers, chain_in_pointers, chain_pointers_2, chain_in_pointers_2, chain_start
chain_begin:
chain_spin:
  jmp chain_spin
chain_calling:                # the kernel, all the time
  mov $39, %eax
  syscall
chain_in_calling:
  jmp chain_calling
chain_a:                      # a frame pointer
  push %rbp
  mov %rsp, %rbp
  sub $64, %rsp
  call chain_d
chain_in_a:
  ud2
chain_b:                      # none, and it uses the register
  push %rbp
  mov $0x1234, %ebp
  sub $40, %rsp
  call chain_c
chain_in_b:
  ud2
chain_c:                      # the CFA by rbx
  push %rbx
  mov %rsp, %rbx
  and $-64, %rsp
  sub $128, %rsp
  call *chain_leaf(%rip)
chain_in_c:
  ud2
chain_d:                      # realigned; the CFA is saved below the frame pointer
  lea 8(%rsp), %r10
  and $-32, %rsp
  pushq -8(%r10)
  push %rbp
  mov %rsp, %rbp
  push %r10
  sub $24, %rsp
  call chain_b
chain_in_d:
  ud2
chain_realigned:
  lea 8(%rsp), %r10
  and $-32, %rsp
  push %r10
  call chain_spin
chain_in_realigned:
  ud2
chain_register:
  lea 8(%rsp), %r11
  sub $200, %rsp
1: jmp 1b
chain_popped:
  pop %rdi
1: jmp 1b
chain_handler:
  call chain_spin
chain_in_handler:
  ud2
chain_restorer:
  nop
chain_in_restorer:
  mov $15, %rax
  syscall
chain_deep:
  mov $700, %ecx
2: sub $8, %rsp
  dec %ecx
  jz 1f
  call 2b
chain_in_deep:
  ud2
1: jmp 1b
chain_pointers:
  xor %ebp, %ebp
  call chain_pointers_2
chain_in_pointers:
  ud2
chain_pointers_2:
  push %rbp
  mov %rsp, %rbp
  call 1f
chain_in_pointers_2:
  ud2
1: push %rbp
  mov %rsp, %rbp
2: jmp 2b
chain_start:
  mov chain_stack(%rip), %rsp
  xor %ebp, %ebp
1: jmp 1b
  .p2align 4
chain_plt:
  .fill 6, 1, 0x90
  .byte 0x68, 0, 0, 0, 0      # push $0
1: jmp 1b
  .p2align 12
chain_root:
  sub $8, %rsp
  call chain_a
chain_in_root:
  ud2
  .p2align 12
chain_end:
  .popsection
)");
// clang-format on

namespace tributary {

std::vector<ChainRow> ChainRows() {
  std::vector<ChainRow> rows = {
      {chain_spin, Rule(TRIB_RULE_SP, 8)},
      {chain_calling, Rule(TRIB_RULE_SP, 8)},
      {chain_a, Rule(TRIB_RULE_FP, 16, TRIB_SAVED_CFA, -2)},
      {chain_b, Rule(TRIB_RULE_SP, 56, TRIB_SAVED_CFA, -2)},
      {chain_c, Rule(TRIB_RULE_SECOND, 16, TRIB_SAVED_SAME, 0, TRIB_SAVED_CFA, -2)},
      {chain_d, Rule(TRIB_RULE_DEREF_FP, 0, TRIB_SAVED_FP, 0, TRIB_SAVED_SAME, -1)},
      {chain_realigned, Rule(TRIB_RULE_DEREF_SP, 0)},
      {chain_register, Rule(TRIB_RULE_REGISTER, 0, TRIB_SAVED_SAME, 0, TRIB_SAVED_SAME, 11)},
      {chain_popped, Rule(TRIB_RULE_RETURN_REGISTER, 0, TRIB_SAVED_SAME, 0, TRIB_SAVED_SAME, 5)},
      {chain_handler, Rule(TRIB_RULE_SP, 8)},
      {chain_restorer, Rule(TRIB_RULE_SIGNAL, 0)},
      {chain_deep, Rule(TRIB_RULE_SP, 16)},
      {chain_pointers, Rule(TRIB_RULE_NONE, 0)},
      {chain_plt, Rule(TRIB_RULE_PLT, 0)},
  };
  std::ranges::sort(rows, {}, &ChainRow::begin);
  return rows;
}

}  // namespace tributary
