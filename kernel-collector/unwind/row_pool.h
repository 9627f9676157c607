#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernel-collector/unwind/range_allocator.h"

namespace tributary {

// Rows (bpf/include/unwind.h) in chunks of 8 MiB. A block of rows lies within one chunk and begins at an even row, so
// it is a span of whole elements. Rows are numbered over all chunks. Loop thread only.
class RowPool {
 public:
  // `elements` come from UnwindMaps::AddChunk and must outlive the pool.
  void AddChunk(std::span<uint64_t> elements);
  size_t chunks() const { return chunks_.size(); }

  // Returns the first row of a block for `rows` > 0 rows; nullopt if no chunk has that many free rows in one piece.
  std::optional<uint32_t> Allocate(uint32_t rows);
  void Free(uint32_t first, uint32_t rows);

  void Write(uint32_t first, std::span<const uint32_t> rows);
  uint32_t Read(uint32_t row) const;

  uint64_t rows_in_use() const { return rows_in_use_; }  // rounded up to even for each block

 private:
  struct Chunk {
    std::span<uint64_t> elements;
    RangeAllocator free;
  };

  std::vector<Chunk> chunks_;
  uint64_t rows_in_use_ = 0;
};

}  // namespace tributary
