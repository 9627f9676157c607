#include "kernel-collector/probes/ring_consumer.h"

#include <linux/bpf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/status.h"

namespace tributary {
namespace {

constexpr uint64_t kAlignment = 8;  // of records

}  // namespace

RingConsumer::RingConsumer(uint64_t* consumed, const uint64_t* produced, std::span<const uint8_t> data)
    : consumed_(consumed),
      produced_(produced),
      data_(data),
      head_(__atomic_load_n(consumed, __ATOMIC_RELAXED)),
      tail_(head_),
      next_(head_) {}

void RingConsumer::Drain(absl::FunctionRef<void(std::span<const uint8_t> record)> visit) {
  const uint64_t end = tail_ + data_.size();
  while (const auto record = Next(end)) {
    visit(*record);
    Pop();
  }
}

// Returns the next record that begins before `end`. Skips discarded records.
std::optional<std::span<const uint8_t>> RingConsumer::Next(uint64_t end) {
  while (tail_ < end) {
    if (tail_ == head_) head_ = __atomic_load_n(produced_, __ATOMIC_ACQUIRE) / kAlignment * kAlignment;
    if (tail_ == head_) return std::nullopt;
    const size_t at = tail_ & (data_.size() - 1);
    // A program reserves space before it writes the record. While the busy bit is set, the record is not complete.
    const auto* length = reinterpret_cast<const uint32_t*>(data_.data() + at);
    const uint32_t header = __atomic_load_n(length, __ATOMIC_ACQUIRE);
    if ((header & BPF_RINGBUF_BUSY_BIT) != 0) return std::nullopt;
    const uint64_t size = header & ~BPF_RINGBUF_DISCARD_BIT;
    const uint64_t whole = (BPF_RINGBUF_HDR_SZ + size + kAlignment - 1) / kAlignment * kAlignment;
    if (head_ - tail_ > data_.size() || whole > head_ - tail_) {
      next_ = head_;
      return std::span<const uint8_t>();
    }
    next_ = tail_ + whole;
    if ((header & BPF_RINGBUF_DISCARD_BIT) == 0)
      return InOnePiece((at + BPF_RINGBUF_HDR_SZ) & (data_.size() - 1), size);
    Pop();
  }
  return std::nullopt;
}

std::span<const uint8_t> RingConsumer::InOnePiece(size_t at, size_t size) {
  const size_t first = data_.size() - at;
  if (size <= first) return data_.subspan(at, size);
  if (unwrapped_.size() < size) unwrapped_.resize(size);
  std::copy_n(data_.begin() + static_cast<ptrdiff_t>(at), first, unwrapped_.begin());
  std::copy_n(data_.begin(), size - first, unwrapped_.begin() + static_cast<ptrdiff_t>(first));
  return {unwrapped_.data(), size};
}

void RingConsumer::Pop() {
  tail_ = next_;
  __atomic_store_n(consumed_, tail_, __ATOMIC_RELEASE);
}

// Page 0 of the map has the consumer's position, and is the only writable one. Page 1 has the producer's position. The
// buffer begins at page 2.
absl::StatusOr<MappedRing> MappedRing::Map(int map_fd, size_t bytes, const char* name) {
  const auto page = static_cast<size_t>(getpagesize());
  MappedRing ring;
  void* consumer = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED, map_fd, 0);
  if (consumer == MAP_FAILED) return ErrnoStatus("map", name, errno);
  ring.consumer_page_ = {static_cast<uint8_t*>(consumer), page};
  void* producer = mmap(nullptr, page + bytes, PROT_READ, MAP_SHARED, map_fd, static_cast<off_t>(page));
  if (producer == MAP_FAILED) return ErrnoStatus("map", name, errno);
  ring.producer_pages_ = {static_cast<uint8_t*>(producer), page + bytes};
  ring.consumer_.emplace(static_cast<uint64_t*>(consumer), static_cast<const uint64_t*>(producer),
                         ring.producer_pages_.subspan(page));
  return ring;
}

MappedRing::~MappedRing() {
  for (const std::span<uint8_t> pages : {consumer_page_, producer_pages_}) {
    if (!pages.empty()) munmap(pages.data(), pages.size());
  }
}

}  // namespace tributary
