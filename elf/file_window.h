#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "elf/elf_file.h"

namespace tributary {

// Reads a file through a cache of a few blocks of 16 KiB. Unwind entries are requested nearly in the order in which
// they are in the file. So thousands of entries need only a few dozen calls of pread. The memory does not depend on the
// file's contents, except after UseMemory. Any thread may use an object, but only one thread at a time. Borrows the
// file.
class FileWindow {
 public:
  static constexpr size_t kBlockBytes = 16u << 10;
  static constexpr size_t kViewBytesMax = 1u << 20;
  // The limit for the bytes that are read between two calls of Release(). With this limit, a hostile file takes at most
  // a few tenths of a second.
  static constexpr uint64_t kReadBytesMax = uint64_t{2} << 30;

  FileWindow(ElfFile* file, size_t blocks) : file_(file), blocks_(blocks) {}

  // Reads from `bytes` instead of the file. For a section that was decompressed.
  void UseMemory(std::string bytes) {
    memory_ = std::move(bytes);
    in_memory_ = true;
  }

  // Returns the bytes of [offset, offset + size), at most kViewBytesMax. They are valid until the next call. Returns
  // nullptr if they cannot be read (see status()).
  const char* View(uint64_t offset, size_t size) {
    uint64_t number = offset / kBlockBytes;
    size_t within = offset % kBlockBytes;
    Block& block = blocks_[number % blocks_.size()];
    if (block.number == number && within + size <= block.size && !in_memory_) return block.bytes.get() + within;
    return SlowView(offset, size);
  }
  const absl::Status& status() const { return status_; }

  // Frees the memory, also that of UseMemory, and clears the error. Earlier views become invalid.
  void Release();

 private:
  struct Block {
    uint64_t number = UINT64_MAX;
    size_t size = 0;
    std::unique_ptr<char[]> bytes;
  };
  const char* SlowView(uint64_t offset, size_t size);
  Block* Load(uint64_t number);

  ElfFile* file_;
  std::vector<Block> blocks_;
  std::string scratch_, memory_;
  bool in_memory_ = false;
  uint64_t bytes_read_ = 0;
  absl::Status status_;
};

}  // namespace tributary
