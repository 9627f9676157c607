#include "symbols/kallsyms.h"

#include <algorithm>

#include "base/number.h"
#include "base/status.h"
#include "elf/elf_notes.h"
#include "symbols/kallsyms_lines.h"
#include "symbols/mapping_symbol.h"
#include "symbols/symbol_builder.h"

namespace tributary {
namespace {

constexpr size_t kKallsymsMax = 4'000'000;

struct Symbol {
  uint64_t address = 0;
  uint32_t rank = 0;
  std::string_view name;
};

// Returns true if the line names a function, or code like a function.
bool IsFunction(const KallsymsLine& line) {
  const bool is_code = line.type == 'T' || line.type == 't' || line.type == 'W' || line.type == 'w';
  return is_code && !IsMappingSymbol(line.name);
}

// Linker scripts put such labels where a section begins or ends. The address may or may not be that of a real function.
bool IsMarker(std::string_view name) {
  return name == "_text" || name == "_stext" || name == "_etext" ||
         (name.starts_with("__") && (name.ends_with("_start") || name.ends_with("_end") || name.ends_with("_begin")));
}

uint32_t Rank(char type, std::string_view name) {
  uint32_t by_binding = type == 'T' ? 0 : type == 'W' || type == 'w' ? 1 : 2;
  return (IsMarker(name) ? 4 : 0) + by_binding;
}

// Offsets count from `base`. The last symbol reaches to `end`.
std::shared_ptr<const SymbolTable> BuildRebased(std::vector<Symbol> symbols, uint64_t base, uint64_t end,
                                                const ExecutableId& id) {
  std::erase_if(symbols, [&](const Symbol& s) { return s.address < base || s.address >= end; });
  std::stable_sort(symbols.begin(), symbols.end(), [](const Symbol& a, const Symbol& b) {
    return a.address != b.address ? a.address < b.address : a.rank < b.rank;
  });
  std::vector<SymbolRange> ranges;
  ranges.reserve(symbols.size());
  for (size_t i = 0; i < symbols.size();) {
    size_t next = i + 1;
    while (next < symbols.size() && symbols[next].address == symbols[i].address) ++next;
    uint64_t range_end = next < symbols.size() ? symbols[next].address : end;
    ranges.push_back(
        {.address = symbols[i].address - base, .size = range_end - symbols[i].address, .name = symbols[i].name});
    i = next;
  }
  symbols = {};
  return BuildSymbolTable(id, SymbolSource::kKallsyms, ranges);
}

absl::Status Hidden() {
  return Error(absl::StatusCode::kPermissionDenied,
               "/proc/kallsyms shows no addresses: grant CAP_SYSLOG, and if kernel.kptr_restrict is 2, set it to 1");
}

}  // namespace

absl::StatusOr<ParsedKallsyms> ParseKallsyms(std::string_view text, const ExecutableId& kernel_id) {
  ParsedKallsyms result;
  std::vector<Symbol> symbols;
  bool any_line = false, any_address = false;
  std::string_view line;
  while (TakeLine(text, &line) && symbols.size() < kKallsymsMax) {
    auto parsed = ParseKallsymsLine(line);
    if (!parsed || !parsed->module.empty()) continue;
    any_line = true;
    any_address |= parsed->address != 0;
    // arm64's linker script puts _etext outside .text, where it has the type of data.
    if (parsed->name == "_stext") result.text_begin = parsed->address;
    if (parsed->name == "_etext") result.text_end = parsed->address;
    if (!IsFunction(*parsed) || parsed->address == 0) continue;
    symbols.push_back({parsed->address, Rank(parsed->type, parsed->name), parsed->name});
  }
  if (any_line && !any_address) return Hidden();
  if (result.text_begin == 0 || result.text_end <= result.text_begin) {
    return Error(absl::StatusCode::kInvalidArgument,
                 "kallsyms: _stext or _etext is missing, or _etext is not after _stext");
  }
  result.table = BuildRebased(std::move(symbols), result.text_begin, result.text_end, kernel_id);
  return result;
}

absl::StatusOr<std::shared_ptr<const SymbolTable>> ParseModuleSymbols(std::string_view kallsyms_text,
                                                                      std::string_view module_name, uint64_t base,
                                                                      uint64_t size, const ExecutableId& id) {
  std::vector<Symbol> symbols;
  bool hidden = false;
  std::string_view line;
  while (TakeLine(kallsyms_text, &line) && symbols.size() < kKallsymsMax) {
    auto parsed = ParseKallsymsLine(line);
    if (!parsed || parsed->module != module_name || module_name.empty() || !IsFunction(*parsed)) continue;
    if (parsed->address == 0) {
      hidden = true;
      continue;
    }
    symbols.push_back({parsed->address, Rank(parsed->type, parsed->name), parsed->name});
  }
  if (symbols.empty() && hidden) return Hidden();
  uint64_t end = size > UINT64_MAX - base ? UINT64_MAX : base + size;
  auto table = BuildRebased(std::move(symbols), base, end, id);
  if (table->function_count() == 0) {
    return Error(absl::StatusCode::kNotFound,
                 std::string("kallsyms: there is no symbol of the module ").append(module_name));
  }
  return table;
}

absl::StatusOr<ExecutableId> BuildIdFromNotes(std::string_view notes) {
  auto note = FindNote(notes, 4, kGnuNoteName, kGnuBuildIdNoteType);
  if (!note) return Error(absl::StatusCode::kNotFound, "notes: no GNU build-id");
  auto id = ExecutableId::Make(ExecutableIdKind::kGnuBuildId, *note);
  if (!id) return Error(absl::StatusCode::kInvalidArgument, "notes: the GNU build-id has an invalid length");
  return *id;
}

}  // namespace tributary
