/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#ifndef TRIBUTARY_BPF_UNWIND_BPF_H
#define TRIBUTARY_BPF_UNWIND_BPF_H

/*
 * Finds the rule for a frame's address, and the frame's caller by this rule (bpf/include/unwind.h). The maps below take
 * all of their memory when they are created: 6.6 MiB, 8 MiB more for each chunk of rows, and about 1 MiB for processes.
 */

#include "bpf/registers.bpf.h"

/*
 * The rules of the whole machine.
 * Writer: the collector. Reader: trib_step. Bytes: 512 KiB. Never full here: the collector counts rules that do not
 * fit.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, __u64);
	__uint(max_entries, TRIB_RULES_MAX);
} trib_rules SEC(".maps");

/* Page entries. Writer: the collector. Reader: trib_step. Bytes: 4 MiB. Full: see trib_rules. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, __u64);
	__uint(max_entries, TRIB_PAGES_MAX);
} trib_pages SEC(".maps");

/*
 * Marks of the pages that were used. Writer: trib_step sets, the collector clears. Reader: the collector. Bytes: 64
 * KiB. Never full: an array.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, __u64);
	__uint(max_entries, TRIB_TOUCHES_MAX);
} trib_touches SEC(".maps");

/* Mappings of processes. Writer: the collector. Reader: trib_step. Bytes: 2 MiB. Full: see trib_rules. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct trib_mapping);
	__uint(max_entries, TRIB_MAPPINGS_MAX);
} trib_mappings SEC(".maps");

/*
 * Rows, two per element. Writer: the collector. Reader: trib_step. Bytes: 8 MiB per chunk; chunks are added one by one.
 */
struct trib_row_chunk {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, __u64);
	__uint(max_entries, TRIB_CHUNK_ELEMENTS);
};

/* Writer: the collector. Reader: trib_step. Bytes: 8 per chunk. Full: see trib_rules. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, TRIB_CHUNKS_MAX);
	__array(values, struct trib_row_chunk);
} trib_row_chunks SEC(".maps");

/*
 * Processes that are walked by rows, by thread group id.
 * Writer: the collector. Reader: every program (find_process). Bytes: about 1 MiB, allocated at once. Full: see
 * trib_rules.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, __u32);
	__type(value, struct trib_process);
	__uint(max_entries, TRIB_PROCESSES_MAX);
} trib_processes SEC(".maps");

#define MAPPING_STEPS 14
_Static_assert(1 << MAPPING_STEPS >= TRIB_PROCESS_MAPPINGS_MAX, "every mapping is found");
#define ROW_STEPS 13
_Static_assert(1 << ROW_STEPS > TRIB_PAGE_ROWS_MASK, "every row is found");

static __always_inline int covers(const struct trib_mapping *mapping, __u64 address)
{
	return mapping->start <= address && address < mapping->end;
}

/*
 * Returns the mapping that covers `address`, or NULL. Bounds are kept in 32 bits on every path: then the verifier can
 * merge the paths.
 */
static __always_inline struct trib_mapping *find_mapping(struct trib_walk *walk, __u64 address)
{
	__u32 base = walk->first_mapping, length = walk->mapping_count, key = walk->mapping;
	struct trib_mapping *mapping;
	int i;

	if (length == 0)
		return NULL;
	mapping = bpf_map_lookup_elem(&trib_mappings, &key);
	if (mapping && covers(mapping, address))
		return mapping;
	for (i = 0; i < MAPPING_STEPS && length > 1; i++) {
		__u32 half = length >> 1;

		key = base + half;
		mapping = bpf_map_lookup_elem(&trib_mappings, &key);
		if (!mapping)
			return NULL;
		if (mapping->start <= address)
			base = key;
		length -= half;
	}
	key = base;
	mapping = bpf_map_lookup_elem(&trib_mappings, &key);
	if (!mapping || !covers(mapping, address))
		return NULL;
	walk->mapping = key;
	return mapping;
}

static __always_inline __u32 row_of(__u64 pair, __u32 row)
{
	return row & 1 ? pair >> 32 : (__u32)pair;
}

/* Returns the number of the rule at `offset` of a page, or -1 if the page's rows are missing. */
static __always_inline long find_row(__u64 page, __u32 offset)
{
	__u32 first = (__u32)page, length = (page >> TRIB_PAGE_ROWS_SHIFT) & TRIB_PAGE_ROWS_MASK;
	__u32 chunk = first / TRIB_CHUNK_ROWS, row = first % TRIB_CHUNK_ROWS, key;
	__u64 *pair;
	void *rows;
	int i;

	if (length == 0)
		return first;
	rows = bpf_map_lookup_elem(&trib_row_chunks, &chunk);
	if (!rows)
		return -1;
	for (i = 0; i < ROW_STEPS && length > 1; i++) {
		__u32 half = length >> 1, middle = row + half;

		key = middle >> 1;
		pair = bpf_map_lookup_elem(rows, &key);
		if (!pair)
			return -1;
		if (row_of(*pair, middle) >> 16 <= offset)
			row = middle;
		length -= half;
	}
	key = row >> 1;
	pair = bpf_map_lookup_elem(rows, &key);
	return pair ? row_of(*pair, row) & 0xffff : -1;
}

/*
 * Finds the rule at `place`: page entry << TRIB_PAGE_SHIFT | offset; the bit TRIB_REMEMBERED is ignored. Returns 0 or a
 * trib_stop.
 */
static __always_inline int find_rule(__u64 *found, __u32 place)
{
	__u32 index = (place & (TRIB_REMEMBERED - 1)) >> TRIB_PAGE_SHIFT;
	__u64 *page = bpf_map_lookup_elem(&trib_pages, &index), *rule, entry;
	long number;

	if (!page)
		return TRIB_STOP_NO_PAGE;
	entry = *(volatile __u64 *)page;
	if (!(entry & TRIB_PAGE_LOADED))
		return TRIB_STOP_NO_PAGE;
	number = find_row(entry, place & (TRIB_PAGE_BYTES - 1));
	if (number < 0)
		return TRIB_STOP_NO_PAGE;
	index = number;
	rule = bpf_map_lookup_elem(&trib_rules, &index);
	if (!rule)
		return TRIB_STOP_BAD_RULE;
	*found = *rule;
	return 0;
}

/* Returns the slot that may remember the rule of `place`. Multiplicative hashing spreads neighbouring places. */
static __always_inline struct trib_remembered *remembered_at(struct trib_state *state, __u32 place)
{
	__u32 slot = (place * 2654435769u) >> (32 - TRIB_REMEMBERED_BITS);

	return &state->remembered[slot & (TRIB_REMEMBERED_MAX - 1)];
}

/* Stores only if the value changes, because all CPUs share the cache line. */
static __always_inline void touch(__u32 page)
{
	__u32 key = page >> TRIB_TOUCH_SHIFT;
	__u64 *touched = bpf_map_lookup_elem(&trib_touches, &key);

	if (touched && !*touched)
		*touched = 1;
}

static __always_inline __u64 code_address(__u64 address)
{
#if defined(__TARGET_ARCH_arm64)
	return address & config.address_mask;	/* may be signed by pointer authentication */
#else
	return address;
#endif
}

/*
 * Moves the walk to the caller and returns 0. If pc is 0, there is no caller: returns the trib_stop and does not move
 * the walk.
 */
static __always_inline int return_to(struct trib_walk *walk, __u64 pc, __u64 sp, __u64 fp, __u64 second)
{
	pc = code_address(pc);
	if (pc == 0)
		return TRIB_STOP_FRAME_POINTER_END;
	walk->pc = pc;
	walk->sp = sp;
	walk->fp = fp;
	walk->second = second;
	walk->is_return = 1;
	walk->interrupted = 0;
	return 0;
}

static __always_inline int signal_step(struct trib_walk *walk)
{
	__u64 pc, sp, fp, second;

	/* The handler may have run on another stack, so the order of the two stack pointers means nothing. */
	if (read_signal_frame(walk->sp, &pc, &sp, &fp, &second))
		return TRIB_STOP_UNREADABLE;
	walk->pc = pc;
	walk->sp = sp;
	walk->fp = fp;
	walk->second = second;
	walk->is_return = 0;
	walk->interrupted = TRIB_FRAME_INTERRUPTED;
	return 0;
}

/* Returns 1 if this is the outermost frame of the stack that begins at stack_begin: see TRIB_START_STACK_BYTES. */
static __always_inline int is_outermost(const struct trib_walk *walk, __u64 stack_begin)
{
	__u64 room = stack_begin - walk->sp;

	return room < TRIB_START_STACK_BYTES && walk->fp - walk->sp >= room;
}

/*
 * Steps through code without rows: a signal's trampoline, or code that keeps frame pointers. At fp lie the caller's fp
 * and the return address.
 */
static __always_inline int frame_pointer_step(struct trib_walk *walk)
{
	__u64 record[2], caller_sp = walk->fp + sizeof(record);
	int result, above;

	if (is_signal_return(walk->pc))
		return signal_step(walk);
	above = walk->is_return ? -1 : frameless_offset(walk->pc);
	if (above >= 0) {
		if (read_user(record, walk->sp + above))
			return TRIB_STOP_UNREADABLE;
		return return_to(walk, record[0], walk->sp + above + 8, walk->fp, walk->second);
	}
	if (is_outermost(walk, walk->start_stack) || is_outermost(walk, walk->thread_pointer))
		return TRIB_STOP_STACK_START;
	if (walk->fp == 0)
		return TRIB_STOP_FRAME_POINTER_END;
	if (caller_sp <= walk->sp)
		return TRIB_STOP_NO_PROGRESS;
	if (bpf_probe_read_user(record, sizeof(record), (void *)walk->fp))
		return TRIB_STOP_UNREADABLE;
#if defined(__TARGET_ARCH_arm64)
	result = return_to(walk, record[1], caller_sp, record[0], record[1]);
#else
	/* Callees rarely save rbx here. A wrong rbx becomes apparent at the first rule that needs it. */
	result = return_to(walk, record[1], caller_sp, record[0], walk->second);
#endif
	return result;
}

/*
 * Reads all saved registers of a frame at once, because a read of user memory has a high fixed cost. Returns 1 on
 * success.
 */
static __always_inline int read_saved(struct trib_state *state, __u64 cfa)
{
	return !bpf_probe_read_user(state->below_cfa, sizeof(state->below_cfa), (void *)(cfa - sizeof(state->below_cfa)));
}

/* Reads the word that lies `offset` words from the CFA. `known`: read_saved has read the words below the CFA. */
static __always_inline int read_at_cfa(const struct trib_state *state, int known, __u64 *value, __u64 cfa, __s64 offset)
{
	__u64 index = TRIB_BELOW_CFA_WORDS + offset;

	if (!known || index >= TRIB_BELOW_CFA_WORDS)
		return read_user(value, cfa + 8 * offset);
	*value = state->below_cfa[index & (TRIB_BELOW_CFA_WORDS - 1)];
	return 0;
}

/* Replaces `*value`, a register's value in this frame, with the register's value in the caller. */
static __always_inline int restore(const struct trib_state *state, int known, __u64 *value, __u32 saved, __s64 offset,
				   __u64 cfa, __u64 fp)
{
	switch (saved) {
	case TRIB_SAVED_SAME:
		return 0;
	case TRIB_SAVED_CFA:
		return read_at_cfa(state, known, value, cfa, offset);
	case TRIB_SAVED_FP:
		return read_user(value, fp + 8 * offset);
	default:
		*value = 0;
		return 0;
	}
}

static __always_inline int apply_rule(struct trib_state *state, __u64 rule)
{
	struct trib_walk *walk = &state->walk;
	__s64 offset = (__s32)rule >> 8, extra = (__s16)(rule >> 48);
	__u64 cfa, fp = walk->fp, second = walk->second, pc;
	__u32 fp_saved = (rule >> 4) & 3, second_saved = (rule >> 6) & 3;
	int known;
	/* All registers are known only in the first frame. */
	int is_first = !walk->is_return && !walk->interrupted;
	__u32 kind = rule & 15;

	switch (kind) {
	case TRIB_RULE_NONE:
		return frame_pointer_step(walk);
	case TRIB_RULE_SIGNAL:
		return signal_step(walk);
	case TRIB_RULE_END:
		return TRIB_STOP_END;
	case TRIB_RULE_SP:
		cfa = walk->sp + offset;
		break;
	case TRIB_RULE_FP:
		cfa = walk->fp + offset;
		break;
	case TRIB_RULE_SECOND:
		cfa = walk->second + offset;
		break;
	case TRIB_RULE_DEREF_SP:
	case TRIB_RULE_DEREF_FP:
		if (read_user(&cfa, (kind == TRIB_RULE_DEREF_SP ? walk->sp : walk->fp) + 8 * extra))
			return TRIB_STOP_UNREADABLE;
		cfa += offset;
		second_saved = TRIB_SAVED_LOST;
		break;
#if defined(__TARGET_ARCH_x86)
	case TRIB_RULE_PLT:
		cfa = walk->sp + 8 + ((walk->pc & 15) >= 11 ? 8 : 0);
		break;
#endif
	case TRIB_RULE_REGISTER:
		if (!is_first)
			return TRIB_STOP_BAD_RULE;
		cfa = register_by_number(&state->registers, (__u16)extra) + offset;
		second_saved = TRIB_SAVED_LOST;
		break;
	case TRIB_RULE_RETURN_REGISTER:
		if (!is_first)
			return TRIB_STOP_BAD_RULE;
		cfa = walk->sp + offset;
		if (second_saved != TRIB_SAVED_SAME)
			second_saved = TRIB_SAVED_LOST;
		break;
	default:
		return TRIB_STOP_BAD_RULE;
	}

	/* The caller's frame can begin directly at sp only if this frame has not called anything yet. */
	if (cfa < walk->sp || (cfa == walk->sp && walk->is_return))
		return TRIB_STOP_NO_PROGRESS;
	known = (fp_saved == TRIB_SAVED_CFA || second_saved == TRIB_SAVED_CFA) && read_saved(state, cfa);
	if (restore(state, known, &fp, fp_saved, (__s16)(rule >> 32), cfa, walk->fp))
		return TRIB_STOP_UNREADABLE;
	if (restore(state, known, &second, second_saved, extra, cfa, walk->fp))
		return TRIB_STOP_UNREADABLE;
	if (kind == TRIB_RULE_RETURN_REGISTER) {
		pc = register_by_number(&state->registers, (__u16)extra);
	} else {
#if defined(__TARGET_ARCH_arm64)
		pc = second;
#else
		if (read_at_cfa(state, known, &pc, cfa, -1))
			return TRIB_STOP_UNREADABLE;
#endif
	}
	return return_to(walk, pc, cfa, fp, second);
}

/*
 * Records the current frame and steps to its caller. Returns 0 or the trib_stop. A global function: the verifier checks
 * it once, not once per iteration.
 */
__noinline int trib_step(__u32 context)
{
	struct trib_state *state = this_state(context);
	struct trib_mapping *mapping;
	struct trib_remembered *remembered;
	struct trib_walk *walk;
	__u64 address, where;
	__u32 index;

	if (!state)
		return TRIB_STOP_UNREADABLE;
	walk = &state->walk;
	index = state->sample.kernel_frames + state->sample.user_frames;
	state->frames[index & (TRIB_STATE_FRAMES - 1)] = walk->pc | walk->interrupted | walk->fault;
	walk->fault = 0;
	state->sample.user_frames++;

	address = walk->pc - walk->is_return;
	mapping = find_mapping(walk, address);
	if (!mapping)
		return TRIB_STOP_NO_MAPPING;
	if (mapping->flags & TRIB_MAPPING_FRAME_POINTERS)
		return frame_pointer_step(walk);

	address -= mapping->bias;
	index = mapping->first_page + (__u32)(address >> TRIB_PAGE_SHIFT);
	if (index >= TRIB_PAGES_MAX)
		return TRIB_STOP_NO_PAGE;
	touch(index);
	index = index << TRIB_PAGE_SHIFT | (address & (TRIB_PAGE_BYTES - 1)) | TRIB_REMEMBERED;
	where = (__u64)walk->withdrawals << 32 | index;
	remembered = remembered_at(state, index);
	if (remembered->where != where) {
		int stop = find_rule(&remembered->rule, index);

		remembered->where = stop ? 0 : where;
		if (stop)
			return stop;
	}
	return apply_rule(state, remembered->rule);
}

#endif
