// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * The one object of the collector. Samples the running threads: one perf event (cpu-clock) per CPU calls
 * trib_sample_cpu once per period. The program runs in the timer's interrupt and never nests on a CPU. The programs of
 * process_events.bpf.h report what happens to processes.
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "bpf/process_events.bpf.h"
#include "bpf/take_sample.bpf.h"
#ifdef TRIB_TEST_STOP
#include "bpf/test_stop.bpf.h"
#endif
#ifdef TRIB_TEST_NESTED
#include "bpf/test_nested.bpf.h"
#endif

SEC("perf_event")
int trib_sample_cpu(struct trib_perf_event_context *context)
{
	const struct trib_program tick = {.context = TRIB_CONTEXT_TICK, .type = TRIB_TYPE_CPU};
	__u64 time_ns = bpf_ktime_get_ns();
	int in_user = TRIB_IN_USER(context);
	const struct trib_control *control;
	struct trib_state *state;

	/* The idle task of each CPU has thread id 0. No other task has this id. */
	if ((__u32)bpf_get_current_pid_tgid() == 0 && !config.sample_idle) {
		count(tick, TRIB_IDLE);
		return 0;
	}
	control = this_control();
	state = begin_sample(tick, control, time_ns);
	if (!state)
		return 0;
	state->sample.value = control ? *(const volatile __u64 *)&control->period_ns : 0;
	if (in_user)
		state->registers = *context;
	read_stacks(context, state, tick, in_user);
	finish_sample(state, tick);
#ifdef TRIB_TEST_STOP
	stop_if_asked(&state->sample);
#endif
	count_by(tick, TRIB_RUN_NS, bpf_ktime_get_ns() - time_ns);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
