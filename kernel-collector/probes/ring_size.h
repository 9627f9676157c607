#pragma once

#include <cstddef>
#include <cstdint>

// How large the ring of samples is, and how often it must be read.
//
// The ring is sized once, at start, for two seconds of samples at the rate of then: memory that is never used at 19 Hz
// would be paid for on every node. A reload may raise the rate; then the same ring fills sooner and is read sooner. At
// start a reading comes when a tenth of the ring is full at most; after a raise it comes when a fifth is, so that the
// loop may be late by four times its period. Both count a sample as 1 KiB, about twice what it is on average. That ends
// where a full ring lasts for 50 ms only, as long as a busy machine may keep a thread from running: such a rate needs a
// restart, which sizes the ring for it.

namespace tributary {

// A power of two, as the kernel wants it.
uint32_t SampleRingBytes(uint32_t rate_hz, size_t cpus, uint32_t seconds);

// Between two readings of a ring of that size.
uint64_t SampleRingPollMs(uint64_t ring_bytes, int64_t period_ns, size_t cpus);

// The highest rate that a ring of that size takes without losses.
uint32_t SampleRingRateMaxHz(uint64_t ring_bytes, size_t cpus);

}  // namespace tributary
