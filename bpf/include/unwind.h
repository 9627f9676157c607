/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#ifndef TRIBUTARY_BPF_UNWIND_H
#define TRIBUTARY_BPF_UNWIND_H

/*
 * The format of unwind rows. The collector writes the rows through mmap, and the BPF program reads them when it walks a
 * stack. A BPF source must define the types __u8 to __u64 before it includes this header.
 *
 * How to find the rule for an address of a process:
 *   process (hash by pid) → its mappings (sorted by start) → page entry of the executable (one per 4 KiB of text)
 *   → rows of that page (sorted by offset) → rule number → rule (one dictionary for the whole machine).
 *
 * To publish a page, the collector writes the rules and rows first, and then the page entry with one release-store. To
 * withdraw a page, it sets the page entry to 0 and waits for one RCU grace period. Only then it may reuse the rows. The
 * same order applies to the mappings of a process entry. Each CPU caches the rules that it found last, until
 * trib_control.withdrawals grows.
 */

#ifdef __cplusplus
#include <linux/types.h>
#endif

#define TRIB_PAGE_SHIFT 12
#define TRIB_PAGE_BYTES (1 << TRIB_PAGE_SHIFT)

/*
 * A row is a __u32: offset within its page << 16 | rule number. The rule applies from this offset up to the offset of
 * the next row. The first row of a page has offset 0. Rows are stored in chunks: row r is in chunk r / TRIB_CHUNK_ROWS.
 * Each __u64 element of a chunk contains two rows, the row with the even number in the low half.
 */
#define TRIB_CHUNK_ROWS (2u << 20)
#define TRIB_CHUNK_ELEMENTS (TRIB_CHUNK_ROWS / 2)
#define TRIB_CHUNK_BYTES (8u * TRIB_CHUNK_ELEMENTS)
#define TRIB_CHUNKS_MAX 128
#define TRIB_RULES_MAX 65536

/*
 * A page entry is a __u64: bit 63 is 1; bits 32..44 are the number of rows; bits 0..31 are the number of the first row.
 * If the number of rows is 0, the whole page has one rule, and bits 0..31 are the number of this rule. If the page is
 * not loaded, the whole entry is 0.
 */
#define TRIB_PAGES_MAX (512u * 1024)	/* 2 GiB of text */
#define TRIB_PAGE_LOADED (1ull << 63)
#define TRIB_PAGE_ROWS_SHIFT 32
#define TRIB_PAGE_ROWS_MASK 0x1fff

/*
 * There is one number (a __u64) for each 64 page entries. A walk that uses one of these entries sets their number to 1.
 * The collector reads and clears these numbers, to find page entries that it may evict.
 */
#define TRIB_TOUCH_SHIFT 6
#define TRIB_TOUCHES_MAX (TRIB_PAGES_MAX >> TRIB_TOUCH_SHIFT)

/*
 * A rule is a __u64. It says how to compute the caller's registers from the registers of a frame. CFA (canonical frame
 * address) is a term of DWARF: the stack pointer before the call. "Second" is the only register that the walk follows
 * in addition to the stack pointer and the frame pointer: rbx on x86-64, the link register x30 on arm64.
 *   bits  0..3   enum trib_rule_kind
 *   bits  4..5   enum trib_saved of the frame pointer (rbp, x29)
 *   bits  6..7   enum trib_saved of the second register
 *   bits  8..31  CFA offset, bytes, signed
 *   bits 32..47  where the frame pointer was saved: (address − CFA) / 8, signed
 *   bits 48..63  the same for the second register; or the value that the kind defines
 * The return address is at CFA − 8 on x86-64. On arm64 the return address is the caller's second register.
 */
enum trib_rule_kind {
	TRIB_RULE_NONE = 0,	/* no unwind information: use the frame pointer */
	TRIB_RULE_SP,		/* CFA = sp + offset */
	TRIB_RULE_FP,		/* CFA = frame pointer + offset */
	TRIB_RULE_SECOND,	/* CFA = second register + offset (x86-64: dynamic linker, realigned stacks) */
	TRIB_RULE_DEREF_SP,	/* CFA = *(sp + 8 × bits 48..63) + offset; the second register is lost */
	TRIB_RULE_DEREF_FP,	/* CFA = *(frame pointer + 8 × bits 48..63) + offset; the second register is lost */
	TRIB_RULE_PLT,		/* x86-64: CFA = sp + 8 + ((pc & 15) >= 11) × 8 */
	TRIB_RULE_SIGNAL,	/* the interrupted registers are in the signal frame at sp; pc is no return address */
	TRIB_RULE_END,		/* no return address: this is the start of a thread or a process */
	TRIB_RULE_REGISTER,	/* CFA = register number bits 48..63 (DWARF's) + offset; in a first frame only; second is lost */
	TRIB_RULE_RETURN_REGISTER, /* CFA = sp + offset, return address in register number bits 48..63; first frame only */
	TRIB_RULE_BAD,		/* there is unwind information, but no rule can express it */
	TRIB_RULE_KIND_COUNT,
};

enum trib_saved {
	TRIB_SAVED_SAME = 0,	/* not saved: still in the register */
	TRIB_SAVED_CFA,		/* at CFA + 8 × offset */
	TRIB_SAVED_FP,		/* at frame pointer + 8 × offset */
	TRIB_SAVED_LOST,	/* unknown: its value counts as 0 */
};

#define TRIB_CFA_OFFSET_MAX ((1 << 23) - 1)
#define TRIB_SAVED_OFFSET_MAX ((1 << 15) - 1)	/* in units of 8 bytes */

/*
 * A frame of code without rows counts as the outermost frame if two conditions are true. First, the frame is less than
 * TRIB_START_STACK_BYTES below the start of its stack. Second, the frame pointer does not point between this frame and
 * the start of the stack. Such code is the start-up code of musl, which has neither frame pointers nor unwind
 * information. The stack of a process's first thread starts at mm_struct.start_stack. The stack of another thread
 * starts at the thread pointer, if the C library puts the thread's control block on top of the stack.
 */
#define TRIB_START_STACK_BYTES 512

/*
 * One executable mapping of a process. `flags`: enum trib_mapping_flags. The mappings of a process are sorted by start.
 */
struct trib_mapping {
	__u64 start, end;
	__u64 bias;		/* address − bias = ELF virtual address */
	__u32 first_page;	/* page entry of ELF address a: first_page + (a >> TRIB_PAGE_SHIFT), modulo 2^32 */
	__u32 flags;
};
#define TRIB_MAPPINGS_MAX (64u * 1024)

enum trib_mapping_flags {
	TRIB_MAPPING_FRAME_POINTERS = 1,	/* no rows: code of a JIT, or of a file without unwind information */
};

/*
 * A process in the map trib_processes, whose key is the pid. The walk ignores the entry if the task has another start
 * time or exec id.
 */
struct trib_process {
	__u64 start_time_ns;	/* of the thread group leader, CLOCK_BOOTTIME */
	__u64 exec_id;		/* task_struct.self_exec_id: grows with every exec */
	__u32 first_mapping, mapping_count;
	__u32 table;		/* number of this list of mappings; a sample has the number that its walk used */
	__u32 runtimes;		/* runtimes that the process contains: TRIB_PROCESS_RUNTIMES (runtimes.h) */
};
#define TRIB_PROCESSES_MAX 8192
#define TRIB_PROCESS_MAPPINGS_MAX 16384	/* a binary search of 14 steps (MAPPING_STEPS) */

#ifdef __cplusplus
static_assert(sizeof(struct trib_mapping) == 32 && sizeof(struct trib_process) == 32);
#else
_Static_assert(sizeof(struct trib_mapping) == 32 && sizeof(struct trib_process) == 32, "unwind.h");
#endif

#endif
