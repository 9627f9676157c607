/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#ifndef TRIBUTARY_BPF_SAMPLE_TYPES_H
#define TRIBUTARY_BPF_SAMPLE_TYPES_H

/*
 * The sample types that our own nodes measure: X(NAME, Name, number, name, unit, aggregation). Name and unit are those
 * of OTLP and pprof. A new type is added only here. Aggregation: Sum, or Last for a gauge (profile/sample_types.h). The
 * numbers are on the wire and in the store: append only, without holes.
 *   CPU      the current sampling period; OTLP "samples/count" with period
 *   OFF_CPU  time off the CPU
 */
#define TRIB_SAMPLE_TYPES(X) \
	X(CPU, Cpu, 1, "cpu", "nanoseconds", Sum) \
	X(OFF_CPU, OffCpu, 2, "off_cpu", "nanoseconds", Sum)

#define TRIB_SAMPLE_TYPE_NUMBER(NAME, Name, number, name, unit, aggregation) TRIB_TYPE_##NAME = number,
enum trib_sample_type { TRIB_SAMPLE_TYPES(TRIB_SAMPLE_TYPE_NUMBER) TRIB_TYPE_END };	/* one more than the last */
#undef TRIB_SAMPLE_TYPE_NUMBER

/* The limit of type numbers, counted from 0, for the counters and for the session that a killed collector leaves. */
#define TRIB_SAMPLE_TYPES_MAX 8
#ifdef __cplusplus
static_assert(TRIB_TYPE_END <= TRIB_SAMPLE_TYPES_MAX);
#else
_Static_assert(TRIB_TYPE_END <= TRIB_SAMPLE_TYPES_MAX, "room for every type");
#endif

#endif
