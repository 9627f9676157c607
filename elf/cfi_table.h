#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "elf/cfi_entries.h"

namespace tributary {

// A table of function entries (FDEs), sorted by address. There are two kinds. OfFile uses the file's own search table
// (.eh_frame_hdr), which is read by pread on demand. OfScan makes a table, which needs 8 bytes of memory per entry.
class CfiTable {
 public:
  // Uses the file's search table: `count` pairs, which begin at `file_offset`. Each pair has two signed 32-bit numbers
  // relative to `base`: the address of a function and the address of its entry.
  static CfiTable OfFile(ElfFile* file, uint64_t file_offset, uint64_t base, uint64_t count);
  struct Scan {
    AddressRange text;          // entries outside of it are for functions that the linker removed
    bool ends_at_mark = false;  // false: end marks are skipped, because linkers may leave some between entries
  };
  // Makes a table by a scan of all entries. `bad` counts the entries that cannot be parsed. `left_out` counts the
  // entries above UnwindSource::kEntriesMax, and functions beyond 4 GiB of text.
  static CfiTable OfScan(CfiEntries& entries, const Scan& scan, uint64_t* bad, uint64_t* left_out);

  uint64_t size() const { return window_ ? count_ : own_.size(); }
  struct Item {
    uint64_t address = 0;
    uint64_t offset = 0;  // in the section; UINT64_MAX if the entry is outside of the section
  };
  // Returns item `i`, which must be less than size(). Returns nullopt if the file cannot be read (see status()).
  std::optional<Item> At(uint64_t i, const CfiSection& section);
  // Returns the number of items with an address ≤ `address`. Returns 0 if the file cannot be read (see status()).
  uint64_t UpperBound(uint64_t address, const CfiSection& section);
  absl::Status status() const { return window_ ? window_->status() : absl::OkStatus(); }
  void Release() {
    if (window_) window_->Release();
  }

 private:
  struct Own {
    uint32_t address;  // from base_
    uint32_t offset;
  };
  std::vector<Own> own_;
  std::unique_ptr<FileWindow> window_;
  uint64_t file_offset_ = 0, base_ = 0, count_ = 0;
};

}  // namespace tributary
