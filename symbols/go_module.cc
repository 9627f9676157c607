#include "symbols/go_module.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "elf/elf_format.h"
#include "elf/file_window.h"
#include "elf/go_functions.h"

namespace tributary {
namespace {

constexpr uint64_t kSearchBytesMax = 256u << 20;
constexpr int kFindsMax = 64;
constexpr uint64_t kSymbolsMax = 4u << 20;
constexpr size_t kChunkBytes = 256u << 10;

// Offsets in runtime.moduledata.
constexpr uint64_t kNamesWord = 8, kFunctionsWord = 104, kTextWord = 176;
constexpr uint64_t kTreesWord18 = 304, kTreesWord20 = 320;

// An entry of a table of relocations: the word at `address` is `value`, counted from the file's load address.
struct Relocation {
  uint64_t address;
  uint64_t type;
  uint64_t value;
};
static_assert(sizeof(Relocation) == 24);
constexpr uint64_t kRelativeX86_64 = 8, kRelativeArm64 = 1027;

uint64_t RelativeType(const ElfFile& file) {
  return file.machine() == kElfMachineArm64 ? kRelativeArm64 : kRelativeX86_64;
}

std::optional<uint64_t> WordAt(const ElfFile& file, uint64_t offset) {
  uint64_t word = 0;
  if (!file.ReadAt(offset, sizeof(word), reinterpret_cast<char*>(&word)).ok()) return std::nullopt;
  return word;
}

// Calls `take` with the file offset of each word with this value, until `take` returns true. Searches the last segments
// first, because they hold data.
void FindWords(ElfFile& file, uint64_t value, const std::function<bool(uint64_t offset)>& take) {
  uint64_t left = kSearchBytesMax;
  int finds = 0;
  std::string chunk;
  for (auto segment = file.segments().rbegin(); segment != file.segments().rend(); ++segment) {
    if (segment->file_offset >= file.file_size()) continue;
    const uint64_t end = segment->file_offset + std::min(segment->file_size, file.file_size() - segment->file_offset);
    uint64_t at = (segment->file_offset + sizeof(value) - 1) / sizeof(value) * sizeof(value);
    for (; at < end && left > 0; at += kChunkBytes) {
      chunk.resize(std::min({uint64_t{kChunkBytes}, end - at, left}));
      left -= chunk.size();
      if (!file.ReadAt(at, chunk.size(), chunk.data()).ok()) return;
      for (size_t i = 0; i + sizeof(value) <= chunk.size(); i += sizeof(value)) {
        if (ReadElfStruct<uint64_t>(chunk, i) == value && (take(at + i) || ++finds == kFindsMax)) return;
      }
    }
  }
}

bool IsCode(const ElfFile& file, uint64_t address) {
  return std::any_of(file.segments().begin(), file.segments().end(), [&](const ElfSegment& segment) {
    return segment.executable && address >= segment.address && address - segment.address < segment.memory_size;
  });
}

// Reads runtime.moduledata.
class Module {
 public:
  Module(ElfFile& file, const GoTableHeader& header, uint64_t table)
      : file_(file),
        header_(header),
        table_(table),
        trees_word_(header.form == GoTableForm::kGo18 ? kTreesWord18 : kTreesWord20) {}

  // Returns false if the module is not at `address`.
  bool Read(uint64_t address, const LoadedWords& words, GoModule* out) const {
    const std::optional<uint64_t> offset = AddressToFileOffset(file_.segments(), address);
    std::string bytes(trees_word_ + sizeof(uint64_t), '\0');
    if (!offset || !file_.ReadAt(*offset, bytes.size(), bytes.data()).ok()) return false;
    auto word = [&](uint64_t at) { return words.At(address + at, ReadElfStruct<uint64_t>(bytes, at)); };
    if (word(0) != table_ || word(kNamesWord) != table_ + (header_.names - header_.begin) ||
        word(kFunctionsWord) != table_ + (header_.data - header_.begin)) {
      return false;
    }
    if (!IsCode(file_, word(kTextWord))) return false;
    out->text = word(kTextWord);
    out->trees = word(trees_word_);
    out->trees_known = AddressToFileOffset(file_.segments(), out->trees).has_value();
    return true;
  }

  bool Find(GoModule* out) const {
    bool found = false;
    FindWords(file_, table_, [&](uint64_t at) {
      if (const auto address = FileOffsetToAddress(file_.segments(), at)) found = Read(*address, {}, out);
      if (found || at < sizeof(Relocation) - sizeof(uint64_t)) return found;
      const uint64_t entry = at - (sizeof(Relocation) - sizeof(uint64_t));
      const std::optional<uint64_t> address = WordAt(file_, entry), type = WordAt(file_, entry + sizeof(uint64_t));
      if (!address || type != RelativeType(file_) || *address > UINT64_MAX - 2 * trees_word_) return false;
      found = Read(*address, LoadedWords::Read(file_, entry, *address + trees_word_ + sizeof(uint64_t)), out);
      return found;
    });
    return found;
  }

 private:
  ElfFile& file_;
  const GoTableHeader& header_;
  const uint64_t table_;
  const uint64_t trees_word_;
};

void ReadSymbols(ElfFile& file, GoModule* out) {
  auto sections = file.Sections();
  if (!sections.ok()) return;
  for (const ElfSection& table : **sections) {
    if (table.type != kElfSectionSymtab || table.link >= (*sections)->size()) continue;
    const ElfSection& strings = (**sections)[table.link];
    FileWindow symbols(&file, 2), names(&file, 32);
    const uint64_t count = std::min(table.size / sizeof(ElfSymbol), kSymbolsMax);
    for (uint64_t i = 0; i < count; ++i) {
      const char* bytes = symbols.View(table.offset + i * sizeof(ElfSymbol), sizeof(ElfSymbol));
      if (bytes == nullptr) return;
      const auto symbol = ReadElfStruct<ElfSymbol>({bytes, sizeof(ElfSymbol)}, 0);
      constexpr size_t kBytes = 16;
      if (symbol.name >= strings.size || strings.size - symbol.name < kBytes) continue;
      const char* name = names.View(strings.offset + symbol.name, kBytes);
      if (name == nullptr) return;
      std::string_view view(name, kBytes);
      view = view.substr(0, view.find('\0'));
      if (view == "go:func.*" || view == "go.func.*") {
        out->trees = symbol.value;
        out->trees_known = true;
      }
      if (view == "runtime.text") out->text = symbol.value;
    }
    return;
  }
}

// Computes the address of text from runtime.goexit: its offset in the table, and the address of its code.
uint64_t TextByGoexit(ElfFile& file, const GoTableHeader& header) {
  constexpr std::string_view kGoexit[] = {"runtime.goexit", "runtime.goexit.abi0"};
  const std::vector<AddressRange> found = FindGoFunctions(file, kGoexit);
  if (found.empty()) return 0;
  FileWindow functions(&file, 2), names(&file, 32);
  for (uint64_t i = 0; i < header.count; ++i) {
    const char* pair = functions.View(header.functions + i * 2 * sizeof(uint32_t), 2 * sizeof(uint32_t));
    if (pair == nullptr) return 0;
    const auto begin = ReadElfStruct<uint32_t>({pair, 8}, 0), place = ReadElfStruct<uint32_t>({pair, 8}, 4);
    const char* data = names.View(header.data + place, 2 * sizeof(uint32_t));
    if (data == nullptr) return 0;
    const auto name_at = ReadElfStruct<uint32_t>({data, 8}, 4);
    const char* name = names.View(header.names + name_at, kGoexit[0].size() + 1);
    if (name == nullptr || std::string_view(name, kGoexit[0].size()) != kGoexit[0]) continue;
    if (const char behind = name[kGoexit[0].size()]; behind == '\0' || behind == '.') {
      const uint64_t text = found.front().begin - begin;
      if (IsCode(file, text)) return text;
    }
  }
  return 0;
}

}  // namespace

std::optional<uint64_t> AddressToFileOffset(std::span<const ElfSegment> segments, uint64_t address) {
  for (const ElfSegment& segment : segments) {
    if (address >= segment.address && address - segment.address < segment.file_size) {
      return segment.file_offset + (address - segment.address);
    }
  }
  return std::nullopt;
}

LoadedWords LoadedWords::Read(ElfFile& file, uint64_t entry_offset, uint64_t end) {
  LoadedWords out;
  FileWindow window(&file, 2);
  for (uint64_t at = entry_offset; out.words_.size() < kWordsMax; at += sizeof(Relocation)) {
    const char* bytes = window.View(at, sizeof(Relocation));
    if (bytes == nullptr) break;
    const auto entry = ReadElfStruct<Relocation>({bytes, sizeof(Relocation)}, 0);
    const bool ascends = out.words_.empty() || entry.address > out.words_.back().first;
    if (entry.type != RelativeType(file) || entry.address >= end || !ascends) break;
    out.words_.emplace_back(entry.address, entry.value);
  }
  return out;
}

uint64_t LoadedWords::At(uint64_t address, uint64_t in_file) const {
  const auto it = std::lower_bound(words_.begin(), words_.end(), std::pair(address, uint64_t{0}));
  return it != words_.end() && it->first == address ? it->second : in_file;
}

std::optional<GoModule> FindGoModule(ElfFile& file, const GoTableHeader& header) {
  const std::optional<uint64_t> table = FileOffsetToAddress(file.segments(), header.begin);
  if (!table) return std::nullopt;
  GoModule out{.table = *table};
  if (header.relative()) {
    if (!Module(file, header, *table).Find(&out)) ReadSymbols(file, &out);
    if (out.text == 0) out.text = TextByGoexit(file, header);
    return out.text == 0 ? std::nullopt : std::optional(std::move(out));
  }
  out.trees_known = true;
  const std::optional<uint64_t> first = WordAt(file, header.functions);
  if (!first || *first != 0) return out;
  // The loader writes the first function's address, and therefore all others too.
  FindWords(file, *table + (header.functions - header.begin), [&](uint64_t at) {
    out.words = LoadedWords::Read(file, at, *table + (header.end - header.begin));
    return !out.words.empty();
  });
  return out;
}

}  // namespace tributary
