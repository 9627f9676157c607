#pragma once

#include <cstddef>
#include <cstdint>

// The size of the ring of samples, and how often it must be read.
//
// The ring is sized once, at start, for two seconds of samples at the rate of that time. A larger ring would cost
// memory on every node that is never used at 19 Hz. A reload may raise the rate; then the same ring fills sooner and is
// read sooner. At start, the ring is read when at most a tenth of it is full. After a raise, it is read when a fifth is
// full, so the loop may be late by four times its period. Both counts assume 1 KiB per sample, about twice the average.
// The limit is a ring that fills in 50 ms, since a busy machine may keep a thread from running for that long. A higher
// rate needs a restart, which sizes the ring for it.

namespace tributary {

// Returns a power of two, as the kernel requires.
uint32_t SampleRingBytes(uint32_t rate_hz, size_t cpus, uint32_t seconds);

// Returns the time between two reads of a ring of `ring_bytes`.
uint64_t SampleRingPollMs(uint64_t ring_bytes, int64_t period_ns, size_t cpus);

// Returns the highest rate that a ring of `ring_bytes` takes without losses.
uint32_t SampleRingRateMaxHz(uint64_t ring_bytes, size_t cpus);

}  // namespace tributary
