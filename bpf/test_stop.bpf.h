/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#ifndef TRIBUTARY_BPF_TEST_STOP_BPF_H
#define TRIBUTARY_BPF_TEST_STOP_BPF_H

/* For the test that bpf/include/test_stop.h describes. */

#include "bpf/include/test_stop.h"
#include "bpf/state.bpf.h"

#define TRIB_SIGSTOP 19	/* x86-64, arm64 */

/* Writer: the test, then trib_sample_cpu. Reader: the test. Bytes: 16. Never full: an array. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct trib_stop_request);
	__uint(max_entries, 1);
} trib_test_stop SEC(".maps");

/*
 * Sends SIGSTOP to the current thread. The signal is raised in the interrupt that directly follows this one. The thread
 * takes the signal before it executes another of its own instructions: at once, or when it leaves the kernel.
 */
static __always_inline void stop_if_asked(const struct trib_sample *sample)
{
	__u32 key = 0;
	struct trib_stop_request *request = bpf_map_lookup_elem(&trib_test_stop, &key);

	if (!request || request->pid != sample->pid || request->time_ns || sample->stop == TRIB_STOP_NONE)
		return;
	if (bpf_send_signal_thread(TRIB_SIGSTOP))
		return;
	request->tid = sample->tid;
	request->time_ns = sample->time_ns;
}

#endif
