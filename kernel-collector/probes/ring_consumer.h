#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

namespace tributary {

// Reads a BPF ring buffer (BPF_MAP_TYPE_RINGBUF). A record may begin at the end of the buffer and continue at its
// start. libbpf's ring_buffer maps the buffer twice in a row, so that every record is in one piece. But the kernel
// counts each page as resident memory for each time that it is mapped. So this class maps the buffer once, and copies
// the records that wrap. Not thread-safe. Source: kernel/bpf/ringbuf.c, libbpf's ringbuf.c.
class RingConsumer {
 public:
  // Borrows the positions and the buffer, which must outlive the reader. The size of `data` is a power of two.
  RingConsumer(uint64_t* consumed, const uint64_t* produced, std::span<const uint8_t> data);

  // Passes the bytes of each record to `visit`, aligned to 8 bytes, and then returns their space to the kernel. Stops
  // at a record that a program is still writing. Reads at most as many bytes as the ring can contain: a busy kernel
  // must not block the caller. If the ring contains an impossible length, everything up to the ring's head is skipped,
  // and counts as one record without bytes. Allocates only if a record that wraps is longer than all earlier ones.
  void Drain(absl::FunctionRef<void(std::span<const uint8_t> record)> visit);

 private:
  std::optional<std::span<const uint8_t>> Next(uint64_t end);
  std::span<const uint8_t> InOnePiece(size_t at, size_t size);
  void Pop();

  uint64_t* consumed_;
  const uint64_t* produced_;
  std::span<const uint8_t> data_;
  uint64_t head_ = 0, tail_ = 0, next_ = 0;  // next_: the end of the current record
  std::vector<uint8_t> unwrapped_;           // at most as large as the ring
};

// The memory of a BPF ring buffer, mapped until the end of this object, and its reader.
class MappedRing {
 public:
  // `map_fd` is a BPF_MAP_TYPE_RINGBUF of `bytes` bytes, borrowed during the call. `name` is for errors.
  static absl::StatusOr<MappedRing> Map(int map_fd, size_t bytes, const char* name);
  MappedRing(MappedRing&& other) noexcept
      : consumer_page_(std::exchange(other.consumer_page_, {})),
        producer_pages_(std::exchange(other.producer_pages_, {})),
        consumer_(std::move(other.consumer_)) {}
  MappedRing& operator=(MappedRing&&) = delete;
  ~MappedRing();

  RingConsumer& consumer() { return *consumer_; }

 private:
  MappedRing() = default;

  std::span<uint8_t> consumer_page_, producer_pages_;
  std::optional<RingConsumer> consumer_;
};

}  // namespace tributary
