#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernel-collector/probes/unwind_maps.h"
#include "kernel-collector/unwind/range_allocator.h"

namespace tributary {

// Stores unwind rows (bpf/include/unwind.h) in chunks of 8 MiB. A block of rows is within one chunk. An element
// contains two rows, so a block begins at an even row number. Row numbers continue from one chunk to the next. Loop
// thread only.
class RowPool {
 public:
  // `maps` must outlive the pool.
  explicit RowPool(UnwindMaps& maps) : maps_(maps) {}

  // `elements` come from UnwindMaps::AddChunk and must outlive the pool.
  void AddChunk(std::span<uint64_t> elements);
  size_t chunks() const { return chunks_.size(); }

  // Returns the number of the first row of a new block of `rows` > 0 rows; nullopt if no chunk has that many free rows
  // next to each other.
  std::optional<uint32_t> Allocate(uint32_t rows);
  void Free(uint32_t first, uint32_t rows);

  // Writes a block. Returns false if the system has no memory for it; then the block's content is undefined.
  [[nodiscard]] bool Write(uint32_t first, std::span<const uint32_t> rows);
  // Call it before Read. Read may be used for these rows, which are at most 16,000, until the next call of BeginRead or
  // Write. Returns false if the system has no memory for it.
  [[nodiscard]] bool BeginRead(uint32_t first, uint32_t rows) const;
  uint32_t Read(uint32_t row) const;

  uint64_t rows_in_use() const { return rows_in_use_; }  // rounded up to even for each block

 private:
  struct Chunk {
    std::span<uint64_t> elements;
    RangeAllocator free;
  };

  std::span<uint64_t> ElementsOf(uint32_t first, uint32_t rows) const;

  UnwindMaps& maps_;
  std::vector<Chunk> chunks_;
  uint64_t rows_in_use_ = 0;
};

}  // namespace tributary
