/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#ifndef TRIBUTARY_BPF_REGISTERS_BPF_H
#define TRIBUTARY_BPF_REGISTERS_BPF_H

/*
 * The architecture-specific parts of the walk: how to find registers by name, by DWARF number, and in a signal frame.
 */

#include "bpf/state.bpf.h"

/*
 * Returns the place where the task's user registers were saved when it entered the kernel. Before 5.15 no helper
 * returns this place: the registers lie at the end of the kernel stack.
 */
static __always_inline void *entry_registers(struct task_struct *task)
{
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs))
		return (void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	return BPF_CORE_READ(task, stack) + config.kernel_stack_bytes - bpf_core_type_size(struct pt_regs);
}

/* Returns 0, or an error if the kernel's memory could not be read. */
static __always_inline int read_entry_registers(struct trib_state *state, struct task_struct *task)
{
	return bpf_probe_read_kernel(&state->registers, sizeof(state->registers), entry_registers(task));
}

static __always_inline void start_walk(struct trib_walk *walk, const struct trib_perf_event_context *registers)
{
	walk->sp = registers->sp;
	walk->is_return = 0;
	walk->interrupted = 0;
#if defined(__TARGET_ARCH_x86)
	walk->pc = registers->ip;
	walk->fp = registers->bp;
	walk->second = registers->bx;
#else
	walk->pc = registers->pc;
	walk->fp = registers->regs[29];
	walk->second = registers->regs[30];
#endif
}

#if defined(__TARGET_ARCH_x86)

/*
 * Returns the value that the kernel saved at the last task switch. It is current, because a thread sets its thread
 * pointer only once, when it begins.
 */
static __always_inline __u64 thread_pointer(struct task_struct *task)
{
	return BPF_CORE_READ(task, thread.fsbase);
}

/*
 * For a sample taken in the kernel. Returns 1 if user code called the kernel, 0 if a fault or a device interrupted user
 * code.
 */
static __always_inline int is_system_call(const struct trib_perf_event_context *registers, struct task_struct *task)
{
	return (__s64)registers->orig_ax >= 0;
}

#define TRIB_USER32_CS 0x23	/* arch/x86/include/asm/segment.h; Xen sets higher bits, too */

static __always_inline int is_32_bit(const struct trib_perf_event_context *registers)
{
	return (registers->cs & 0xff) == TRIB_USER32_CS;
}

/* Returns the register with this DWARF number (System V psABI, figure 3.36). */
static __always_inline __u64 register_by_number(const struct trib_perf_event_context *r, __u32 number)
{
	switch (number) {
	case 0:
		return r->ax;
	case 1:
		return r->dx;
	case 2:
		return r->cx;
	case 3:
		return r->bx;
	case 4:
		return r->si;
	case 5:
		return r->di;
	case 6:
		return r->bp;
	case 7:
		return r->sp;
	case 8:
		return r->r8;
	case 9:
		return r->r9;
	case 10:
		return r->r10;
	case 11:
		return r->r11;
	case 12:
		return r->r12;
	case 13:
		return r->r13;
	case 14:
		return r->r14;
	case 15:
		return r->r15;
	default:
		return 0;
	}
}

/* Reads the interrupted registers from struct rt_sigframe. When the handler has returned, its ucontext is at sp. */
static __always_inline int read_signal_frame(__u64 sp, __u64 *pc, __u64 *caller_sp, __u64 *fp, __u64 *second)
{
	struct {
		__u64 bp, bx, dx, ax, cx, sp, ip;
	} saved;

	if (bpf_probe_read_user(&saved, sizeof(saved), (void *)(sp + 120)))
		return -1;
	*pc = saved.ip;
	*caller_sp = saved.sp;
	*fp = saved.bp;
	*second = saved.bx;
	return 0;
}

/* mov $15, %rax (or %eax); syscall */
static __always_inline int is_signal_return(__u64 pc)
{
	__u64 code;
	__u8 last;

	if (bpf_probe_read_user(&code, sizeof(code), (void *)pc))
		return 0;
	if (code << 8 == 0x050f0000000fb8ull << 8)
		return 1;
	return code == 0x0f0000000fc0c748ull && !bpf_probe_read_user(&last, 1, (void *)(pc + 8)) && last == 0x05;
}

/*
 * For code without rows. The instruction at pc shows whether the function has not made its frame yet, or has already
 * removed it. Returns the offset of the return address above sp in these cases, and -1 if the frame pointer belongs to
 * the function itself.
 */
static __always_inline int frameless_offset(__u64 pc)
{
	__u8 code[5];	/* begins one byte before pc */

	if (bpf_probe_read_user(code, sizeof(code), (void *)(pc - 1)))
		return -1;
	if (code[1] == 0x55 || code[1] == 0xc3 || code[1] == 0xc2)	/* push %rbp; ret */
		return 0;
	if (code[1] == 0xff && code[2] == 0x25)	/* jmp *…(%rip): a stub of the linker */
		return 0;
	if (code[1] == 0xf3 && code[2] == 0x0f && code[3] == 0x1e && code[4] == 0xfa)	/* endbr64 */
		return 0;
	if (code[0] == 0x55 && code[1] == 0x48 && code[2] == 0x89 && code[3] == 0xe5)	/* mov %rsp, %rbp */
		return 8;
	return -1;
}

#else	/* arm64 */

static __always_inline __u64 thread_pointer(struct task_struct *task)
{
	return BPF_CORE_READ(task, thread.uw.tp_value);
}

static __always_inline int is_system_call(const struct trib_perf_event_context *registers, struct task_struct *task)
{
	return BPF_CORE_READ((struct pt_regs *)entry_registers(task), syscallno) >= 0;
}

#define TRIB_PSTATE_32_BIT 0x10

static __always_inline int is_32_bit(const struct trib_perf_event_context *registers)
{
	return (registers->pstate & TRIB_PSTATE_32_BIT) != 0;
}

/*
 * Returns the register with this DWARF number (AADWARF64 §4.1): 0 to 30 are x0 to x30, 31 is the stack pointer. The
 * struct has the registers in the same order.
 */
static __always_inline __u64 register_by_number(const struct trib_perf_event_context *r, __u32 number)
{
	if (number > 31)
		return 0;
	return ((const __u64 *)r)[number & 31];
}

/* Reads the interrupted registers from struct rt_sigframe: siginfo of 128 bytes, then the ucontext. */
static __always_inline int read_signal_frame(__u64 sp, __u64 *pc, __u64 *caller_sp, __u64 *fp, __u64 *second)
{
	struct {
		__u64 fp, lr, sp, pc;
	} saved;

	if (bpf_probe_read_user(&saved, sizeof(saved), (void *)(sp + 544)))
		return -1;
	*pc = saved.pc;
	*caller_sp = saved.sp;
	*fp = saved.fp;
	*second = saved.lr;
	return 0;
}

/*
 * Leaf functions that make no frame keep the return address in the link register. The link register does not show
 * whether a function makes a frame.
 */
static __always_inline int frameless_offset(__u64 pc)
{
	return -1;
}

/* mov x8, #139; svc #0 */
static __always_inline int is_signal_return(__u64 pc)
{
	__u64 code;

	return !bpf_probe_read_user(&code, sizeof(code), (void *)pc) && code == 0xd4000001d2801168ull;
}

#endif

#endif
