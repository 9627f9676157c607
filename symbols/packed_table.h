#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/memory_file.h"
#include "symbols/symbol_digest.h"

namespace tributary {

// A symbol table, compressed as one zstd frame. An encoded table is sent and stored; a table in flat form stays on its
// node (docs/symbol-table.md). A small one is in memory. A large one is in a memory file, which copies of the
// PackedTable share. Compression of a large table takes tens of milliseconds: do not call Of() on an event loop.
class PackedTable {
 public:
  static PackedTable Of(std::string_view encoded);

  PackedTable(std::string zstd, uint64_t raw_bytes, const SymbolDigest& digest = {});
  PackedTable(MemoryFile zstd, uint64_t raw_bytes, const SymbolDigest& digest = {});

  uint64_t stored_bytes() const { return stored_bytes_; }
  uint64_t raw_bytes() const { return raw_bytes_; }  // size of the table before compression
  // XXH3-64 of the compressed bytes. If the tables of two kernel-collectors have the same key, their bytes are the
  // same. So one of them can continue an interrupted upload of the other. 0: unknown.
  uint64_t key() const { return key_; }
  void set_key(uint64_t key) { key_ = key; }              // 0: like a sender of an earlier release
  const SymbolDigest& digest() const { return digest_; }  // of an encoded table; SymbolDigest(): unknown or flat
  static uint64_t KeyOf(std::string_view zstd);

  bool in_file() const { return file_ != nullptr; }
  // Returns the compressed bytes of [offset, offset + size). The range must be within stored_bytes().
  absl::StatusOr<std::string> Read(uint64_t offset, size_t size) const;

 private:
  std::string memory_;
  std::shared_ptr<const MemoryFile> file_;
  uint64_t stored_bytes_ = 0, raw_bytes_ = 0, key_ = 0;
  SymbolDigest digest_;
};

}  // namespace tributary
