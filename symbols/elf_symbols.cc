#include "symbols/elf_symbols.h"

#include <algorithm>

#include "base/status.h"
#include "elf/elf_format.h"

namespace tributary {
namespace {

// Symbols share names (aliases of one string, or tails of it), but not often: names that sum to more than this many
// times their string table are a lie that would fill memory.
constexpr uint64_t kNameSharingMax = 4;
constexpr uint64_t kNameSharingSlackBytes = 64u << 10;

struct Candidate {
  uint64_t address = 0;
  uint64_t size = 0;
  uint64_t limit = 0;     // where its section or segment ends
  uint32_t rank = 0;      // of two at one address the smaller is kept
  std::string_view name;  // in a string table
};

// Ranks of what names the same address: a symbol that knows its size, then binding, then table.
uint32_t Rank(const ElfSymbol& symbol, bool dynamic) {
  uint8_t binding = symbol.info >> 4;
  uint32_t by_binding = binding == kElfBindLocal ? 2 : binding == kElfBindWeak ? 1 : 0;
  return (symbol.size == 0 ? 8 : 0) + by_binding * 2 + (dynamic ? 1 : 0);
}

// arm64 marks code and data with $x and $d, with or without a suffix: they name nothing.
bool IsMappingSymbol(std::string_view name) {
  return name.size() >= 2 && name[0] == '$' && (name[1] == 'x' || name[1] == 'd') &&
         (name.size() == 2 || name[2] == '.');
}

class Reader {
 public:
  Reader(ElfFile& file, const std::vector<ElfSection>& sections, uint64_t bytes_max)
      : file_(file), sections_(sections), bytes_left_(bytes_max) {}

  absl::Status ReadTable(const ElfSection& table, bool dynamic) {
    if (table.entry_size != sizeof(ElfSymbol) || table.link >= sections_.size()) {
      return Error(absl::StatusCode::kInvalidArgument, "ELF file: bad symbol table header");
    }
    ASSIGN_OR_RETURN(std::string symbols, Take(table));
    ASSIGN_OR_RETURN(std::string strings, Take(sections_[table.link]));
    string_tables_.push_back(std::make_unique<std::string>(std::move(strings)));
    std::string_view names = *string_tables_.back();
    uint64_t name_bytes_left = names.size() * kNameSharingMax + kNameSharingSlackBytes;
    size_t count = std::min(symbols.size() / sizeof(ElfSymbol), kElfSymbolsMax - symbols_read_);
    symbols_read_ += count;
    for (size_t i = 0; i < count; ++i) {
      auto symbol = ReadElfStruct<ElfSymbol>(symbols, i * sizeof(ElfSymbol));
      std::optional<Candidate> candidate = Accept(symbol);
      if (!candidate || symbol.name >= names.size()) continue;
      std::string_view name = names.substr(symbol.name, SymbolTable::kNameBytesMax);
      name = name.substr(0, name.find('\0'));
      if (name.size() > name_bytes_left) {
        return Error(absl::StatusCode::kResourceExhausted, "ELF file: symbols repeat names beyond reason");
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

  // Ranges in order of preference at each address, each with a size. Their names live as long as this object.
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

 private:
  absl::StatusOr<std::string> Take(const ElfSection& section) {
    ASSIGN_OR_RETURN(std::string bytes, file_.SectionBytes(section, bytes_left_));
    bytes_left_ -= bytes.size();
    return bytes;
  }

  // Everything but the name.
  std::optional<Candidate> Accept(const ElfSymbol& symbol) const {
    uint8_t type = symbol.info & 0xf;
    bool function = type == kElfSymbolFunction || type == kElfSymbolIfunc;
    bool sized_label = type == kElfSymbolNoType && symbol.size > 0;
    if (!function && !sized_label) return std::nullopt;
    if (symbol.section == kElfIndexUndefined) return std::nullopt;
    // Reserved indices mean "absolute" and "common"; only "the index is elsewhere" is a section.
    if (symbol.section >= kElfIndexReserved && symbol.section != kElfIndexExtended) return std::nullopt;
    const ElfSegment* segment = FindExecutable(symbol.value);
    if (segment == nullptr) return std::nullopt;
    Candidate candidate{.address = symbol.value, .size = symbol.size, .limit = segment->address + segment->memory_size};
    if (symbol.section < sections_.size()) {
      const ElfSection& section = sections_[symbol.section];
      if (sized_label && (section.flags & kElfSectionExecutable) == 0) return std::nullopt;
      bool inside = symbol.value >= section.address && symbol.value - section.address < section.size;
      if (inside && symbol.size == 0 && section.size <= UINT64_MAX - section.address) {
        candidate.limit = std::min(candidate.limit, section.address + section.size);
      }
    } else if (sized_label) {
      return std::nullopt;
    }
    return candidate;
  }

  const ElfSegment* FindExecutable(uint64_t address) const {
    for (const ElfSegment& segment : file_.segments()) {
      if (segment.executable && address >= segment.address && address - segment.address < segment.memory_size) {
        return &segment;
      }
    }
    return nullptr;
  }

  ElfFile& file_;
  const std::vector<ElfSection>& sections_;
  uint64_t bytes_left_;
  size_t symbols_read_ = 0;
  bool any_static_ = false, any_dynamic_ = false;
  std::vector<std::unique_ptr<std::string>> string_tables_;
  std::vector<Candidate> candidates_;
};

}  // namespace

absl::StatusOr<SymbolSource> AddElfSymbols(ElfFile& file, SymbolTableBuilder& builder, uint64_t bytes_max) {
  ASSIGN_OR_RETURN(const std::vector<ElfSection>* sections, file.Sections());
  Reader reader(file, *sections, bytes_max);
  // The gABI allows one table of each kind; more are not looked at.
  for (uint32_t type : {kElfSectionSymtab, kElfSectionDynsym}) {
    auto table = std::find_if(sections->begin(), sections->end(), [&](const ElfSection& s) { return s.type == type; });
    if (table != sections->end()) RETURN_IF_ERROR(reader.ReadTable(*table, type == kElfSectionDynsym));
  }
  if (!reader.any()) return Error(absl::StatusCode::kNotFound, "ELF file: no function symbols");
  for (const SymbolRange& range : reader.TakeRanges(builder)) {
    builder.AddFunction(range, SymbolTableBuilder::Layer::kSymbols);
  }
  return reader.any_static() ? SymbolSource::kSymtab : SymbolSource::kDynsym;
}

absl::StatusOr<std::shared_ptr<const SymbolTable>> ReadElfSymbols(ElfFile& file, const ExecutableId& id,
                                                                  uint64_t bytes_max) {
  SymbolTableBuilder builder;
  ASSIGN_OR_RETURN(const SymbolSource source, AddElfSymbols(file, builder, bytes_max));
  return builder.Build(id, source);
}

}  // namespace tributary
