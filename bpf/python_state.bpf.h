/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#ifndef TRIBUTARY_BPF_PYTHON_STATE_BPF_H
#define TRIBUTARY_BPF_PYTHON_STATE_BPF_H

/*
 * Finds CPython's state of the current thread. A pthread key has its address. The numbers of the keys differ, but a
 * thread state contains the value of pthread_self(), so it can be recognised.
 */

#include "bpf/state.bpf.h"

#define STATE_INTERPRETER 16	/* offset of `interp` in PyThreadState, from 3.6 on */
#define OWNER_NOT_PYTHON 3	/* _PyInterpreterFrame.owner from here on: FRAME_OWNED_BY_CSTACK and others */

/*
 * Layouts of the runtimes, one for each build of an interpreter.
 * Writer: the collector. Reader: the walk of chains. Bytes: 14 KiB. Full: the collector counts the runtimes that do not
 * fit.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct trib_runtime);
	__uint(max_entries, TRIB_RUNTIMES_MAX);
} trib_runtimes SEC(".maps");

/*
 * Counters of every outcome of a chain (TRIB_CHAIN_COUNTER_SLOT).
 * Writer: the walk of chains, in the slots of its context and CPU. Reader: the collector. Bytes: 288 per possible CPU.
 * Never full: an array.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, __u64);
	__uint(max_entries, TRIB_CHAIN_COUNTER_SLOTS(TRIB_CONTEXT_COUNT));
} trib_chain_counters SEC(".maps");

static __always_inline void count_chain(const struct trib_state *state, __u32 counter)
{
	__u32 slot = TRIB_CHAIN_COUNTER_SLOT(state->chain.context, state->chain.kind, counter);
	__u64 *value = bpf_map_lookup_elem(&trib_chain_counters, &slot);

	if (value)
		(*value)++;
}

/* Counts a chain that cannot be read on, by its cause. Returns its trib_chain_end. */
static __always_inline int bad_chain(const struct trib_state *state, __u32 cause)
{
	count_chain(state, cause);
	return TRIB_CHAIN_UNREADABLE;
}

static __always_inline int is_pointer(__u64 value)
{
	return value >= USER_ADDRESS_MIN && value <= config.address_mask && !(value & 7);
}

/* Reads the word at `offset` of the object at `address`. Returns 0, or an error if the address is invalid. */
static __always_inline int read_pointed(__u64 *value, __u64 address, __u32 offset)
{
	return is_pointer(address) ? read_user(value, address + offset) : -1;
}

/* The thread's keys in its control block, and where a search for them begins and how far it goes, in bytes. */
#if defined(__TARGET_ARCH_x86)
#define KEYS_BEGIN 0x200
#define KEYS_CHUNKS 3
#define MUSL_KEYS 0x80
#define MUSL_KEYS_OTHER 0x88

static __always_inline int is_self(__u64 value, __u64 thread_pointer)
{
	return value == thread_pointer;
}
#else
#define KEYS_BEGIN (-2560)
#define KEYS_CHUNKS 5
#define MUSL_KEYS (-88)
#define MUSL_KEYS_OTHER (-96)

/* The control block lies below the thread pointer. Its size depends on the C library. */
static __always_inline int is_self(__u64 value, __u64 thread_pointer)
{
	return thread_pointer - value <= 4096;
}
#endif

static __always_inline int is_thread_state(const struct trib_state *state, const struct trib_python *layout,
					   __u64 address)
{
	__u64 self;

	return address != state->chain.taken && !read_pointed(&self, address, layout->thread_id) &&
	       is_self(self, state->walk.thread_pointer);
}

#define KEY_BLOCK_BYTES (8 * TRIB_KEY_WORDS)
#define KEY_BLOCKS 4
_Static_assert(KEY_BLOCKS * TRIB_KEY_WORDS <= 256, "trib_key_place.slot has 8 bits");

/*
 * Returns the address of a block of the thread's keys, or 0. glibc has 32 keys in each block, as pairs of a number and
 * the value. The first block is in the control block, and pointers to all blocks follow it. musl has 64 keys in each
 * block, two blocks in a row; the control block has a pointer to them, in one of two places.
 */
static __always_inline __u64 key_block(const struct trib_state *state, const struct trib_python *layout, __s32 keys,
				       __u32 block)
{
	__u64 thread_pointer = state->walk.thread_pointer, address;

	if (layout->musl) {
		if (read_user(&address, thread_pointer + (block < 2 ? MUSL_KEYS : MUSL_KEYS_OTHER)) || !is_pointer(address))
			return 0;
		return address + KEY_BLOCK_BYTES * (block & 1);
	}
	if (block == 0)
		return thread_pointer + keys;
	if (read_user(&address, thread_pointer + keys + KEY_BLOCK_BYTES + 8 * block) || !is_pointer(address))
		return 0;
	return address;
}

/*
 * Finds glibc's keys in the control block: behind the first block of keys lies a pointer to this block. Returns 1 and
 * stores the place if they are found. Global for the verifier: see trib_step.
 */
__noinline int trib_find_keys(__u32 context)
{
	struct trib_state *state = this_state(context);
	struct trib_key_place *place;
	__u64 begin, known;
	__u32 chunk, i;

	if (!state)
		return 0;
	place = &state->key_places[state->chain.runtime & (TRIB_RUNTIMES_MAX - 1)];
	begin = state->walk.thread_pointer + place->keys;
	if (place->keys && !read_user(&known, begin + KEY_BLOCK_BYTES) && known == begin)
		return 1;
	for (chunk = 0; chunk < KEYS_CHUNKS; chunk++) {
		begin = state->walk.thread_pointer + KEYS_BEGIN + chunk * KEY_BLOCK_BYTES;
		if (bpf_probe_read_user(state->object, KEY_BLOCK_BYTES, (void *)begin))
			continue;
		for (i = 0; i < TRIB_KEY_WORDS; i++) {
			if (state->object[i] == begin + 8 * i - KEY_BLOCK_BYTES) {
				place->keys = KEYS_BEGIN + (__s32)((chunk - 1) * KEY_BLOCK_BYTES + 8 * i);
				return 1;
			}
		}
	}
	return 0;
}

/* Looks for the thread state in one block of keys. Returns 1 if it is there. Global for the verifier: see trib_step. */
__noinline int trib_find_in_keys(__u32 context, __u32 block)
{
	struct trib_state *state = this_state(context);
	struct trib_runtime *runtime;
	struct trib_key_place *place;
	__u64 address;
	__u32 number, i;

	if (!state)
		return 0;
	number = state->chain.runtime;
	runtime = bpf_map_lookup_elem(&trib_runtimes, &number);
	if (!runtime)
		return 0;
	place = &state->key_places[number & (TRIB_RUNTIMES_MAX - 1)];
	address = key_block(state, &runtime->python, place->keys, block);
	if (!address || bpf_probe_read_user(state->object, KEY_BLOCK_BYTES, (void *)address))
		return 0;
	for (i = 0; i < TRIB_KEY_WORDS; i++) {
		if (!is_thread_state(state, &runtime->python, state->object[i]))
			continue;
		state->chain.state = state->object[i];
		place->slot = block * TRIB_KEY_WORDS + i;
		place->is_known = 1;
		return 1;
	}
	return 0;
}

/* Tries the place where the last search succeeded. Returns 1 if the thread state is there. */
static __always_inline int find_in_known_place(struct trib_state *state, const struct trib_python *layout,
					       const struct trib_key_place *place)
{
	__u64 block, address;

	if (!place->is_known)
		return 0;
	block = key_block(state, layout, place->keys, place->slot / TRIB_KEY_WORDS);
	if (!block || read_user(&address, block + 8 * (place->slot % TRIB_KEY_WORDS)) ||
	    !is_thread_state(state, layout, address))
		return 0;
	state->chain.state = address;
	return 1;
}

/*
 * Finds the thread state that a pthread key has, and stores it in the chain. Returns 1 if there is one. Threads that
 * never ran Python code have none. Global for the verifier: see trib_step.
 */
__noinline int trib_python_find_state(__u32 context)
{
	struct trib_state *state = this_state(context);
	struct trib_runtime *runtime;
	struct trib_key_place *place;
	__u32 number, block;

	if (!state)
		return 0;
	number = state->chain.runtime;
	runtime = bpf_map_lookup_elem(&trib_runtimes, &number);
	if (!runtime)
		return 0;
	place = &state->key_places[number & (TRIB_RUNTIMES_MAX - 1)];
	if (find_in_known_place(state, &runtime->python, place))
		return 1;
	if (!runtime->python.musl && !trib_find_keys(context)) {
		count_chain(state, TRIB_CHAIN_NO_KEYS);
		return 0;
	}
	for (block = 0; block < KEY_BLOCKS; block++) {
		if (trib_find_in_keys(context, block))
			return 1;
	}
	count_chain(state, TRIB_CHAIN_NO_STATE);
	return 0;
}

/*
 * Returns the state of the interpreter that the thread runs now, or 0 if it is unknown. It differs from `key_state`, the
 * state that a pthread key has, if a subinterpreter runs.
 */
static __always_inline __u64 running_state(const struct trib_state *state, const struct trib_python *layout,
					   __u64 key_state)
{
	__u64 address;

	if (layout->tls_state) {
		if (read_user(&address, state->walk.thread_pointer + layout->tls_state))
			return 0;
	} else if (!layout->runtime_current || read_pointed(&address, key_state, STATE_INTERPRETER) ||
		   read_pointed(&address, address, layout->interpreter_runtime) ||
		   read_pointed(&address, address, layout->runtime_current)) {
		return 0;
	}
	return is_thread_state(state, layout, address) ? address : 0;
}

#endif
