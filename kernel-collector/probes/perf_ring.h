#pragma once

#include <linux/perf_event.h>

#include <cstdint>
#include <span>
#include <vector>

namespace tributary {

// Reads one perf ring, a buffer to which the kernel writes records. The size of the buffer is a power of two. A record
// may begin at the end of the buffer and continue at its start. Only records that were written before the last Refresh
// are visible, so the reader comes to an end even if the kernel writes fast. Not thread-safe. Source:
// perf_event_open(2), struct perf_event_mmap_page.
class PerfRing {
 public:
  // Borrows `page` and `data`, which must outlive the ring. The size of `data` in bytes is a power of two.
  PerfRing(perf_event_mmap_page* page, std::span<const uint8_t> data) : page_(page), data_(data) {}

  // Takes a snapshot: makes all records visible that were written until now.
  void Refresh();
  // Returns the next visible record as a whole; empty if there are no more records. The result is valid until the next
  // call of Next or Pop.
  std::span<const uint8_t> Next();
  void Pop();
  // Returns the space of popped records to the kernel.
  void Commit();

  // How often the rest of a snapshot was skipped, because a record's size or the ring's head was invalid.
  uint64_t corruptions() const { return corruptions_; }

 private:
  perf_event_mmap_page* page_;
  std::span<const uint8_t> data_;
  uint64_t head_ = 0, tail_ = 0;
  uint16_t next_size_ = 0;
  uint64_t corruptions_ = 0;
  std::vector<uint8_t> unwrapped_;  // at most 64 KiB: a record's size is 16 bits
};

}  // namespace tributary
