#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "base/fd.h"

namespace tributary {

// A BPF array that this process writes through its memory. The kernel counts every mapped page of a BPF array as
// resident memory of the process, even if it was never used. So only windows of 64 KiB are mapped, each before it is
// written for the first time. Elements of other windows can be read, too, but read as 0. Keeps the BPF map alive. Not
// thread-safe.
class SharedArray {
 public:
  static constexpr size_t kWindowBytes = 64u << 10;  // a multiple of the page size

  // `map` is a BPF_F_MMAPABLE array of `bytes` bytes. `name` is for errors.
  static absl::StatusOr<SharedArray> Reserve(Fd map, size_t bytes, const char* name);
  // The same, but all elements are writable at once.
  static absl::StatusOr<SharedArray> Map(Fd map, size_t bytes, const char* name);
  SharedArray(SharedArray&& other) noexcept;
  SharedArray& operator=(SharedArray&&) = delete;
  ~SharedArray();

  // All elements, also those that are not writable yet.
  template <typename T>
  std::span<T> As() const {
    return {reinterpret_cast<T*>(memory_.data()), memory_.size() / sizeof(T)};
  }
  bool Contains(std::span<const std::byte> part) const;
  // Makes the elements of `part`, which the array contains, writable. Returns false if mmap fails.
  [[nodiscard]] bool MakeWritable(std::span<const std::byte> part);

  // The same for one window: the number of the window is its position / kWindowBytes.
  size_t WindowOf(const std::byte* element) const {
    return static_cast<size_t>(element - memory_.data()) / kWindowBytes;
  }
  bool IsMapped(size_t window) const { return is_mapped_[window]; }
  [[nodiscard]] bool MapWindow(size_t window);
  // Returns false if mmap fails, for example at the limit of mappings per process (vm.max_map_count). The window then
  // stays mapped.
  [[nodiscard]] bool UnmapWindow(size_t window);

 private:
  SharedArray(Fd map, std::span<std::byte> memory);
  std::span<std::byte> MemoryOf(size_t window) const;
  bool ReserveAgain(size_t window) const;

  Fd map_;
  std::span<std::byte> memory_;
  std::vector<bool> is_mapped_;  // by window
};

}  // namespace tributary
