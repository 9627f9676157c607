#include "symbols/elf_symbols.h"

#include <algorithm>

#include "base/status.h"
#include "elf/elf_format.h"
#include "elf/function_bounds.h"
#include "elf/mini_debug_info.h"
#include "elf/module_layout.h"
#include "symbols/go_pclntab.h"
#include "symbols/mapping_symbol.h"

namespace tributary {
namespace {

// Symbols share names (aliases of one string, or tails of it), but not often. If names sum to more than this many times
// their string table, the file is wrong and would fill memory.
constexpr uint64_t kNameSharingMax = 4;
constexpr uint64_t kNameSharingSlackBytes = 64u << 10;

struct Candidate {
  uint64_t address = 0;
  uint64_t size = 0;
  uint64_t limit = 0;     // end of its section or of its piece of code
  uint32_t rank = 0;      // the smaller of two at one address is kept
  std::string_view name;  // in a string table
};

// Ranks symbols at one address: symbols with a size first, then by binding, then by table.
uint32_t Rank(const ElfSymbol& symbol, bool dynamic) {
  uint8_t binding = symbol.info >> 4;
  uint32_t by_binding = binding == kElfBindLocal ? 2 : binding == kElfBindWeak ? 1 : 0;
  return (symbol.size == 0 ? 8 : 0) + by_binding * 2 + (dynamic ? 1 : 0);
}

// Location of a file's code.
class Code {
 public:
  static absl::StatusOr<Code> Of(ElfFile& file) {
    Code code;
    if (file.type() == kElfTypeRelocatable) {
      ASSIGN_OR_RETURN(const std::vector<ElfSection>* sections, file.Sections());
      code.layout_.emplace(*sections);
      code.ranges_ = {code.layout_->code()};
      return code;
    }
    for (const ElfSegment& segment : file.segments()) {
      if (segment.executable) code.ranges_.push_back({segment.address, segment.address + segment.memory_size});
    }
    return code;
  }

  // Base of the addresses of a section's symbols.
  uint64_t SymbolBase(uint16_t section) const { return layout_ ? layout_->AddressOf(section) : 0; }
  uint64_t SectionAddress(const std::vector<ElfSection>& sections, uint16_t section) const {
    return layout_ ? layout_->AddressOf(section) : sections[section].address;
  }
  // Returns nullptr if the address has no code.
  const AddressRange* Find(uint64_t address) const {
    for (const AddressRange& range : ranges_) {
      if (address >= range.begin && address < range.end) return &range;
    }
    return nullptr;
  }

 private:
  std::vector<AddressRange> ranges_;
  std::optional<ModuleLayout> layout_;  // of a relocatable file: symbols count from their section
};

class Reader {
 public:
  Reader(ElfFile& file, Code code, uint64_t bytes_max) : file_(file), code_(std::move(code)), bytes_left_(bytes_max) {}

  // Reads the first table of that type in `from`: the file itself, or a file with more symbols of its code. The gABI
  // allows one table of each type. Further tables are ignored.
  absl::Status ReadTable(ElfFile& from, uint32_t type) {
    ASSIGN_OR_RETURN(const std::vector<ElfSection>* all, from.Sections());
    const std::vector<ElfSection>& sections = *all;
    auto table = std::find_if(sections.begin(), sections.end(), [&](const ElfSection& s) { return s.type == type; });
    if (table == sections.end()) return absl::OkStatus();
    if (table->entry_size != sizeof(ElfSymbol) || table->link >= sections.size()) {
      return Error(absl::StatusCode::kInvalidArgument, "ELF file: bad symbol table header");
    }
    const bool dynamic = type == kElfSectionDynsym;
    ASSIGN_OR_RETURN(std::string symbols, Take(from, *table));
    ASSIGN_OR_RETURN(std::string strings, Take(from, sections[table->link]));
    string_tables_.push_back(std::make_unique<std::string>(std::move(strings)));
    std::string_view names = *string_tables_.back();
    uint64_t name_bytes_left = names.size() * kNameSharingMax + kNameSharingSlackBytes;
    size_t count = std::min(symbols.size() / sizeof(ElfSymbol), kElfSymbolsMax - symbols_read_);
    symbols_read_ += count;
    for (size_t i = 0; i < count; ++i) {
      auto symbol = ReadElfStruct<ElfSymbol>(symbols, i * sizeof(ElfSymbol));
      std::optional<Candidate> candidate = Accept(symbol, sections);
      if (!candidate || symbol.name >= names.size()) continue;
      std::string_view name = names.substr(symbol.name, SymbolTable::kNameBytesMax);
      name = name.substr(0, name.find('\0'));
      if (name.size() > name_bytes_left) {
        return Error(absl::StatusCode::kResourceExhausted,
                     "ELF file: too many symbols use the same bytes of the string table");
      }
      name_bytes_left -= name.size();
      if (file_.machine() == kElfMachineArm64 && IsMappingSymbol(name)) continue;
      // A versioned symbol of .symtab is called name@VERSION or name@@VERSION.
      candidate->name = name.substr(0, name.find('@'));
      if (candidate->name.empty()) continue;
      candidate->rank = Rank(symbol, dynamic);
      candidates_.push_back(*candidate);
      (dynamic ? any_dynamic_ : any_static_) = true;
    }
    return absl::OkStatus();
  }

  // Returns one range per address, from the preferred symbol, each with a size. Adds the names of all symbols to
  // `builder`. The names live as long as this object.
  std::vector<SymbolRange> TakeRanges(SymbolTableBuilder& builder) {
    std::stable_sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
      return a.address != b.address ? a.address < b.address : a.rank < b.rank;
    });
    std::vector<SymbolRange> ranges;
    for (size_t i = 0; i < candidates_.size();) {
      const Candidate& best = candidates_[i];
      size_t next = i + 1;
      builder.AddSymbolName(best.address, best.name);
      for (; next < candidates_.size() && candidates_[next].address == best.address; ++next) {
        builder.AddSymbolName(best.address, candidates_[next].name);
      }
      uint64_t end = best.limit;
      if (best.size != 0) {
        end = std::min(end, best.size > UINT64_MAX - best.address ? UINT64_MAX : best.address + best.size);
      } else if (next < candidates_.size()) {
        end = std::min(end, candidates_[next].address);
      }
      if (end > best.address) {
        ranges.push_back({.address = best.address, .size = end - best.address, .name = best.name});
      }
      i = next;
    }
    candidates_ = {};
    return ranges;
  }

  bool any_static() const { return any_static_; }
  bool any() const { return any_static_ || any_dynamic_; }
  uint64_t bytes_left() const { return bytes_left_; }

 private:
  absl::StatusOr<std::string> Take(ElfFile& from, const ElfSection& section) {
    ASSIGN_OR_RETURN(std::string bytes, from.SectionBytes(section, bytes_left_));
    bytes_left_ -= bytes.size();
    return bytes;
  }

  // Checks everything except the name. Returns nullopt if the symbol is refused.
  std::optional<Candidate> Accept(const ElfSymbol& symbol, const std::vector<ElfSection>& sections) const {
    uint8_t type = symbol.info & 0xf;
    bool function = type == kElfSymbolFunction || type == kElfSymbolIfunc;
    bool sized_label = type == kElfSymbolNoType && symbol.size > 0;
    if (!function && !sized_label) return std::nullopt;
    if (symbol.section == kElfIndexUndefined) return std::nullopt;
    // Reserved indices mean "absolute" and "common". Only "the index is elsewhere" is a section.
    if (symbol.section >= kElfIndexReserved && symbol.section != kElfIndexExtended) return std::nullopt;
    const uint64_t address = code_.SymbolBase(symbol.section) + symbol.value;
    const AddressRange* code = code_.Find(address);
    if (code == nullptr) return std::nullopt;
    Candidate candidate{.address = address, .size = symbol.size, .limit = code->end};
    if (symbol.section < sections.size()) {
      const ElfSection& section = sections[symbol.section];
      if (sized_label && (section.flags & kElfSectionExecutable) == 0) return std::nullopt;
      const uint64_t begin = code_.SectionAddress(sections, symbol.section);
      bool inside = address >= begin && address - begin < section.size;
      if (inside && symbol.size == 0 && section.size <= UINT64_MAX - begin) {
        candidate.limit = std::min(candidate.limit, begin + section.size);
      }
    } else if (sized_label) {
      return std::nullopt;
    }
    return candidate;
  }

  ElfFile& file_;
  const Code code_;
  uint64_t bytes_left_;
  size_t symbols_read_ = 0;
  bool any_static_ = false, any_dynamic_ = false;
  std::vector<std::unique_ptr<std::string>> string_tables_;
  std::vector<Candidate> candidates_;
};

// Reads .gnu_debugdata, where a distribution may have put the symbols of a stripped .symtab. Data that cannot be read
// is left out: the file's own symbols are still valid.
void AddMiniDebugInfo(ElfFile& file, Reader& reader, SymbolTableBuilder& builder) {
  const auto mini = ReadMiniDebugInfo(file, reader.bytes_left());
  if (absl::IsNotFound(mini.status())) return;
  if (!mini.ok() || !reader.ReadTable(*(*mini)->file, kElfSectionSymtab).ok()) builder.AddLeftOut(1);
}

// Returns the code that symbols cover, with adjacent symbols joined. `symbols` must ascend.
std::vector<AddressRange> Join(const std::vector<SymbolRange>& symbols) {
  std::vector<AddressRange> joined;
  for (const SymbolRange& symbol : symbols) {
    if (joined.empty() || symbol.address > joined.back().end) joined.push_back({symbol.address, symbol.address});
    joined.back().end = std::max(joined.back().end, symbol.address + symbol.size);
  }
  return joined;
}

// Adds bounds of functions that symbols do not cover completely. Other bounds would never show. Returns false if there
// are no bounds.
bool AddFunctionBounds(ElfFile& file, const std::vector<SymbolRange>& symbols, SymbolTableBuilder& builder) {
  // A linker must still fill in the bounds of a relocatable file's functions.
  if (file.type() == kElfTypeRelocatable) return false;
  const auto bounds = FindFunctionBounds(file);
  if (!bounds.ok()) {
    builder.AddLeftOut(1);
    return false;
  }
  builder.AddLeftOut(bounds->bad_entries + bounds->left_out_entries);
  const std::vector<AddressRange> named = Join(symbols);
  auto last = named.begin();
  for (const AddressRange& function : bounds->ranges) {
    while (last != named.end() && last->end < function.end) ++last;
    if (last != named.end() && last->begin <= function.begin && function.end <= last->end) continue;
    builder.AddFunction({.address = function.begin, .size = function.end - function.begin, .name = ""},
                        SymbolTableBuilder::Layer::kFunctionBounds);
  }
  return !bounds->ranges.empty();
}

}  // namespace

absl::StatusOr<SymbolSource> AddElfSymbols(ElfFile& file, SymbolTableBuilder& builder, uint64_t bytes_max) {
  ASSIGN_OR_RETURN(Code code, Code::Of(file));
  Reader reader(file, std::move(code), bytes_max);
  RETURN_IF_ERROR(reader.ReadTable(file, kElfSectionSymtab));
  if (!reader.any()) AddMiniDebugInfo(file, reader, builder);
  RETURN_IF_ERROR(reader.ReadTable(file, kElfSectionDynsym));
  const std::vector<SymbolRange> symbols = reader.TakeRanges(builder);
  for (const SymbolRange& range : symbols) builder.AddFunction(range, SymbolTableBuilder::Layer::kSymbols);
  const bool bounds = AddFunctionBounds(file, symbols, builder);
  if (reader.any_static()) return SymbolSource::kSymtab;
  if (reader.any()) return SymbolSource::kDynsym;
  if (bounds) return SymbolSource::kFunctions;
  return Error(absl::StatusCode::kNotFound, "ELF file: it has neither function symbols nor bounds of functions");
}

absl::StatusOr<SymbolSource> AddOwnSymbols(ElfFile& file, SymbolTableBuilder& builder, uint64_t bytes_max) {
  const absl::StatusOr<SymbolSource> source = AddElfSymbols(file, builder, bytes_max);
  return AddGoSymbols(file, builder).ok() ? SymbolSource::kPclntab : source;
}

absl::StatusOr<std::shared_ptr<const SymbolTable>> ReadElfSymbols(ElfFile& file, const ExecutableId& id,
                                                                  uint64_t bytes_max) {
  SymbolTableBuilder builder;
  ASSIGN_OR_RETURN(const SymbolSource source, AddOwnSymbols(file, builder, bytes_max));
  return builder.Build(id, source);
}

}  // namespace tributary
