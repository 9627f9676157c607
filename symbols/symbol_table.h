#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/mapped_file.h"
#include "profile/executable_id.h"
#include "profile/frame_kinds.h"
#include "symbols/flat_layout.h"

namespace tributary {

// The source of a table's names. A table from a better source, which is a source with a higher SymbolSourceRank(),
// replaces a table from a worse source. The values are stored and sent: only append new values.
enum class SymbolSource : uint8_t {
  kNone = 0,
  kDynsym = 1,     // .dynsym only
  kSymtab = 2,     // .symtab (and .dynsym)
  kKallsyms = 3,   // /proc/kallsyms
  kFunctions = 4,  // start and end addresses of functions from .eh_frame; no names
  kPclntab = 5,    // Go's table, with inlined calls and lines
  kDwarf = 6,      // debug information: .debug_info and the sections that it refers to
};
std::string_view SymbolSourceName(SymbolSource source);
int SymbolSourceRank(SymbolSource source);

// The functions, inlined calls, files and lines of an executable's addresses. Immutable, and thread-safe. A look-up
// reads the table in place, in memory or in a mapped file, and does not decode it. It needs one binary search, and then
// one step per inlined call. The bytes may be hostile: inconsistent data leads to missing or wrong names, but never to
// an invalid memory access. Addresses are ELF virtual addresses. For kernels and modules they are offsets
// (symbols/kernel_file.h).
class SymbolTable {
 public:
  static constexpr size_t kRowsMax = 1u << 28;
  static constexpr size_t kNameBytesMax = 16'384;
  static constexpr size_t kStringBytesMax = 1u << 31;
  static constexpr uint32_t kNoRow = UINT32_MAX;
  static constexpr size_t kCodeKindsMax = 16;

  // InvalidArgument if the bytes are not a table, or if its sections are inconsistent. Unimplemented if the table has a
  // newer version.
  static absl::StatusOr<std::shared_ptr<const SymbolTable>> FromBytes(std::string bytes);
  static absl::StatusOr<std::shared_ptr<const SymbolTable>> Map(const std::string& path);
  static absl::StatusOr<std::shared_ptr<const SymbolTable>> Map(MappedFile file);

  // Returns the row that covers the address, or kNoRow if nothing is known about the address.
  uint32_t FindRow(uint64_t address) const;
  // Finds the rows of many addresses, in any order. This is three times as fast as FindRow, and even faster if the
  // addresses ascend.
  void FindRows(std::span<const uint64_t> addresses, std::span<uint32_t> rows) const;

  struct Frame {
    std::string_view name;  // linkage name; "": no name. Valid as long as the table exists
    std::string_view file;  // "": unknown
    uint32_t line = 0;      // 0: unknown
    uint32_t node = 0;      // a node per function and per inlined call of it; 0: unknown function
    bool inlined = false;   // this frame was inlined into the next frame
  };
  // Calls `visit(const Frame&)` for each frame of a row, from the innermost inlined call to the function, until `visit`
  // returns false. For a row with a line but without a function, there is one frame.
  template <typename Visit>
  void ForEachFrame(uint32_t row, Visit&& visit) const;
  // Returns the innermost node of a row. Rows with the same node differ only in the file and line of the innermost
  // frame.
  uint32_t node(uint32_t row) const { return row_nodes_[row]; }
  uint64_t StartOf(uint32_t function) const;  // start address of the function with this node; 0: not a function

  // Returns the kind of the code at an address: kNative, unless AddCodeKind of SymbolTableBuilder has set another kind.
  // Kernel-collectors report kNative for all code of files.
  FrameKind KindOf(uint64_t address) const {
    for (const flat::CodeKind& code : code_kinds_) {
      if (address >= code.begin && address < code.end && IsFrameKind(code.kind))
        return static_cast<FrameKind>(code.kind);
    }
    return FrameKind::kNative;
  }

  // Find returns the function that covers an address, not an inlined call. Returns nullopt if no function covers the
  // address, even if a function ends shortly before it.
  struct Match {
    std::string_view name;  // as in Frame
    uint64_t address;       // start address of the function
    uint32_t node;
  };
  std::optional<Match> Find(uint64_t address) const;

  // Returns true if the table's strings lie one after another and end where their section ends. If not, strings may
  // overlap, and all strings together may be much larger than the table. Reads 4 bytes for each string.
  bool HasSeparateStrings() const;

  const ExecutableId& id() const { return id_; }
  SymbolSource source() const { return source_; }
  size_t function_count() const { return starts_.size(); }
  size_t row_count() const { return row_addresses_.size(); }
  size_t node_count() const { return nodes_.size(); }
  uint64_t row_address(uint32_t row) const;
  std::string_view bytes() const { return bytes_; }

 private:
  friend class SymbolTableEncoder;  // of symbol_codec.cc

  static constexpr unsigned kChainMax = 4096;

  SymbolTable() = default;
  absl::Status Open(std::string_view bytes);
  template <typename T>
  bool TakeSection(const flat::Section& section, std::span<const T>* out);
  const flat::Segment* SegmentOf(uint64_t address) const;
  uint32_t RowIn(const flat::Segment& segment, uint64_t address) const;
  std::string_view String(uint32_t index) const;
  Frame FrameOf(uint32_t node, uint32_t place) const;

  std::string owned_;
  MappedFile mapped_;
  std::string_view bytes_;
  ExecutableId id_;
  SymbolSource source_ = SymbolSource::kNone;
  std::span<const flat::Segment> segments_;
  std::span<const uint32_t> row_addresses_, row_nodes_, row_places_;
  std::span<const flat::Node> nodes_;
  std::span<const flat::Place> places_;
  std::span<const uint64_t> starts_;
  std::span<const flat::CodeKind> code_kinds_;
  std::span<const uint32_t> string_offsets_;
  std::span<const char> string_bytes_;
};

inline std::string_view SymbolTable::String(uint32_t index) const {
  if (index == 0 || index >= string_offsets_.size() - 1) return {};  // string_offsets_ has at least two elements
  const uint32_t begin = string_offsets_[index], end = string_offsets_[index + 1];
  if (begin > end || end > string_bytes_.size() || end - begin > kNameBytesMax) return {};
  return {string_bytes_.data() + begin, end - begin};
}

inline SymbolTable::Frame SymbolTable::FrameOf(uint32_t node, uint32_t place) const {
  Frame frame;
  frame.node = node;
  if (place < places_.size()) {
    frame.file = String(places_[place].file);
    frame.line = places_[place].line;
  }
  const flat::Node& of = nodes_[node];
  frame.name = String(of.name);
  frame.inlined = of.parent != 0 && of.parent < node;  // so the walk ends, even if the bytes are hostile
  return frame;
}

template <typename Visit>
void SymbolTable::ForEachFrame(uint32_t row, Visit&& visit) const {
  uint32_t node = row_nodes_[row], place = row_places_[row];
  if (node >= nodes_.size()) return;
  for (unsigned i = 0; i < kChainMax; ++i) {
    const Frame frame = FrameOf(node, place);
    if (!visit(frame) || !frame.inlined) return;
    place = nodes_[node].place;
    node = nodes_[node].parent;
  }
}

}  // namespace tributary
