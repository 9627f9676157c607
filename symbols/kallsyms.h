#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "symbols/symbol_table.h"

namespace tributary {

// Parses `/proc/kallsyms` text: lines "address type name[\t[module]]". PermissionDenied if all addresses are 0
// (kptr_restrict; the message says so). InvalidArgument if _stext or _etext is missing. Takes only the types t T w W.
// Leaves out module and bpf lines. Addresses become offsets from _stext. The size of a symbol reaches to the next
// symbol (at most to _etext). The input may have megabytes: one pass, no copy of lines.
struct ParsedKallsyms {
  uint64_t text_begin = 0;
  uint64_t text_end = 0;
  std::shared_ptr<const SymbolTable> table;
};
absl::StatusOr<ParsedKallsyms> ParseKallsyms(std::string_view text, const ExecutableId& kernel_id);

// The same for the lines of one module ("…\t[name]"), with offsets from `base`. NotFound if there is no such line.
absl::StatusOr<std::shared_ptr<const SymbolTable>> ParseModuleSymbols(std::string_view kallsyms_text,
                                                                      std::string_view module_name, uint64_t base,
                                                                      uint64_t size, const ExecutableId& id);

// Returns the GNU build-id in an ELF note section's bytes (/sys/kernel/notes, /sys/module/X/notes/…).
absl::StatusOr<ExecutableId> BuildIdFromNotes(std::string_view notes);

}  // namespace tributary
