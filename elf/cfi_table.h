#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "elf/cfi_entries.h"

namespace tributary {

// Functions' entries by address: a file's own search table (.eh_frame_hdr), read by pread where it is looked at; or one
// made by a scan of the section, 8 bytes an entry, kept.
class CfiTable {
 public:
  // `count` pairs at file_offset, each two signed 32-bit numbers relative to `base`: address of a function, of its
  // entry.
  static CfiTable OfFile(ElfFile* file, uint64_t file_offset, uint64_t base, uint64_t count);
  struct Scan {
    AddressRange text;          // entries outside are of functions that the linker dropped
    bool ends_at_mark = false;  // else end marks are passed: linkers leave some in the middle
  };
  // `left_out`: entries over UnwindSource::kEntriesMax or 4 GiB of text.
  static CfiTable OfScan(CfiEntries& entries, const Scan& scan, uint64_t* bad, uint64_t* left_out);

  uint64_t size() const { return window_ ? count_ : own_.size(); }
  struct Item {
    uint64_t address = 0;
    uint64_t offset = 0;  // in the section; UINT64_MAX when not within
  };
  // i < size(). nullopt: the file cannot be read (status()).
  std::optional<Item> At(uint64_t i, const CfiSection& section);
  // The number of items whose address is ≤ `address`.
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
