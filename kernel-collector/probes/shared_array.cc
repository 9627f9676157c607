#include "kernel-collector/probes/shared_array.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/status.h"

namespace tributary {

SharedArray::SharedArray(Fd map, std::span<std::byte> memory)
    : map_(std::move(map)), memory_(memory), is_writable_((memory.size() + kWindowBytes - 1) / kWindowBytes) {}

SharedArray::SharedArray(SharedArray&& other) noexcept
    : map_(std::move(other.map_)),
      memory_(std::exchange(other.memory_, {})),
      is_writable_(std::move(other.is_writable_)) {}

SharedArray::~SharedArray() {
  if (!memory_.empty()) munmap(memory_.data(), memory_.size());
}

absl::StatusOr<SharedArray> SharedArray::Reserve(Fd map, size_t bytes, const char* name) {
  // A page that was never written is the kernel's page of zeros, which is not counted as resident.
  void* memory = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return ErrnoStatus("reserve memory for", name, errno);
  return SharedArray(std::move(map), {static_cast<std::byte*>(memory), bytes});
}

absl::StatusOr<SharedArray> SharedArray::Map(Fd map, size_t bytes, const char* name) {
  ASSIGN_OR_RETURN(SharedArray array, Reserve(std::move(map), bytes, name));
  if (!array.MakeWritable(array.memory_)) return ErrnoStatus("mmap", name, errno);
  return array;
}

bool SharedArray::Contains(std::span<const std::byte> part) const {
  return part.data() >= memory_.data() && part.data() + part.size() <= memory_.data() + memory_.size();
}

bool SharedArray::MakeWritable(std::span<const std::byte> part) {
  TRIBUTARY_CHECK(Contains(part));
  if (part.empty()) return true;
  const auto begin = static_cast<size_t>(part.data() - memory_.data());
  for (size_t window = begin / kWindowBytes; window <= (begin + part.size() - 1) / kWindowBytes; ++window) {
    if (!is_writable_[window] && !MapWindow(window)) return false;
  }
  return true;
}

bool SharedArray::MapWindow(size_t window) {
  const size_t begin = window * kWindowBytes, bytes = std::min(kWindowBytes, memory_.size() - begin);
  void* at = memory_.data() + begin;
  if (mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, map_.get(), static_cast<off_t>(begin)) == at) {
    is_writable_[window] = true;
    return true;
  }
  // The call may have removed the reserved pages.
  const int error = errno;
  TRIBUTARY_CHECK(mmap(at, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == at);
  errno = error;
  return false;
}

}  // namespace tributary
