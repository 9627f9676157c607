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
// written for the first time. Other elements can be read, and are 0: only arrays that no BPF program writes, or that
// are writable as a whole, may be read. Keeps the BPF map alive. Not thread-safe.
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

 private:
  SharedArray(Fd map, std::span<std::byte> memory);
  bool MapWindow(size_t window);

  Fd map_;
  std::span<std::byte> memory_;
  std::vector<bool> is_writable_;  // by window
};

}  // namespace tributary
