/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#ifndef TRIBUTARY_BPF_SAMPLE_TYPES_H
#define TRIBUTARY_BPF_SAMPLE_TYPES_H

/*
 * What a sample of our own nodes measures: X(NAME, Name, number, name, unit), the last two as OTLP and pprof call them. A type
 * is added here and nowhere else. Numbers are on the wire and in the store: append only, without holes.
 *   CPU      the sampling period in force; OTLP "samples/count" with period
 *   OFF_CPU  time off the CPU
 */
#define TRIB_SAMPLE_TYPES(X) \
	X(CPU, Cpu, 1, "cpu", "nanoseconds") \
	X(OFF_CPU, OffCpu, 2, "off_cpu", "nanoseconds")

#endif
