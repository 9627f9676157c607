#pragma once

#include <cstddef>
#include <cstdint>

// The size of the ring of samples, and how often it must be read.
//
// The size of the ring is chosen once, at start: two seconds of samples at the sampling rate at start, but at least 64
// KiB and at most 128 MiB. A larger ring would cost memory on every node, and at 19 Hz the additional memory would
// never be used. A reload may raise the rate: the same ring then fills faster and is read more often. If the ring has
// space for at least two seconds of samples, at most about a tenth of it is full when it is read. At higher rates, at
// most a fifth is full, so a read may be late by four poll periods. Both numbers assume 1 KiB per sample, about twice
// the average. The highest rate is the rate that fills the ring in 50 ms. At still higher rates, samples would be lost
// when a busy machine delays the reading thread. To use a higher rate, restart the collector: it then chooses a larger
// ring.

namespace tributary {

// Returns the size of the ring in bytes: a power of two, as the kernel requires.
uint32_t SampleRingBytes(uint32_t rate_hz, size_t cpus, uint32_t seconds);

// Returns the size of the ring of process events in bytes: a power of two. It has space for 4,500 records, or for 290
// per CPU on large machines. The collector is woken when a quarter is filled, so this is enough for a storm of short
// processes on every CPU, even if the collector is late by 100 ms.
uint32_t EventRingBytes(size_t cpus);

// Returns for how many ended processes the programs remember that they have reported the exit (trib_exited). They
// remember a process until the kernel releases it. The kernel gives each CPU a stock of 128 free entries of such a map.
// When all entries are in such stocks, a CPU without free entries replaces its newest ones. So the map has twice as
// many entries as the stocks. For the same reason, trib_handled has as many.
uint32_t EndedProcessesMax(size_t possible_cpus);

// Returns the time between two reads of a ring of `ring_bytes`.
uint64_t SampleRingPollMs(uint64_t ring_bytes, int64_t period_ns, size_t cpus);

// Returns the highest sampling rate for a ring of `ring_bytes`.
uint32_t SampleRingRateMaxHz(uint64_t ring_bytes, size_t cpus);

}  // namespace tributary
