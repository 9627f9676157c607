#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "base/memory_file.h"
#include "base/zstd.h"

namespace tributary {

// An encoded symbol table as it travels and rests, one zstd frame: a small one in memory, a large one that waits to be
// sent in a memory file. Copies share the file.
class PackedTable {
 public:
  // Packing a large one takes tens of milliseconds: not for a loop.
  static PackedTable Of(std::string_view encoded) { return {ZstdCompress(encoded), encoded.size()}; }

  PackedTable(std::string zstd, uint64_t raw_bytes)
      : memory_(std::move(zstd)), stored_bytes_(memory_.size()), raw_bytes_(raw_bytes) {}
  PackedTable(MemoryFile zstd, uint64_t raw_bytes)
      : file_(std::make_shared<const MemoryFile>(std::move(zstd))),
        stored_bytes_(file_->size()),
        raw_bytes_(raw_bytes) {}

  uint64_t stored_bytes() const { return stored_bytes_; }
  uint64_t raw_bytes() const { return raw_bytes_; }  // of the encoded table
  bool in_file() const { return file_ != nullptr; }
  // All of [offset, offset + size), which lies within the stored bytes.
  absl::StatusOr<std::string> Read(uint64_t offset, size_t size) const {
    if (file_ != nullptr) return file_->Read(offset, size);
    return memory_.substr(offset, size);
  }

 private:
  std::string memory_;
  std::shared_ptr<const MemoryFile> file_;
  uint64_t stored_bytes_ = 0, raw_bytes_ = 0;
};

}  // namespace tributary
