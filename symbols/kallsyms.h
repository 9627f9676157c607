#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "symbols/symbol_table.h"

namespace tributary {

// Parses `/proc/kallsyms` text: lines "address type name[\t[module]]". PermissionDenied: all addresses are 0
// (kptr_restrict; the message says so). InvalidArgument: no _stext. Types t T w W only; module and bpf lines are left
// out; addresses become offsets from _stext; a symbol's size reaches to the next symbol (at most to _etext). Input may
// be megabytes: one pass, no copy of lines.
struct ParsedKallsyms {
  uint64_t text_begin = 0;
  uint64_t text_end = 0;
  std::shared_ptr<const SymbolTable> table;
};
absl::StatusOr<ParsedKallsyms> ParseKallsyms(std::string_view text, const ExecutableId& kernel_id);

// Same for one module's lines ("…\t[name]"), offsets from `base`. NotFound: no line of it.
absl::StatusOr<std::shared_ptr<const SymbolTable>> ParseModuleSymbols(std::string_view kallsyms_text,
                                                                      std::string_view module_name, uint64_t base,
                                                                      uint64_t size, const ExecutableId& id);

// The GNU build-id of an ELF note section's bytes (/sys/kernel/notes, /sys/module/X/notes/…).
absl::StatusOr<ExecutableId> BuildIdFromNotes(std::string_view notes);

}  // namespace tributary
