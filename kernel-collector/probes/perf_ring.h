#pragma once

#include <linux/perf_event.h>

#include <cstdint>
#include <span>
#include <vector>

namespace tributary {

// Reads one perf ring in memory that the kernel writes: records one after another in a power-of-two buffer, which may
// wrap in the middle of one. Each Refresh takes a snapshot, so a busy writer cannot keep the reader for ever. One
// thread. Source: perf_event_open(2), struct perf_event_mmap_page.
class PerfRing {
 public:
  // Borrows both for its life. `data` is a power of two of bytes.
  PerfRing(perf_event_mmap_page* page, std::span<const uint8_t> data) : page_(page), data_(data) {}

  // Makes visible what was written until now.
  void Refresh();
  // The next visible record, whole; empty when there is none. Valid until Pop or the next call.
  std::span<const uint8_t> Next();
  void Pop();
  // Gives the room of popped records back to the kernel.
  void Commit();

  // Times that a size made no sense and the rest of the snapshot was skipped.
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
