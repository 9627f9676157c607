#include "elf/go_functions.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include "elf/elf_format.h"
#include "elf/file_window.h"

namespace tributary {
namespace {

constexpr uint64_t kTableBytesMax = 256u << 20;
constexpr uint64_t kNameTableBytesMax = 64u << 20;
constexpr uint64_t kFunctionsMax = 2u << 20;
constexpr uint64_t kSearchBytesMax = 64u << 20;
constexpr int kTablesTriedMax = 2;
constexpr size_t kChunkBytes = 256u << 10;
constexpr size_t kNameBytesMax = 32;  // with the zero behind it
constexpr size_t kNamesMax = 128;     // of equal names too
// C's start-up code and the stubs of dynamic linking lie before Go's text.
constexpr uint64_t kBeforeTextBytesMax = 1u << 20;
constexpr size_t kGoexitBytes = 8;

constexpr uint32_t kMagic2 = 0xfffffffb, kMagic16 = 0xfffffffa, kMagic18 = 0xfffffff0, kMagic20 = 0xfffffff1;
constexpr uint64_t kWordsOffset = 8;

bool IsMagic(uint32_t magic) { return magic == kMagic2 || magic == kMagic16 || magic == kMagic18 || magic == kMagic20; }

// Begin of a table as it lies in the file.
struct Start {
  uint32_t magic;
  uint8_t zero[2];
  uint8_t quantum;
  uint8_t pointer_bytes;

  bool valid() const {
    return IsMagic(magic) && zero[0] == 0 && zero[1] == 0 && (quantum == 1 || quantum == 4) && pointer_bytes == 8;
  }
};
static_assert(sizeof(Start) == kWordsOffset);

// Offsets in the file.
struct Layout {
  uint64_t end = 0;        // of the table
  uint64_t functions = 0;  // pairs of address and place in `data`; one address more at the end
  uint64_t count = 0;      // of functions
  uint64_t data = 0;       // what is known of each: its address, then where its name lies in `names`
  uint64_t names = 0;      // ended by zeros
  uint64_t names_end = 0;
  uint64_t field_bytes = 0;  // of an address and of a place
  uint64_t text = 0;         // what addresses are relative to; 0: nothing, or not said
};

struct Name {
  uint64_t offset = 0;  // in Layout::names
  size_t index = 0;
};

struct Function {
  size_t index = 0;
  AddressRange range;  // not relocated
};

// One table, at a given place.
class GoTable {
 public:
  GoTable(ElfFile& file, std::span<const std::string_view> names)
      : file_(file), wanted_(names), functions_(&file, 2), data_(&file, 2) {}

  std::vector<AddressRange> Find(uint64_t offset, uint64_t size) {
    size = std::min(size, kTableBytesMax);
    if (!ReadLayout(offset, size)) return {};
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
  // Names looked for besides the wanted ones: both are needed to know goexit's code.
  static constexpr size_t kGoexit = SIZE_MAX, kGoexit1 = SIZE_MAX - 1;

  bool named(size_t index) const {
    return std::any_of(names_.begin(), names_.end(), [&](const Name& name) { return name.index == index; });
  }

  bool ReadLayout(uint64_t offset, uint64_t size) {
    char bytes[kWordsOffset + 8 * sizeof(uint64_t)];
    if (size < sizeof(bytes) || offset > file_.file_size() || size > file_.file_size() - offset ||
        !file_.ReadAt(offset, sizeof(bytes), bytes).ok()) {
      return false;
    }
    std::string_view view(bytes, sizeof(bytes));
    auto start = ReadElfStruct<Start>(view, 0);
    if (!start.valid()) return false;
    auto word = [&](size_t i) { return ReadElfStruct<uint64_t>(view, kWordsOffset + i * sizeof(uint64_t)); };
    bool relative = start.magic == kMagic18 || start.magic == kMagic20;
    uint64_t functions = sizeof(uint64_t) + kWordsOffset, data = 0, names = 0, names_end = size;
    if (start.magic != kMagic2) {
      size_t first = relative ? 3 : 2;  // where the names are said to be; then come units, files, pc data, functions
      names = word(first);
      names_end = word(first + 1);
      functions = data = word(first + 4);
      layout_.text = relative ? word(2) : 0;
    }
    if (functions > size || names > names_end || names_end > size) return false;
    layout_.end = offset + size;
    layout_.count = word(0);
    layout_.functions = offset + functions;
    layout_.data = offset + data;
    layout_.names = offset + names;
    layout_.names_end = offset + std::min(names_end, names + kNameTableBytesMax);
    layout_.field_bytes = relative ? sizeof(uint32_t) : sizeof(uint64_t);
    return layout_.count <= std::min(kFunctionsMax, (size - functions) / (2 * layout_.field_bytes));
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
        if (first != 'r' && first != '_') continue;  // nearly all: not worth a call
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

  // Addresses and places go up: what does not ends the search, so that everything is read once at most.
  void FindFunctions() {
    uint64_t field = layout_.field_bytes, at = layout_.functions;
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

  // ---- Where Go's text begins: where the code at goexit's offset is goexit's, a call of goexit1 behind a nop.

  std::optional<uint64_t> Text() {
    for (const Function& goexit : found_) {
      if (goexit.index != kGoexit) continue;
      if (IsText(layout_.text, goexit.range)) return layout_.text;
      if (layout_.field_bytes == sizeof(uint64_t)) continue;  // absolute
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

  // `offset`: of goexit in the text.
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
  Layout layout_;
  std::vector<Name> names_;
  std::vector<Function> found_;
};

// Linked by C's linker as an executable that may lie anywhere, Go's table is a part of a section of another name.
std::vector<AddressRange> SearchSegments(ElfFile& file, std::span<const std::string_view> names) {
  constexpr size_t kAlignment = 8;
  uint64_t left = kSearchBytesMax;
  int tried = 0;
  std::string chunk;
  for (const ElfSegment& segment : file.segments()) {
    if (segment.file_offset > file.file_size()) continue;
    uint64_t end = segment.file_offset + std::min(segment.file_size, file.file_size() - segment.file_offset);
    uint64_t at = (segment.file_offset + kAlignment - 1) / kAlignment * kAlignment;
    for (; at < end && left > 0; at += kChunkBytes) {
      chunk.resize(std::min({uint64_t{kChunkBytes}, end - at, left}));
      left -= chunk.size();
      if (!file.ReadAt(at, chunk.size(), chunk.data()).ok()) return {};
      for (size_t i = 0; i + sizeof(Start) <= chunk.size(); i += kAlignment) {
        if (!ReadElfStruct<Start>(chunk, i).valid()) continue;
        auto found = GoTable(file, names).Find(at + i, end - at - i);
        if (!found.empty() || ++tried == kTablesTriedMax) return found;
      }
    }
  }
  return {};
}

}  // namespace

std::vector<AddressRange> FindGoFunctions(ElfFile& file, std::span<const std::string_view> names) {
  auto sections = file.Sections();
  bool is_go = !sections.ok() || (*sections)->empty();  // or may be
  if (sections.ok()) {
    for (const ElfSection& section : **sections) {
      if (section.type == kElfSectionNobits || (section.flags & kElfSectionCompressed) != 0) continue;
      if (section.name == ".gopclntab" || section.name == ".data.rel.ro.gopclntab") {
        return GoTable(file, names).Find(section.offset, section.size);
      }
      if (section.name == ".note.go.buildid" || section.name == ".go.buildinfo") is_go = true;
    }
  }
  return is_go ? SearchSegments(file, names) : std::vector<AddressRange>();
}

}  // namespace tributary
