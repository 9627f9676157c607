/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#ifndef TRIBUTARY_BPF_PYTHON_BPF_H
#define TRIBUTARY_BPF_PYTHON_BPF_H

/*
 * The walk of CPython's own list of frames. All addresses in it come from the process's memory, so they may be wrong:
 * every read may fail, and every loop has a limit. Each frame takes three reads of memory, which usually misses the
 * caches: about 0.28 µs. Finding the thread state takes about 1 µs.
 */

#include "bpf/python_state.bpf.h"
#include "bpf/state.bpf.h"

#define FRAME_BYTES_MAX 128
#define CHECK_WORDS_MAX 12
#define CHECK_BYTES_MAX (8 * CHECK_WORDS_MAX)
#define CHECK_BEGIN 16	/* in trib_state.object: the fields of the check come after the frame */
_Static_assert(CHECK_BEGIN * 8 == FRAME_BYTES_MAX && CHECK_BEGIN + CHECK_WORDS_MAX <= TRIB_KEY_WORDS, "room for both");

#define WALK_ON (-1)	/* instead of a trib_chain_end: the chain continues */

/* These functions return parts of the frame that was read last. `offset` is a field of the layout. */
static __always_inline __u64 frame_word(const struct trib_state *state, __u32 offset)
{
	return state->object[offset >> 3 & (CHECK_BEGIN - 1)];
}

static __always_inline __s32 frame_int(const struct trib_state *state, __u32 offset)
{
	return frame_word(state, offset) >> (8 * (offset & 4));
}

static __always_inline __u8 frame_byte(const struct trib_state *state, __u32 offset)
{
	return frame_word(state, offset) >> (8 * (offset & 7));
}

/* Reads the fields of the check of the code object at `code`, and the hash of its name. Returns WALK_ON or an end. */
static __always_inline int read_check(struct trib_state *state, const struct trib_python *layout, __u64 code,
				      __u32 *check)
{
	__u32 name = layout->code_name - layout->check_first, i;
	__u64 bytes = layout->check_bytes, hash = 0, name_hash;

	CLAMP(bytes, CHECK_BYTES_MAX);
	if (bpf_probe_read_user(&state->object[CHECK_BEGIN], bytes, (void *)(code + layout->check_first)))
		return bad_chain(state, TRIB_CHAIN_BAD_CODE);
	for (i = 0; i < CHECK_WORDS_MAX; i++) {
		if (8 * i < bytes)
			hash = TRIB_CHECK_ADD(hash, state->object[CHECK_BEGIN + i]);
	}
	name >>= 3;
	if (name >= CHECK_WORDS_MAX)
		return bad_chain(state, TRIB_CHAIN_BAD_NAME);
	if (read_pointed(&name_hash, state->object[CHECK_BEGIN + name], layout->name_hash))
		return bad_chain(state, TRIB_CHAIN_BAD_NAME);
	*check = TRIB_CHECK_ADD(hash, name_hash) >> 32;
	return WALK_ON;
}

/*
 * Returns the address of the first instruction that the frame runs. Free-threaded builds have a copy of the
 * instructions for each thread.
 */
static __always_inline __u64 first_instruction(const struct trib_state *state, const struct trib_python *layout,
					       __u64 code)
{
	__u64 copies, count, copy, first = code + layout->code_instructions;
	__s32 index;

	if (!layout->code_copies || read_user(&copies, code + layout->code_copies) || !copies)
		return first;
	index = frame_int(state, layout->frame_copy);
	if (index < 0 || read_pointed(&count, copies, 0) || (__u64)index >= count ||
	    read_user(&copy, copies + 8 + 8 * (__u64)index) || !copy)
		return first;
	return copy;
}

static __always_inline __s32 position_of(const struct trib_state *state, const struct trib_python *layout, __u64 code)
{
	if (layout->instruction_is_pointer)
		return frame_word(state, layout->frame_instruction) - first_instruction(state, layout, code);
	return (__u32)frame_int(state, layout->frame_instruction) << (layout->instruction_shift & 3);
}

/* Appends two words to the record. Returns WALK_ON, or TRIB_CHAIN_DEPTH if there is no room for them. */
static __always_inline int add_frame(struct trib_state *state, __u64 first, __u64 second)
{
	__u32 at = state->chain.next;

	if (at + 2 > state->chain.end)
		return TRIB_CHAIN_DEPTH;
	state->frames[at & (TRIB_STATE_FRAMES - 1)] = first;
	state->frames[(at + 1) & (TRIB_STATE_FRAMES - 1)] = second;
	state->chain.next = at + 2;
	state->chain.frames++;
	return WALK_ON;
}

/* For a frame that is no Python frame, but separates segments: the frames before it form a segment. */
static __always_inline int end_segment(struct trib_state *state, __u64 back)
{
	__u32 last = state->chain.next - 2;

	if (state->chain.frames)
		state->frames[last & (TRIB_STATE_FRAMES - 1)] |= TRIB_CHAIN_ENTRY;
	else if (back)
		return add_frame(state, TRIB_CHAIN_ENTRY, 0);
	return WALK_ON;
}

/*
 * Reads the next frame, adds it to the record and steps to its caller. Returns WALK_ON or the trib_chain_end. A global
 * function: the verifier checks it once, not once per iteration.
 */
__noinline int trib_python_frame(__u32 context)
{
	struct trib_state *state = this_state(context);
	struct trib_runtime *runtime;
	const struct trib_python *layout;
	__u32 number, check, is_entry = 1;
	__u64 bytes, back, code;
	int end;

	if (!state)
		return TRIB_CHAIN_UNREADABLE;
	number = state->chain.runtime;
	runtime = bpf_map_lookup_elem(&trib_runtimes, &number);
	if (!runtime)
		return bad_chain(state, TRIB_CHAIN_BAD_STATE);
	layout = &runtime->python;
	bytes = layout->frame_bytes;
	CLAMP(bytes, FRAME_BYTES_MAX);
	if (!is_pointer(state->chain.frame) || bpf_probe_read_user(state->object, bytes, (void *)state->chain.frame))
		return bad_chain(state, TRIB_CHAIN_BAD_FRAME);
	back = frame_word(state, layout->frame_back);
	if (layout->entry == TRIB_PYTHON_ENTRY_OWNER && frame_byte(state, layout->frame_owner) >= OWNER_NOT_PYTHON) {
		end = end_segment(state, back);
	} else {
		code = frame_word(state, layout->frame_code) & ~(__u64)layout->code_tag_mask;
		if (!is_pointer(code))
			return bad_chain(state, TRIB_CHAIN_BAD_CODE);
		end = read_check(state, layout, code, &check);
		if (end != WALK_ON)
			return end;
		if (layout->entry != TRIB_PYTHON_ENTRY_EACH)
			is_entry = layout->entry == TRIB_PYTHON_ENTRY_FLAG && frame_byte(state, layout->frame_owner);
		end = add_frame(state, code | (is_entry ? TRIB_CHAIN_ENTRY : 0),
				(__u64)check << 32 | (__u32)position_of(state, layout, code));
	}
	if (end != WALK_ON)
		return end;
	state->chain.frame = back;
	return back ? WALK_ON : TRIB_CHAIN_COMPLETE;
}

/* Stores the address of the innermost frame. Returns WALK_ON or the trib_chain_end. */
static __always_inline int first_frame(struct trib_state *state, const struct trib_python *layout)
{
	__u64 frame;

	if (read_user(&frame, state->chain.state + layout->frame))
		return bad_chain(state, TRIB_CHAIN_BAD_STATE);
	if (layout->has_cframe && read_pointed(&frame, frame, layout->cframe_frame))
		return bad_chain(state, TRIB_CHAIN_BAD_STATE);
	state->chain.frame = frame;
	return frame ? WALK_ON : TRIB_CHAIN_COMPLETE;
}

/* Appends the frames of the thread state chain.state to the record. Global for the verifier: see trib_step. */
__noinline int trib_python_chain(__u32 context)
{
	struct trib_state *state = this_state(context);
	struct trib_runtime *runtime;
	__u32 number, header, i;
	int end;

	if (!state)
		return 0;
	number = state->chain.runtime;
	runtime = bpf_map_lookup_elem(&trib_runtimes, &number);
	if (!runtime)
		return 0;
	header = state->chain.next;
	state->chain.frames = 0;
	if (header >= state->chain.end) {
		count_chain(state, TRIB_CHAIN_DEPTH);
		return 0;
	}
	state->chain.next = header + 1;
	end = first_frame(state, &runtime->python);
	for (i = 0; i < TRIB_CHAIN_FRAMES_MAX && end == WALK_ON; i++)
		end = trib_python_frame(context);
	if (end == WALK_ON)
		end = TRIB_CHAIN_DEPTH;
	state->frames[header & (TRIB_STATE_FRAMES - 1)] = TRIB_CHAIN_HEADER(number, state->chain.frames, (__u32)end);
	count_chain(state, end);
	return 0;
}

#endif
