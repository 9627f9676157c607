#include "elf/symbol_lookup.h"

#include <algorithm>
#include <string>

#include "base/status.h"
#include "elf/elf_format.h"
#include "elf/file_window.h"

namespace tributary {
namespace {

constexpr uint32_t kElfSectionGnuHash = 0x6ffffff6;
constexpr uint32_t kChainMax = 4096;  // entries with the same bucket
constexpr size_t kWindowBlocks = 8;
constexpr size_t kSearchBytes = 256u << 10;
constexpr size_t kPlacesMax = 16;  // of one name among the names of .symtab: names may share their ends

// The hash of a name in .gnu.hash. Source: glibc's dl_new_hash.
uint32_t GnuHash(std::string_view name) {
  uint32_t hash = 5381;
  for (char c : name) hash = hash * 33 + static_cast<uint8_t>(c);
  return hash;
}

class Lookup {
 public:
  Lookup(ElfFile& file, std::span<const std::string_view> names)
      : file_(file), names_(names), window_(&file, kWindowBlocks), found_(names.size()) {}

  absl::StatusOr<std::vector<std::optional<SymbolPlace>>> Run() {
    ASSIGN_OR_RETURN(sections_, file_.Sections());
    const ElfSection *dynamic = nullptr, *hash = nullptr, *symtab = nullptr;
    for (const ElfSection& section : *sections_) {
      if (section.type == kElfSectionDynsym) dynamic = &section;
      if (section.type == kElfSectionGnuHash) hash = &section;
      if (section.type == kElfSectionSymtab) symtab = &section;
    }
    if (dynamic != nullptr) UseDynamic(*dynamic, hash);
    bool missing = std::any_of(found_.begin(), found_.end(), [](const auto& place) { return !place.has_value(); });
    if (symtab != nullptr && missing) UseSymtab(*symtab);
    RETURN_IF_ERROR(window_.status());
    return std::move(found_);
  }

 private:
  template <typename T>
  std::optional<T> At(const ElfSection& section, uint64_t offset) {
    if (section.type == kElfSectionNobits || offset > section.size || section.size - offset < sizeof(T)) {
      return std::nullopt;
    }
    const char* bytes = window_.View(section.offset + offset, sizeof(T));
    if (bytes == nullptr) return std::nullopt;
    return ReadElfStruct<T>({bytes, sizeof(T)}, 0);
  }
  const ElfSection* NamesOf(const ElfSection& table) const {
    if (table.link >= sections_->size() || table.entry_size != sizeof(ElfSymbol)) return nullptr;
    return &(*sections_)[table.link];
  }
  std::optional<ElfSymbol> SymbolAt(const ElfSection& table, uint64_t index) {
    return At<ElfSymbol>(table, index * sizeof(ElfSymbol));
  }
  bool HasName(const ElfSection& strings, uint32_t offset, std::string_view name) {
    if (offset >= strings.size || strings.size - offset <= name.size()) return false;
    const char* bytes = window_.View(strings.offset + offset, name.size() + 1);
    return bytes != nullptr && std::string_view(bytes, name.size()) == name && bytes[name.size()] == 0;
  }
  void Take(size_t name, const ElfSymbol& symbol) {
    bool defined = symbol.section != kElfIndexUndefined && symbol.section != kElfIndexAbsolute;
    if (defined && !found_[name]) found_[name] = SymbolPlace{symbol.value, symbol.size};
  }

  void UseDynamic(const ElfSection& table, const ElfSection* hash) {
    const ElfSection* strings = NamesOf(table);
    if (strings == nullptr) return;
    if (hash != nullptr) {
      for (size_t i = 0; i < names_.size(); ++i) FindInHash(*hash, table, *strings, i);
      return;
    }
    uint64_t count = std::min(table.size / sizeof(ElfSymbol), kLookupDynamicSymbolsMax);
    for (uint64_t i = 0; i < count; ++i) {
      auto symbol = SymbolAt(table, i);
      if (!symbol) return;
      for (size_t name = 0; name < names_.size(); ++name) {
        if (HasName(*strings, symbol->name, names_[name])) Take(name, *symbol);
      }
    }
  }

  // The table: the numbers of buckets, of the first symbol in it, of words of a Bloom filter, and a shift; the filter;
  // the buckets; then a hash for each symbol, whose lowest bit marks the end of a bucket.
  void FindInHash(const ElfSection& hash, const ElfSection& table, const ElfSection& strings, size_t name) {
    auto buckets = At<uint32_t>(hash, 0), first = At<uint32_t>(hash, 4), filter = At<uint32_t>(hash, 8);
    if (!buckets || !first || !filter || *buckets == 0) return;
    const uint64_t bucket_begin = 16 + uint64_t{*filter} * 8, chain_begin = bucket_begin + uint64_t{*buckets} * 4;
    const uint32_t wanted = GnuHash(names_[name]);
    auto index = At<uint32_t>(hash, bucket_begin + uint64_t{wanted % *buckets} * 4);
    if (!index || *index < *first) return;
    for (uint32_t i = 0; i < kChainMax; ++i) {
      const uint64_t number = uint64_t{*index} + i;
      auto entry = At<uint32_t>(hash, chain_begin + (number - *first) * 4);
      if (!entry) return;
      if ((*entry | 1) == (wanted | 1)) {
        auto symbol = SymbolAt(table, number);
        if (symbol && HasName(strings, symbol->name, names_[name])) return Take(name, *symbol);
      }
      if ((*entry & 1) != 0) return;
    }
  }

  // Adds the offsets of all names in the section to `places`. A linker may let a name be the end of a longer one, so a
  // place need not follow a zero byte.
  void FindPlaces(const ElfSection& strings, std::span<const std::string_view> names,
                  std::vector<std::vector<uint32_t>>* places) {
    size_t overlap = 0;
    for (std::string_view name : names) overlap = std::max(overlap, name.size());
    const uint64_t end = std::min(strings.size, kLookupNameBytesMax);
    std::string bytes;
    for (uint64_t begin = 0; begin < end; begin += kSearchBytes) {
      bytes.resize(std::min<uint64_t>(end - begin, kSearchBytes + overlap));
      if (!file_.ReadAt(strings.offset + begin, bytes.size(), bytes.data()).ok()) return;
      for (size_t i = 0; i < names.size(); ++i) {
        const std::string_view name(names[i].data(), names[i].size() + 1);  // names are literals: a zero byte follows
        for (size_t at = bytes.find(name); at != std::string::npos; at = bytes.find(name, at + 1)) {
          if ((*places)[i].size() < kPlacesMax) (*places)[i].push_back(static_cast<uint32_t>(begin + at));
        }
      }
    }
  }

  void UseSymtab(const ElfSection& table) {
    const ElfSection* strings = NamesOf(table);
    if (strings == nullptr || strings->type == kElfSectionNobits) return;
    std::vector<std::vector<uint32_t>> places(names_.size());
    FindPlaces(*strings, names_.first(1), &places);
    if (places[0].empty()) return;
    places.assign(names_.size(), {});
    FindPlaces(*strings, names_, &places);
    uint64_t count = std::min(table.size / sizeof(ElfSymbol), kLookupSymbolsMax);
    for (uint64_t i = 0; i < count; ++i) {
      auto symbol = SymbolAt(table, i);
      if (!symbol) return;
      for (size_t name = 0; name < names_.size(); ++name) {
        if (std::find(places[name].begin(), places[name].end(), symbol->name) != places[name].end()) {
          Take(name, *symbol);
        }
      }
    }
  }

  ElfFile& file_;
  const std::span<const std::string_view> names_;
  FileWindow window_;
  const std::vector<ElfSection>* sections_ = nullptr;
  std::vector<std::optional<SymbolPlace>> found_;
};

}  // namespace

absl::StatusOr<std::vector<std::optional<SymbolPlace>>> LookUpSymbols(ElfFile& file,
                                                                      std::span<const std::string_view> names) {
  return Lookup(file, names).Run();
}

}  // namespace tributary
