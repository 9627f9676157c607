/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#ifndef TRIBUTARY_BPF_TEST_NESTED_BPF_H
#define TRIBUTARY_BPF_TEST_NESTED_BPF_H

/*
 * For the test of contexts: each context that is not an interrupt has a program that takes a sample of every system
 * call of one process. The program is so slow that the tick interrupts it. This header is part of the sampler's object
 * only in a build with TRIB_TEST_NESTED.
 */

#include "bpf/include/test_nested.h"
#include "bpf/take_sample.bpf.h"

/* Writer: the test. Reader: the programs. Bytes: 8. Never full: an array. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct trib_nested_request);
	__uint(max_entries, 1);
} trib_test_nested SEC(".maps");

static __always_inline int sample_slowly(void *context, struct trib_program program)
{
	__u64 time_ns = bpf_ktime_get_ns();
	__u32 key = 0, i;
	struct trib_nested_request *request = bpf_map_lookup_elem(&trib_test_nested, &key);
	struct trib_state *state;

	if (!request || request->pid != bpf_get_current_pid_tgid() >> 32)
		return 0;
	state = begin_sample(program, this_control(), time_ns);
	if (!state)
		return 0;
	read_stacks(context, state, program, 0);
	state->sample.value = time_ns;
	for (i = 0; i < TRIB_NESTED_PAUSES; i++)
		bpf_ktime_get_ns();
	add_to_tail(state, TRIB_NESTED_FIRST_BIT, time_ns ^ program.context);
	add_to_tail(state, TRIB_NESTED_SECOND_BIT, ~time_ns);
	finish_sample(state, program);
	return 0;
}

#define NESTED_PROGRAM(NAME, name) \
	SEC("raw_tp/sys_enter") \
	int trib_nested_##NAME(void *context) \
	{ \
		const struct trib_program program = {.context = TRIB_CONTEXT_##NAME, .type = TRIB_TYPE_END - 1}; \
		return program.context == TRIB_CONTEXT_TICK ? 0 : sample_slowly(context, program); \
	}
TRIB_CONTEXTS(NESTED_PROGRAM)

#endif
