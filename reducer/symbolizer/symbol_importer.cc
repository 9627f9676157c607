#include "reducer/symbolizer/symbol_importer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "base/status.h"
#include "base/whole_file.h"
#include "elf/elf_format.h"
#include "symbols/symbol_codec.h"
#include "symbols/table_file.h"

namespace tributary {
namespace {

constexpr size_t kTableFileBytesMax = kEncodedSymbolsMax / 2;

}  // namespace

absl::StatusOr<SymbolImporter::Imported> SymbolImporter::Import(const File& file) {
  char begin[kTableFileMagic.size()];
  const ssize_t n = pread(file.fd, begin, sizeof(begin), 0);
  if (n < 0) return ErrnoStatus("read", file.name, errno);
  const std::string_view magic(begin, static_cast<size_t>(n));
  absl::StatusOr<Imported> imported = Error(
      absl::StatusCode::kInvalidArgument,
      "the file is neither an ELF file (an executable, a library or a debug file) nor a symbol table file (.tsym)");
  if (magic == kTableFileMagic) {
    imported = ImportTable(file);
  } else if (magic.starts_with(kElfMagic)) {
    imported = ImportElf(file);
  }
  if (!imported.ok()) {
    if (!absl::IsUnavailable(imported.status())) {
      notices_.Add(file.claimed, fmt::format("{}: {}", file.name, Message(imported.status())));
    }
    return imported;
  }
  const ExecutableId& id = imported->kept.row.header.id;
  if (imported->kept.contested) {
    imported->remarks.push_back(
        "another file with this build-id has different code: only the better symbol table is kept");
  }
  for (const std::string& remark : imported->remarks) notices_.Add(id, fmt::format("{}: {}", file.name, remark));
  return imported;
}

absl::StatusOr<SymbolImporter::Imported> SymbolImporter::ImportTable(const File& file) {
  ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(file.fd, kTableFileBytesMax, "the file"));
  const absl::StatusOr<TableFile> header = ParseTableFileHeader(bytes);
  const absl::StatusOr<std::string> encoded = ReadTableFile(bytes);
  if (!header.ok()) return Error(absl::StatusCode::kInvalidArgument, Message(header.status()));
  if (absl::IsDataLoss(encoded.status())) {
    return Error(absl::StatusCode::kInvalidArgument, Message(encoded.status()));
  }
  RETURN_IF_ERROR(encoded.status());
  if (file.claimed.known() && header->id != file.claimed) {
    return Error(absl::StatusCode::kInvalidArgument, fmt::format("the file is the symbol table of {}, not of {}",
                                                                 header->id.ToString(), file.claimed.ToString()));
  }
  Imported imported;
  ASSIGN_OR_RETURN(imported.kept, store_.Put(header->id, *encoded, file.origin));
  return imported;
}

absl::StatusOr<SymbolImporter::Imported> SymbolImporter::ImportElf(const File& file) {
  SymbolExtractor::Files files = {.file = file.fd, .package = file.package};
  ASSIGN_OR_RETURN(SymbolExtractor::Extracted extracted, extractor_.Extract(files, file.claimed));
  Fd shared;
  const auto shared_id = ExecutableId::Make(ExecutableIdKind::kGnuBuildId, extracted.shared_id);
  if (shared_id && shared_id->known() && find_shared_) shared = find_shared_(*shared_id);
  if (shared.valid()) {
    files.shared = shared.get();
    ASSIGN_OR_RETURN(extracted, extractor_.Extract(files, file.claimed));
  }
  Imported imported;
  if (!extracted.shared_id.empty()) {
    imported.remarks.push_back(
        fmt::format("dwz moved a part of the debug information to the file with build-id {}, which the reducer does "
                    "not have: use `tributary symbols push` on a machine that has this second file",
                    shared_id ? shared_id->ToString() : "unknown"));
  }
  if (extracted.missing_split > 0) {
    imported.remarks.push_back(
        fmt::format("the debug information of {} compile units is in .dwo files: use `tributary symbols push` on a "
                    "machine that has these files",
                    extracted.missing_split));
  }
  if (extracted.malformed > 0) {
    imported.remarks.push_back(
        fmt::format("parts of {} compile units of the debug information cannot be read", extracted.malformed));
  }
  if (extracted.left_out > 0) {
    imported.remarks.push_back(fmt::format(
        "{} names or address ranges were left out, because they are unreadable or exceed a limit", extracted.left_out));
  }
  ASSIGN_OR_RETURN(imported.kept, store_.Put(extracted.id, extracted.encoded, file.origin));
  return imported;
}

}  // namespace tributary
