#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "absl/status/status.h"
#include "elf/cfi_program.h"
#include "elf/file_window.h"

namespace tributary {

// The location of a section with call frame information (.eh_frame or .debug_frame).
struct CfiSection {
  uint64_t file_offset = 0;
  uint64_t size = 0;
  uint64_t address = 0;  // unused in .debug_frame
  bool eh_frame = true;  // false: .debug_frame, which encodes lengths and references differently
};

// The unwind information of one function (an FDE). It is valid until the next entry is read.
struct CfiEntry {
  const CfiCommon* common = nullptr;
  AddressRange function;
  std::string_view instructions;
  uint64_t instructions_address = 0;
};

// Reads the entries of a section at given offsets: common entries (CIE) and function entries (FDE). Caches the CIEs,
// because a file has thousands of FDEs per CIE. Allocates no memory per FDE. Between two calls of Refill(), it reads at
// most twice the section's size plus 64 KiB. Borrows `window`.
class CfiEntries {
 public:
  CfiEntries(const CfiSection& section, const CfiMachine& machine, FileWindow* window)
      : section_(section), machine_(machine), window_(window) {
    Refill();
  }

  const CfiSection& section() const { return section_; }
  void Refill() { bytes_left_ = 2 * section_.size + (64u << 10); }
  // Returns true if the limit for the bytes between two calls of Refill() has stopped a read. A well-formed section
  // does not need so many bytes.
  bool exhausted() const { return exhausted_; }

  // Returns false if there is no function entry at `offset`, or if the entry cannot be parsed.
  bool Read(uint64_t offset, CfiEntry* entry);

  // Sets `kind` to the kind of the entry at `offset`, and `next` to the offset of the next entry. Returns false at the
  // section's end, or if the header of the entry cannot be parsed.
  enum class Kind { kFunction, kCommon, kEndMark };
  bool Peek(uint64_t offset, Kind* kind, uint64_t* next);

 private:
  static constexpr size_t kCommonsMax = 4096;
  static constexpr uint64_t kEntryBytesMax = FileWindow::kViewBytesMax / 2;

  struct Header {
    uint64_t body = 0, end = 0;  // offsets of the first byte after the CIE reference, and after the entry
    uint64_t reference = 0;
    uint64_t reference_offset = 0;
    bool wide = false;  // 64-bit DWARF
    bool common = false;
  };
  std::optional<Header> ReadHeader(uint64_t offset);
  const CfiCommon* FindCommon(uint64_t offset);
  void ReadCommon(uint64_t offset, CfiCommon* common);
  bool ReadAugmentation(std::string_view letters, ByteReader& reader, uint64_t end_address, CfiCommon* common);
  std::optional<std::string_view> Bytes(uint64_t offset, uint64_t size);

  const CfiSection section_;
  const CfiMachine& machine_;
  FileWindow* window_;
  std::unordered_map<uint64_t, CfiCommon> commons_;
  uint64_t last_common_offset_ = UINT64_MAX;
  const CfiCommon* last_common_ = nullptr;
  uint64_t bytes_left_ = 0;
  bool exhausted_ = false;
};

}  // namespace tributary
