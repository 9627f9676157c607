#include "elf/thread_starts.h"

#include <algorithm>
#include <string_view>

#include "elf/elf_format.h"
#include "elf/file_window.h"
#include "elf/go_functions.h"

namespace tributary {
namespace {

constexpr uint64_t kSymbolsMax = 4u << 20;
// Dynamic symbols are in the order of their hashes, so each symbol costs an access elsewhere in the names: 27 ms for
// LLVM's. The libraries that start threads (C libraries) have some thousands of symbols.
constexpr uint64_t kDynamicSymbolsMax = 16u << 10;
constexpr size_t kStartsMax = 64;
constexpr uint64_t kUnknownBytes = 64;

// Functions that have no caller: start functions of processes and threads in the C libraries (glibc, musl), and Go's.
constexpr std::string_view kNames[] = {
    "_start",
    "__start",
    "_dl_start_user",
    "_dlstart",
    "clone",
    "__clone",
    "clone3",
    "__clone3",
    "__clone_internal",
    "runtime.goexit",
    "runtime.mstart",
    "runtime.rt0_go",
    "_rt0_amd64",
    "_rt0_amd64_linux",
    "_rt0_arm64_linux",
    "_rt0_amd64_linux_lib",
    "runtime.goexit.abi0",
    "runtime.rt0_go.abi0",
    "runtime.mstart.abi0",
    "runtime.clone",
    "runtime.clone.abi0",
};
constexpr std::string_view kGoStart = "runtime.goexit";
constexpr size_t kNameBytesMax = 24;

class Finder {
 public:
  Finder(ElfFile& file, const std::function<std::optional<AddressRange>(uint64_t)>& function_at)
      : file_(file), function_at_(function_at), symbols_(&file, 2), names_(&file, 32) {}

  void Add(uint64_t address, uint64_t size) {
    if (found_.size() >= kStartsMax || !Executable(address)) return;
    if (size != 0 && size <= UINT64_MAX - address) {
      found_.push_back({address, address + size});
      return;
    }
    auto function = function_at_(address);
    found_.push_back(function.value_or(AddressRange{address, address + std::min(kUnknownBytes, UINT64_MAX - address)}));
  }

  void AddSymbols(const ElfSection& table, const ElfSection& strings) {
    if (table.entry_size != sizeof(ElfSymbol) || strings.type == kElfSectionNobits) return;
    uint64_t count = std::min(table.size / sizeof(ElfSymbol), kSymbolsMax);
    for (uint64_t i = 0; i < count; ++i) {
      const char* bytes = symbols_.View(table.offset + i * sizeof(ElfSymbol), sizeof(ElfSymbol));
      if (bytes == nullptr) return;
      auto symbol = ReadElfStruct<ElfSymbol>({bytes, sizeof(ElfSymbol)}, 0);
      uint8_t type = symbol.info & 0xf;
      bool code = type == kElfSymbolFunction || type == kElfSymbolNoType;
      if (!code || symbol.section == kElfIndexUndefined || symbol.name >= strings.size) continue;
      size_t size = std::min<uint64_t>(kNameBytesMax, strings.size - symbol.name);
      const char* name = names_.View(strings.offset + symbol.name, size);
      if (name == nullptr) return;
      if (!Matches({name, size})) continue;
      Add(symbol.value, symbol.size);
      go_start_found_ |= std::string_view(name, size).substr(0, kGoStart.size()) == kGoStart;
    }
  }

  // Adds functions that symbols did not name. Most Go programs are delivered without symbols.
  void AddGoFunctions() {
    if (go_start_found_) return;
    for (const AddressRange& function : FindGoFunctions(file_, kNames))
      Add(function.begin, function.end - function.begin);
  }

  std::vector<AddressRange> Take() {
    std::sort(found_.begin(), found_.end(), [](const AddressRange& a, const AddressRange& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
    });
    auto same = [](const AddressRange& a, const AddressRange& b) { return a.begin == b.begin; };
    found_.erase(std::unique(found_.begin(), found_.end(), same), found_.end());
    return std::move(found_);
  }

 private:
  // `bytes` continues after the name.
  static bool Matches(std::string_view bytes) {
    char first = bytes.empty() ? '\0' : bytes[0];
    if (first != '_' && first != 'c' && first != 'r') return false;
    std::string_view name = bytes.substr(0, bytes.find('\0'));
    return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
  }

  bool Executable(uint64_t address) const {
    return std::any_of(file_.segments().begin(), file_.segments().end(), [&](const ElfSegment& segment) {
      return segment.executable && address >= segment.address && address - segment.address < segment.memory_size;
    });
  }

  ElfFile& file_;
  const std::function<std::optional<AddressRange>(uint64_t)>& function_at_;
  FileWindow symbols_, names_;
  std::vector<AddressRange> found_;
  bool go_start_found_ = false;
};

}  // namespace

std::vector<AddressRange> FindThreadStarts(ElfFile& file,
                                           const std::function<std::optional<AddressRange>(uint64_t)>& function_at) {
  Finder finder(file, function_at);
  if (file.entry() != 0) finder.Add(file.entry(), 0);
  auto sections = file.Sections();
  if (!sections.ok()) {
    finder.AddGoFunctions();
    return finder.Take();
  }
  for (uint32_t type : {kElfSectionSymtab, kElfSectionDynsym}) {
    bool any = false;
    for (const ElfSection& section : **sections) {
      if (section.type != type || section.link >= (*sections)->size()) continue;
      if (type == kElfSectionDynsym && section.size / sizeof(ElfSymbol) > kDynamicSymbolsMax) continue;
      finder.AddSymbols(section, (**sections)[section.link]);
      any = true;
      break;
    }
    if (any) break;
  }
  finder.AddGoFunctions();
  return finder.Take();
}

}  // namespace tributary
