/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#ifndef TRIBUTARY_BPF_PYTHON_BPF_H
#define TRIBUTARY_BPF_PYTHON_BPF_H

#include "bpf/state.bpf.h"

/*
 * Layouts of the runtimes, one for each build of an interpreter.
 * Writer: the collector. Reader: the walk of chains. Bytes: 16 KiB. Full: the collector counts runtimes that do not
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
 * Runtimes of the processes that have no entry in trib_processes yet, by executable.
 * Writer: the collector. Reader: the walk of chains. Bytes: 80 KiB, allocated at once. Full: the first samples of a
 * process with another executable have no chains.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, struct trib_executable_key);
	__type(value, __u32);
	__uint(max_entries, TRIB_INTERPRETERS_MAX);
} trib_interpreters SEC(".maps");

#endif
