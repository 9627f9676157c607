#include "kernel-collector/probes/shared_array.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/status.h"

namespace tributary {
namespace {

constexpr int kReserved = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

// Returns false if some of the pages are neither mapped nor reserved.
bool HasAllPages(std::span<std::byte> window) {
  unsigned char is_resident[SharedArray::kWindowBytes >> 12];  // for the smallest pages
  return mincore(window.data(), window.size(), is_resident) == 0;
}

}  // namespace

SharedArray::SharedArray(Fd map, std::span<std::byte> memory)
    : map_(std::move(map)), memory_(memory), is_mapped_((memory.size() + kWindowBytes - 1) / kWindowBytes) {}

SharedArray::SharedArray(SharedArray&& other) noexcept
    : map_(std::move(other.map_)), memory_(std::exchange(other.memory_, {})), is_mapped_(std::move(other.is_mapped_)) {}

SharedArray::~SharedArray() {
  if (!memory_.empty()) munmap(memory_.data(), memory_.size());
}

absl::StatusOr<SharedArray> SharedArray::Reserve(Fd map, size_t bytes, const char* name) {
  // A page that was never written is the kernel's page of zeros, which is not counted as resident.
  void* memory = mmap(nullptr, bytes, PROT_READ, kReserved, -1, 0);
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
    if (!is_mapped_[window] && !MapWindow(window)) return false;
  }
  return true;
}

std::span<std::byte> SharedArray::MemoryOf(size_t window) const {
  const size_t begin = window * kWindowBytes;
  return memory_.subspan(begin, std::min(kWindowBytes, memory_.size() - begin));
}

bool SharedArray::MapWindow(size_t window) {
  const std::span<std::byte> at = MemoryOf(window);
  const auto offset = static_cast<off_t>(window * kWindowBytes);
  if (mmap(at.data(), at.size(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, map_.get(), offset) == at.data()) {
    is_mapped_[window] = true;
    return true;
  }
  const int error = errno;
  (void)ReserveAgain(window);  // the call may have removed the reserved pages
  errno = error;
  return false;
}

bool SharedArray::UnmapWindow(size_t window) {
  if (!ReserveAgain(window)) return false;
  is_mapped_[window] = false;
  return true;
}

// Returns false if the window stays as it is. The kernel checks its limits (do_mmap in mm/mmap.c) before it removes the
// pages that are there. If they were gone, other memory of this process could take their place.
bool SharedArray::ReserveAgain(size_t window) const {
  const std::span<std::byte> at = MemoryOf(window);
  if (mmap(at.data(), at.size(), PROT_READ, kReserved | MAP_FIXED, -1, 0) == at.data()) return true;
  TRIBUTARY_CHECK(HasAllPages(at));
  return false;
}

}  // namespace tributary
