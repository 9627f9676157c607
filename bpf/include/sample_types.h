/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#ifndef TRIBUTARY_BPF_SAMPLE_TYPES_H
#define TRIBUTARY_BPF_SAMPLE_TYPES_H

/*
 * The sample types that kernel-collector measures: X(NAME, Name, number, name, unit, aggregation). Name and unit are as
 * in OTLP and pprof. The aggregation is Sum, or Last for a gauge (profile/sample_types.h). To add a type, add it only
 * here. The numbers are part of the wire format and of the store: only append new numbers, without gaps.
 *   CPU      the value of a sample is the sampling period; in OTLP "samples/count" with a period
 *   OFF_CPU  the value is the time during which the thread did not run
 */
#define TRIB_SAMPLE_TYPES(X) \
	X(CPU, Cpu, 1, "cpu", "nanoseconds", Sum) \
	X(OFF_CPU, OffCpu, 2, "off_cpu", "nanoseconds", Sum)

/*
 * Not a sample type: the index of process events (process_events.h) in the arrays of counters and of struct
 * trib_session, which are indexed by sample type.
 */
#define TRIB_TYPE_PROCESS_EVENT 0

#define TRIB_SAMPLE_TYPE_NUMBER(NAME, Name, number, name, unit, aggregation) TRIB_TYPE_##NAME = number,
enum trib_sample_type { TRIB_SAMPLE_TYPES(TRIB_SAMPLE_TYPE_NUMBER) TRIB_TYPE_END };	/* last number + 1 */
#undef TRIB_SAMPLE_TYPE_NUMBER

/* All type numbers are below this limit. Counters and struct trib_session have arrays of this size. */
#define TRIB_SAMPLE_TYPES_MAX 8
#ifdef __cplusplus
static_assert(TRIB_TYPE_END <= TRIB_SAMPLE_TYPES_MAX);
#else
_Static_assert(TRIB_TYPE_END <= TRIB_SAMPLE_TYPES_MAX, "room for every type");
#endif

#endif
