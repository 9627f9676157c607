#include "kernel-collector/probes/perf_ring.h"

#include <algorithm>
#include <cstring>

namespace tributary {

void PerfRing::Refresh() {
  uint64_t head = __atomic_load_n(&page_->data_head, __ATOMIC_ACQUIRE);
  if (head - tail_ > data_.size()) {  // more than one lap: no content can be trusted
    ++corruptions_;
    tail_ = head;
  }
  head_ = head;
  next_size_ = 0;
}

std::span<const uint8_t> PerfRing::Next() {
  if (head_ == tail_) return {};
  size_t mask = data_.size() - 1;
  size_t at = tail_ & mask;
  perf_event_header header = {};
  // Records are multiples of 8 bytes, so a header never wraps.
  if (at + sizeof(header) <= data_.size()) memcpy(&header, data_.data() + at, sizeof(header));
  if (header.size < sizeof(header) || header.size % 8 != 0 || header.size > head_ - tail_) {
    ++corruptions_;
    tail_ = head_;
    return {};
  }
  next_size_ = header.size;
  if (at + header.size <= data_.size()) return data_.subspan(at, header.size);
  size_t first = data_.size() - at;
  unwrapped_.resize(header.size);
  std::copy_n(data_.begin() + at, first, unwrapped_.begin());
  std::copy_n(data_.begin(), header.size - first, unwrapped_.begin() + first);
  return unwrapped_;
}

void PerfRing::Pop() {
  tail_ += next_size_;
  next_size_ = 0;
}

void PerfRing::Commit() { __atomic_store_n(&page_->data_tail, tail_, __ATOMIC_RELEASE); }

}  // namespace tributary
