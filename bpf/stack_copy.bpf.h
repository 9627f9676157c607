/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#ifndef TRIBUTARY_BPF_STACK_COPY_BPF_H
#define TRIBUTARY_BPF_STACK_COPY_BPF_H

/*
 * Copies the data that user space needs to continue a walk that stopped because rows or mappings were missing (struct
 * trib_copy). A copy costs 4 µs for 16 KiB and 12 µs for 64 KiB. Copies happen a few times in a process's life.
 */

#include "bpf/chains.bpf.h"
#include "bpf/state.bpf.h"

/*
 * Copies, struct trib_copy each, of three sizes.
 * Writer: trib_emit_copy. Reader: the collector, on a timer. The collector is also woken when the timer might come too
 * late. Bytes: set by the collector before loading, see ProbeOptions. When the ring is full, the program counts
 * TRIB_COPY_RING_FULL and sends the sample without a copy.
 */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 256 * 1024);
} trib_copies SEC(".maps");

static __always_inline __u64 copies_wakeup(const struct trib_state *state)
{
	__u64 filled = bpf_ringbuf_query(&trib_copies, BPF_RB_AVAIL_DATA);
	__u64 size = bpf_ringbuf_query(&trib_copies, BPF_RB_RING_SIZE);

	return filled > size / WAKEUP_SHARE || has_young_chain(state) ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

#define PAGE_BYTES 4096	/* the smallest page size of any architecture; readability changes only at such boundaries */

static __always_inline int is_readable(__u64 address)
{
	__u8 byte;

	return !bpf_probe_read_user(&byte, sizeof(byte), (void *)address);
}

/*
 * Returns the size tier of the copy. The beginning of the process's first stack is known. For other stacks the program
 * can only test how far up memory is readable.
 */
static __always_inline __u32 copy_bytes(const struct trib_walk *walk)
{
	__u64 used = walk->start_stack - walk->sp;

	if (used <= TRIB_COPY_BYTES_SMALL)
		return TRIB_COPY_BYTES_SMALL;
	if (used <= TRIB_COPY_BYTES_MEDIUM)
		return TRIB_COPY_BYTES_MEDIUM;
	if (used <= TRIB_COPY_BYTES_LARGE)
		return TRIB_COPY_BYTES_LARGE;
	if (!is_readable(walk->sp + TRIB_COPY_BYTES_SMALL))
		return TRIB_COPY_BYTES_SMALL;
	return is_readable(walk->sp + TRIB_COPY_BYTES_MEDIUM) ? TRIB_COPY_BYTES_LARGE : TRIB_COPY_BYTES_MEDIUM;
}

/*
 * Fills `copy`, which can hold `tier` bytes of stack. Returns the number of stack bytes, 0 if no part of the stack can
 * be read.
 */
static __always_inline __u32 fill_copy(struct trib_copy *copy, const struct trib_state *state, const __u32 tier)
{
	__u64 sp = state->walk.sp, part = PAGE_BYTES - (sp & (PAGE_BYTES - 1));
	__u32 bytes = 0, i;

	for (i = 0; i < tier / PAGE_BYTES; i++) {
		void *to = copy->stack + i * PAGE_BYTES;

		if (!bpf_probe_read_user(to, PAGE_BYTES, (void *)(sp + bytes))) {
			bytes += PAGE_BYTES;
			continue;
		}
		/* Readable memory ends at a page boundary. */
		CLAMP(part, PAGE_BYTES);
		if (!bpf_probe_read_user(to, part, (void *)(sp + bytes)))
			bytes += part;
		break;
	}
	if (bytes == 0)
		return 0;
	bpf_probe_read_kernel(copy, TRIB_COPY_SAMPLE_BYTES, &state->sample);
	copy->sample.stack_bytes = bytes;
	copy->resume.pc = state->walk.pc;
	copy->resume.sp = sp;
	copy->resume.fp = state->walk.fp;
	copy->resume.second = state->walk.second;
	copy->resume.start_stack = state->walk.start_stack;
	copy->resume.thread_pointer = state->walk.thread_pointer;
	copy->resume.executable = executable_of((struct task_struct *)bpf_get_current_task());
	return bytes;
}

/* The size must be a constant when the program is loaded, so there is one call per tier. */
#define EMIT_COPY(program, state, tier) \
	({ \
		struct trib_copy *copy_ = bpf_ringbuf_reserve(&trib_copies, TRIB_COPY_HEADER_BYTES + (tier), 0); \
		int sent_ = 0; \
		if (!copy_) { \
			count(program, TRIB_COPY_RING_FULL); \
		} else if (!fill_copy(copy_, state, tier)) { \
			bpf_ringbuf_discard(copy_, BPF_RB_NO_WAKEUP); \
		} else { \
			bpf_ringbuf_submit(copy_, copies_wakeup(state)); \
			count(program, TRIB_COPIES); \
			sent_ = 1; \
		} \
		sent_; \
	})

/*
 * Returns 1 if the sample went into trib_copies, 0 if the caller must still send it. A global function, for the
 * verifier: see trib_step.
 */
__noinline int trib_emit_copy(__u32 context)
{
	struct trib_state *state = this_state(context);
	struct trib_program program;

	if (!state)
		return 0;
	program.context = context;
	program.type = state->sample.type;
	switch (copy_bytes(&state->walk)) {
	case TRIB_COPY_BYTES_SMALL:
		return EMIT_COPY(program, state, TRIB_COPY_BYTES_SMALL);
	case TRIB_COPY_BYTES_MEDIUM:
		return EMIT_COPY(program, state, TRIB_COPY_BYTES_MEDIUM);
	default:
		return EMIT_COPY(program, state, TRIB_COPY_BYTES_LARGE);
	}
}

#endif
