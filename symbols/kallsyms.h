#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "symbols/symbol_table.h"

namespace tributary {

// Parses the text of /proc/kallsyms, which has lines "address type name[\t[module]]". Uses only lines of the types t,
// T, w and W, and no lines of modules and BPF programs. Converts addresses to offsets from _stext. A symbol extends to
// the next symbol, at most to _etext. PermissionDenied if all addresses are 0, because of kptr_restrict.
// InvalidArgument if _stext or _etext is missing. The text may have megabytes: it is read once, and lines are not
// copied.
struct ParsedKallsyms {
  uint64_t text_begin = 0;
  uint64_t text_end = 0;
  std::shared_ptr<const SymbolTable> table;
};
absl::StatusOr<ParsedKallsyms> ParseKallsyms(std::string_view text, const ExecutableId& kernel_id);

// Does the same for the lines of one module ("…\t[name]"), with offsets from `base`. NotFound if the module has no
// lines.
absl::StatusOr<std::shared_ptr<const SymbolTable>> ParseModuleSymbols(std::string_view kallsyms_text,
                                                                      std::string_view module_name, uint64_t base,
                                                                      uint64_t size, const ExecutableId& id);

// Returns the GNU build-id from the bytes of an ELF note section (/sys/kernel/notes, /sys/module/X/notes/…).
absl::StatusOr<ExecutableId> BuildIdFromNotes(std::string_view notes);

}  // namespace tributary
