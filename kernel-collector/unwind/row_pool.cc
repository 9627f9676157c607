#include "kernel-collector/unwind/row_pool.h"

#include <algorithm>

#include "base/status.h"
#include "bpf/include/unwind.h"

namespace tributary {
namespace {

uint32_t Elements(uint32_t rows) { return rows / 2 + rows % 2; }

}  // namespace

void RowPool::AddChunk(std::span<uint64_t> elements) {
  TRIBUTARY_CHECK(elements.size() == TRIB_CHUNK_ELEMENTS && chunks_.size() < TRIB_CHUNKS_MAX);
  chunks_.push_back(Chunk{elements, RangeAllocator(TRIB_CHUNK_ELEMENTS)});
}

std::optional<uint32_t> RowPool::Allocate(uint32_t rows) {
  for (size_t i = 0; i < chunks_.size(); ++i) {
    auto element = chunks_[i].free.Allocate(Elements(rows));
    if (!element) continue;
    rows_in_use_ += 2 * Elements(rows);
    return static_cast<uint32_t>(i) * TRIB_CHUNK_ROWS + 2 * *element;
  }
  return std::nullopt;
}

void RowPool::Free(uint32_t first, uint32_t rows) {
  chunks_[first / TRIB_CHUNK_ROWS].free.Free(first % TRIB_CHUNK_ROWS / 2, Elements(rows));
  rows_in_use_ -= 2 * Elements(rows);
}

std::span<uint64_t> RowPool::ElementsOf(uint32_t first, uint32_t rows) const {
  return chunks_[first / TRIB_CHUNK_ROWS].elements.subspan(first % TRIB_CHUNK_ROWS / 2, Elements(rows));
}

bool RowPool::Write(uint32_t first, std::span<const uint32_t> rows) {
  constexpr size_t kPiece = UnwindMaps::kAccessBytesMax / sizeof(uint64_t);
  const std::span<uint64_t> elements = ElementsOf(first, static_cast<uint32_t>(rows.size()));
  for (size_t i = 0; i < elements.size(); ++i) {
    if (i % kPiece == 0) {
      const auto piece = elements.subspan(i, std::min(kPiece, elements.size() - i));
      if (!maps_.Access(std::as_bytes(piece))) return false;
    }
    uint64_t odd = 2 * i + 1 < rows.size() ? rows[2 * i + 1] : 0;
    elements[i] = odd << 32 | rows[2 * i];
  }
  return true;
}

// A block of rows begins at an even row, but a page's rows may begin at an odd one.
bool RowPool::BeginRead(uint32_t first, uint32_t rows) const {
  return maps_.Access(std::as_bytes(ElementsOf(first / 2 * 2, rows + first % 2)));
}

uint32_t RowPool::Read(uint32_t row) const {
  uint64_t element = chunks_[row / TRIB_CHUNK_ROWS].elements[row % TRIB_CHUNK_ROWS / 2];
  return static_cast<uint32_t>(row % 2 == 0 ? element : element >> 32);
}

}  // namespace tributary
