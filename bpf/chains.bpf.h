/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#ifndef TRIBUTARY_BPF_CHAINS_BPF_H
#define TRIBUTARY_BPF_CHAINS_BPF_H

/*
 * Adds the chains of language runtimes to a sample (bpf/include/runtimes.h): decides which runtimes the process has,
 * and calls the walk of each.
 */

#include <bpf/bpf_core_read.h>

#include "bpf/python.bpf.h"
#include "bpf/state.bpf.h"

/*
 * Runtimes of the processes that have no entry in trib_processes yet, by executable.
 * Writer: the collector. Reader: runtimes_of_executable. Bytes: 80 KiB, allocated at once. Full: the first samples of
 * processes with another executable have no chains.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, struct trib_executable_key);
	__type(value, __u32);
	__uint(max_entries, TRIB_INTERPRETERS_MAX);
} trib_interpreters SEC(".maps");

static __always_inline __u32 runtimes_of_executable(struct task_struct *task)
{
	struct trib_executable_key key = executable_of(task);
	__u32 *runtimes = bpf_map_lookup_elem(&trib_interpreters, &key);

	return runtimes ? *runtimes : 0;
}

/* Walks the chains of the runtime with this number, at most two: see trib_python.tls_state. */
static __always_inline void walk_runtime(struct trib_state *state, __u32 context, __u32 number)
{
	struct trib_runtime *runtime = bpf_map_lookup_elem(&trib_runtimes, &number);
	__u64 key_state, running;

	if (!runtime || runtime->kind != TRIB_RUNTIME_PYTHON)
		return;
	state->chain.runtime = number;
	state->chain.kind = TRIB_RUNTIME_PYTHON;
	key_state = trib_python_find_state(context) ? state->chain.state : 0;
	running = running_state(state, &runtime->python, key_state);
	if (running && running != key_state) {
		state->chain.state = running;
		trib_python_chain(context);
	}
	if (key_state) {
		state->chain.state = key_state;
		trib_python_chain(context);
		state->chain.taken = key_state;
	}
}

/*
 * Appends the chains of the process to the record. The caller must have walked the user stack. A global function, for
 * the verifier: see trib_step.
 */
__noinline int trib_walk_chains(__u32 context)
{
	struct trib_state *state = this_state(context);
	__u32 first, i;

	if (!state)
		return 0;
	first = (__u32)state->sample.kernel_frames + state->sample.user_frames;
	state->chain.context = context;
	state->chain.taken = 0;
	state->chain.next = first;
	state->chain.end = (wants_copy(state) ? TRIB_COPY_WORDS_MAX : TRIB_SAMPLE_WORDS_MAX) - TRIB_TAIL_WORDS_MAX;
	for (i = 0; i < TRIB_PROCESS_RUNTIMES_MAX; i++) {
		__u32 number = state->walk.runtimes >> (16 * i) & 0xffff;

		if (number)
			walk_runtime(state, context, number);
	}
	state->sample.runtime_words = state->chain.next - first;
	return 0;
}

#define YOUNG_NS 2000000000ull

/*
 * Returns 1 if the sample has a chain and its process has just started. Then the reader must be woken: it must read the
 * code objects of the chain from the process's memory, and the process may end soon.
 */
static __always_inline int has_young_chain(const struct trib_state *state)
{
	return state->sample.runtime_words && bpf_ktime_get_boot_ns() - state->sample.start_time_ns < YOUNG_NS;
}

#endif
