// Prints the unwind rows of executables, for people and for rows_oracle_test.py.
//
//   rows_dump [--raw] FILE…   one line per row: address and rule; --raw: "address rule" in hexadecimal
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "base/fd.h"
#include "base/status.h"
#include "elf/elf_file.h"
#include "elf/unwind_rule.h"
#include "elf/unwind_source.h"

namespace tributary {
namespace {

absl::Status Dump(const char* path, bool raw) {
  ASSIGN_OR_RETURN(auto file, ElfFile::Open(Fd(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK))));
  ASSIGN_OR_RETURN(auto source, UnwindSource::Open(std::move(file)));
  AddressRange text = source->text();
  std::vector<UnwindRow> rows;
  for (uint64_t begin = text.begin; begin < text.end;) {
    AddressRange range{begin, begin + std::min<uint64_t>(text.end - begin, UnwindSource::kRangeBytesMax)};
    RETURN_IF_ERROR(source->Compile(range, &rows));
    fmt::memory_buffer out;
    for (const UnwindRow& row : rows) {
      if (raw) {
        fmt::format_to(std::back_inserter(out), "{:x} {:x}\n", begin + row.offset, row.rule);
      } else {
        fmt::format_to(std::back_inserter(out), "{:016x} {}\n", begin + row.offset, FormatRule(row.rule));
      }
    }
    fwrite(out.data(), 1, out.size(), stdout);
    begin = range.end;
  }
  const UnwindSource::Counts& counts = source->counts();
  fmt::print("# {} text {:x}-{:x} kind {} entries {} bad {} unsupported {}", path, text.begin, text.end,
             static_cast<int>(source->kind()), counts.entries, counts.bad_entries, counts.unsupported_rows);
  for (const AddressRange& start : source->starts()) fmt::print(" start {:x}-{:x}", start.begin, start.end);
  fmt::print("\n");
  return absl::OkStatus();
}

}  // namespace
}  // namespace tributary

int main(int argc, char** argv) {
  bool raw = argc > 1 && std::string_view(argv[1]) == "--raw";
  int failed = 0;
  for (int i = raw ? 2 : 1; i < argc; ++i) {
    absl::Status status = tributary::Dump(argv[i], raw);
    if (status.ok()) continue;
    fmt::print("# {} error {}\n", argv[i], tributary::Message(status));
    failed = 1;
  }
  return failed;
}
