#include "elf/go_functions.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include "elf/elf_format.h"
#include "elf/file_window.h"
#include "elf/go_table.h"

namespace tributary {
namespace {

constexpr uint64_t kNameTableBytesMax = 64u << 20;
constexpr size_t kChunkBytes = 256u << 10;
constexpr size_t kNameBytesMax = 32;  // including the zero after it
constexpr size_t kNamesMax = 128;     // including equal names
// C's start-up code and the stubs of dynamic linking lie before Go's text.
constexpr uint64_t kBeforeTextBytesMax = 1u << 20;
constexpr size_t kGoexitBytes = 8;

struct Name {
  uint64_t offset = 0;  // in GoTableHeader::names
  size_t index = 0;
};

struct Function {
  size_t index = 0;
  AddressRange range;  // not relocated
};

class GoTable {
 public:
  GoTable(ElfFile& file, const GoTableHeader& header, std::span<const std::string_view> names)
      : file_(file), wanted_(names), functions_(&file, 2), data_(&file, 2), layout_(header) {
    layout_.names_end = std::min(layout_.names_end, layout_.names + kNameTableBytesMax);
  }

  std::vector<AddressRange> Find() {
    FindNames();
    if (!named(kGoexit) || !named(kGoexit1)) return {};
    FindFunctions();
    std::optional<uint64_t> text = Text();
    std::vector<AddressRange> found;
    if (!text) return found;
    for (const Function& function : found_) {
      AddressRange range{*text + function.range.begin, *text + function.range.end};
      if (function.index < wanted_.size() && range.begin < range.end && Executable(range)) found.push_back(range);
    }
    return found;
  }

 private:
  // Names to search in addition to the wanted ones. Both are needed to recognize goexit's code.
  static constexpr size_t kGoexit = SIZE_MAX, kGoexit1 = SIZE_MAX - 1;

  bool named(size_t index) const {
    return std::any_of(names_.begin(), names_.end(), [&](const Name& name) { return name.index == index; });
  }

  void MatchName(std::string_view bytes, uint64_t offset) {
    if (names_.size() >= kNamesMax) return;
    std::string_view name = bytes.substr(0, std::min(bytes.find('\0'), kNameBytesMax));
    for (size_t i = 0; i < wanted_.size(); ++i) {
      if (name == wanted_[i]) names_.push_back({offset, i});
    }
    if (name == "runtime.goexit" || name == "runtime.goexit.abi0") names_.push_back({offset, kGoexit});
    if (name == "runtime.goexit1" || name == "runtime.goexit1.abi0") names_.push_back({offset, kGoexit1});
  }

  void FindNames() {
    std::string chunk;
    for (uint64_t at = layout_.names; at < layout_.names_end; at += kChunkBytes) {
      size_t own = std::min<uint64_t>(kChunkBytes, layout_.names_end - at);
      chunk.resize(std::min<uint64_t>(own + kNameBytesMax, layout_.names_end - at));
      if (!file_.ReadAt(at, chunk.size(), chunk.data()).ok()) return;
      std::string_view view(chunk);
      if (at == layout_.names) MatchName(view.substr(0, kNameBytesMax), 0);
      for (size_t zero = view.find('\0'); zero < own; zero = view.find('\0', zero + 1)) {
        char first = zero + 1 < view.size() ? view[zero + 1] : '\0';
        if (first != 'r' && first != '_') continue;  // nearly all names: not worth a call
        MatchName(view.substr(zero + 1, kNameBytesMax), at + zero + 1 - layout_.names);
      }
    }
  }

  bool ReadField(FileWindow& window, uint64_t offset, uint64_t bytes, uint64_t* value) const {
    if (offset > layout_.end || bytes > layout_.end - offset) return false;
    const char* field = window.View(offset, bytes);
    if (field == nullptr) return false;
    *value = 0;
    std::memcpy(value, field, bytes);
    return true;
  }

  // Addresses and places must ascend. The search ends at the first one that does not, so everything is read at most
  // once.
  void FindFunctions() {
    uint64_t field = layout_.field_bytes(), at = layout_.functions;
    uint64_t begin = 0, end = 0, place = 0, place_before = 0, name = 0;
    if (!ReadField(functions_, at, field, &begin)) return;
    for (uint64_t i = 0; i < layout_.count; ++i, at += 2 * field, begin = end, place_before = place) {
      if (!ReadField(functions_, at + field, field, &place) || !ReadField(functions_, at + 2 * field, field, &end)) {
        return;
      }
      if (end < begin || place < place_before || place > layout_.end - layout_.data) return;
      if (!ReadField(data_, layout_.data + place + field, sizeof(uint32_t), &name)) return;
      for (const Name& known : names_) {
        if (known.offset == name && found_.size() < kNamesMax) found_.push_back({known.index, {begin, end}});
      }
    }
  }

  // ---- Begin of Go's text: the address for which the code at goexit's offset is goexit's: a nop, then a call of
  // goexit1.

  std::optional<uint64_t> Text() {
    for (const Function& goexit : found_) {
      if (goexit.index != kGoexit) continue;
      if (IsText(layout_.text, goexit.range)) return layout_.text;
      if (!layout_.relative()) continue;  // addresses are absolute
      for (const ElfSegment& segment : file_.segments()) {
        if (!segment.executable) continue;
        if (auto text = SearchText(segment, goexit.range)) return text;
      }
    }
    return std::nullopt;
  }

  bool IsText(uint64_t text, AddressRange goexit) const {
    if (goexit.begin > UINT64_MAX - text) return false;
    uint64_t address = text + goexit.begin;
    for (const ElfSegment& segment : file_.segments()) {
      if (!segment.executable || address < segment.address || address - segment.address >= segment.file_size) continue;
      char code[kGoexitBytes];
      return file_.ReadAt(segment.file_offset + (address - segment.address), sizeof(code), code).ok() &&
             IsGoexit(code, goexit.begin);
    }
    return false;
  }

  std::optional<uint64_t> SearchText(const ElfSegment& segment, AddressRange goexit) const {
    if (goexit.begin >= segment.file_size) return std::nullopt;
    size_t size = std::min(segment.file_size - goexit.begin, kBeforeTextBytesMax);
    std::string code(size, '\0');
    if (!file_.ReadAt(segment.file_offset + goexit.begin, size, code.data()).ok()) return std::nullopt;
    constexpr size_t kAlignment = 16;  // of every function on x86-64, and of text
    uint64_t first = (kAlignment - (segment.address + goexit.begin) % kAlignment) % kAlignment;
    for (size_t i = first; i + kGoexitBytes <= size; i += kAlignment) {
      if (IsGoexit(code.data() + i, goexit.begin)) return segment.address + i;
    }
    return std::nullopt;
  }

  // `offset`: offset of goexit in the text.
  bool IsGoexit(const char* code, uint64_t offset) const {
    uint64_t target = 0;
    if (file_.machine() == kElfMachineArm64) {
      uint32_t nop = 0, call = 0;
      std::memcpy(&nop, code, sizeof(nop));
      std::memcpy(&call, code + sizeof(nop), sizeof(call));
      if (nop != 0xaa0003e0 || call >> 26 != 0x25) return false;  // mov x0, x0; bl
      target = offset + sizeof(nop) + static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(call << 6) >> 4));
    } else {
      int32_t distance = 0;
      if (code[0] != '\x90' || code[1] != '\xe8' || code[6] != '\x90') return false;
      std::memcpy(&distance, code + 2, sizeof(distance));
      target = offset + 6 + static_cast<uint64_t>(static_cast<int64_t>(distance));
    }
    return std::any_of(found_.begin(), found_.end(), [&](const Function& function) {
      return function.index == kGoexit1 && function.range.begin == target;
    });
  }

  bool Executable(AddressRange range) const {
    return std::any_of(file_.segments().begin(), file_.segments().end(), [&](const ElfSegment& segment) {
      return segment.executable && range.begin >= segment.address &&
             range.begin - segment.address < segment.memory_size &&
             range.end - range.begin <= segment.memory_size - (range.begin - segment.address);
    });
  }

  ElfFile& file_;
  std::span<const std::string_view> wanted_;
  FileWindow functions_, data_;
  GoTableHeader layout_;
  std::vector<Name> names_;
  std::vector<Function> found_;
};

}  // namespace

std::vector<AddressRange> FindGoFunctions(ElfFile& file, std::span<const std::string_view> names) {
  std::vector<AddressRange> found;
  FindGoTables(file, [&](const GoTableHeader& header) {
    found = GoTable(file, header, names).Find();
    return !found.empty();
  });
  return found;
}

}  // namespace tributary
