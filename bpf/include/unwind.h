/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#ifndef TRIBUTARY_BPF_UNWIND_H
#define TRIBUTARY_BPF_UNWIND_H

/*
 * Unwind rows in the format that the kernel's walk and the collector share. User space writes the rows through mmap.
 * The walk only reads them. BPF sources define the __uN types first.
 *
 * Finding the rule for an address of a process:
 *   process (hash by pid) → its mappings (sorted by start) → page entry of the executable (one per 4 KiB of text)
 *   → rows of that page (sorted by offset) → rule number → rule (one dictionary for the whole machine).
 *
 * Publishing: write the rules and rows first, then the page entry with one release-store. Withdrawing: set the page
 * entry to 0, then wait for one RCU grace period. Only then may the rows be reused. The same sequence applies to the
 * mappings of a process entry. Each CPU remembers the rules that it found last, until trib_control.withdrawals shows
 * that page entries were withdrawn.
 */

#ifdef __cplusplus
#include <linux/types.h>
#endif

#define TRIB_PAGE_SHIFT 12
#define TRIB_PAGE_BYTES (1 << TRIB_PAGE_SHIFT)

/*
 * A row is a __u32: offset within its page << 16 | rule number. The rule applies from this row to the next row. A
 * page's first row has offset 0. Each __u64 element of a chunk holds two rows, the even row in the low half; row r is
 * in chunk r / TRIB_CHUNK_ROWS.
 */
#define TRIB_CHUNK_ROWS (2u << 20)
#define TRIB_CHUNK_ELEMENTS (TRIB_CHUNK_ROWS / 2)
#define TRIB_CHUNK_BYTES (8u * TRIB_CHUNK_ELEMENTS)
#define TRIB_CHUNKS_MAX 128
#define TRIB_RULES_MAX 65536

/*
 * A page entry is a __u64: bit 63 = loaded; bits 32..44 = number of rows; bits 0..31 = first row. If the number of rows
 * is 0, the whole page has one rule and bits 0..31 are the rule's number. 0 = not loaded.
 */
#define TRIB_PAGES_MAX (512u * 1024)	/* 2 GiB of text */
#define TRIB_PAGE_LOADED (1ull << 63)
#define TRIB_PAGE_ROWS_SHIFT 32
#define TRIB_PAGE_ROWS_MASK 0x1fff

/*
 * One __u64 per 64 page entries. A walk that used one of the entries sets it to 1. The collector reads and clears it to
 * find page entries that it may evict.
 */
#define TRIB_TOUCH_SHIFT 6
#define TRIB_TOUCHES_MAX (TRIB_PAGES_MAX >> TRIB_TOUCH_SHIFT)

/*
 * A rule is a __u64: how to compute the caller's registers from a frame's registers. The CFA is as in DWARF: the stack
 * pointer before the call. "Second" is the one additional register that the walk follows: rbx on x86-64, the link
 * register x30 on arm64.
 *   bits  0..3   enum trib_rule_kind
 *   bits  4..5   enum trib_saved of the frame pointer (rbp, x29)
 *   bits  6..7   enum trib_saved of the second register
 *   bits  8..31  CFA offset, bytes, signed
 *   bits 32..47  where the frame pointer was saved: (address − CFA) / 8, signed
 *   bits 48..63  the same for the second register; or the value that the kind defines
 * The return address is at CFA − 8 on x86-64. On arm64 the return address is the caller's second register.
 */
enum trib_rule_kind {
	TRIB_RULE_NONE = 0,	/* no unwind information here: walk by frame pointer */
	TRIB_RULE_SP,		/* CFA = sp + offset */
	TRIB_RULE_FP,		/* CFA = frame pointer + offset */
	TRIB_RULE_SECOND,	/* CFA = second register + offset (x86-64: dynamic linker, realigned stacks) */
	TRIB_RULE_DEREF_SP,	/* CFA = *(sp + 8 × bits 48..63) + offset; the second register is lost */
	TRIB_RULE_DEREF_FP,	/* CFA = *(frame pointer + 8 × bits 48..63) + offset; the second register is lost */
	TRIB_RULE_PLT,		/* x86-64: CFA = sp + 8 + ((pc & 15) >= 11) × 8 */
	TRIB_RULE_SIGNAL,	/* interrupted registers are in the signal frame at sp; its pc is no return address */
	TRIB_RULE_END,		/* return address undefined: the start of a thread or process */
	TRIB_RULE_REGISTER,	/* CFA = register number bits 48..63 (DWARF's) + offset; in a first frame only; second is lost */
	TRIB_RULE_RETURN_REGISTER, /* CFA = sp + offset, return address in register number bits 48..63; first frame only */
	TRIB_RULE_BAD,		/* unwind information that no rule can express */
	TRIB_RULE_KIND_COUNT,
};

enum trib_saved {
	TRIB_SAVED_SAME = 0,	/* still in the register */
	TRIB_SAVED_CFA,		/* at CFA + 8 × offset */
	TRIB_SAVED_FP,		/* at frame pointer + 8 × offset */
	TRIB_SAVED_LOST,	/* unknown: reads as 0 */
};

#define TRIB_CFA_OFFSET_MAX ((1 << 23) - 1)
#define TRIB_SAVED_OFFSET_MAX ((1 << 15) - 1)	/* in units of 8 bytes */

/*
 * A frame of code without rows is the outermost frame under two conditions. First, the frame lies less than
 * TRIB_START_STACK_BYTES below the beginning of its stack. Second, the frame pointer does not point between this frame
 * and the beginning of the stack. Such code is start-up code (musl's, static or not) that keeps neither frame pointers
 * nor unwind information. A process's first stack begins at mm_struct.start_stack. A thread's stack begins at the
 * thread pointer if its C library puts the thread's control block on top of the stack.
 */
#define TRIB_START_STACK_BYTES 512

/*
 * One executable range of a process; flags are enum trib_mapping_flags. The ranges of one process are sorted by start.
 */
struct trib_mapping {
	__u64 start, end;
	__u64 bias;		/* address − bias = ELF virtual address */
	__u32 first_page;	/* page entry of ELF address a: first_page + (a >> TRIB_PAGE_SHIFT), modulo 2^32 */
	__u32 flags;
};
#define TRIB_MAPPINGS_MAX (64u * 1024)

enum trib_mapping_flags {
	TRIB_MAPPING_FRAME_POINTERS = 1,	/* no rows: a JIT's code, or a file without unwind information */
};

/*
 * A process in the map trib_processes, by pid. The walk ignores the entry if the start time or exec id of the task
 * differs.
 */
struct trib_process {
	__u64 start_time_ns;	/* of the thread group leader, CLOCK_BOOTTIME */
	__u64 exec_id;		/* task_struct.self_exec_id: grows with every exec */
	__u32 first_mapping, mapping_count;
	__u32 table;		/* the collector's number of this table; each sample records the table of its walk */
	__u32 padding;
};
#define TRIB_PROCESSES_MAX 8192
#define TRIB_PROCESS_MAPPINGS_MAX 16384	/* a binary search of 14 steps (MAPPING_STEPS) */

#ifdef __cplusplus
static_assert(sizeof(struct trib_mapping) == 32 && sizeof(struct trib_process) == 32);
#else
_Static_assert(sizeof(struct trib_mapping) == 32 && sizeof(struct trib_process) == 32, "unwind.h");
#endif

#endif
