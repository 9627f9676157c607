#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/fd.h"
#include "reducer/symbolizer/symbol_extractor.h"
#include "reducer/symbolizer/symbol_notices.h"
#include "reducer/symbolizer/symbol_store.h"

namespace tributary {

// Makes a symbol table from an executable, a debug file or a symbol table file, and stores it. An extractor process
// reads executables and debug files, because they are untrusted. A symbol table file (symbols/table_file.h) is checked
// in this process. Any thread. Import blocks until the table is stored, which may take minutes for a large file.
class SymbolImporter {
 public:
  // Finds the file into which dwz moved shared debug information. The Fd is invalid if the file was not found.
  using FindShared = std::function<Fd(const ExecutableId& build_id)>;

  SymbolImporter(SymbolStore& store, SymbolExtractor& extractor, SymbolNotices& notices)
      : store_(store), extractor_(extractor), notices_(notices) {}
  void SetFindShared(FindShared find) { find_shared_ = std::move(find); }  // call it before the first Import

  struct File {
    int fd = -1;
    int package = -1;      // its .dwp; −1: none
    ExecutableId claimed;  // the executable to which the file must belong, if known
    SymbolOrigin origin = SymbolOrigin::kUpload;
    std::string_view name;  // for messages
  };
  struct Imported {
    SymbolStore::Kept kept;
    std::vector<std::string> remarks;  // sentences about debug information that is missing or could not be read
  };
  // InvalidArgument if the file is neither an ELF file nor a symbol table file. Otherwise returns the errors of
  // SymbolExtractor::Extract and SymbolStore::Put. Adds each error except Unavailable to the notices, and also each
  // remark.
  absl::StatusOr<Imported> Import(const File& file);

 private:
  absl::StatusOr<Imported> ImportTable(const File& file);
  absl::StatusOr<Imported> ImportElf(const File& file);

  SymbolStore& store_;
  SymbolExtractor& extractor_;
  SymbolNotices& notices_;
  FindShared find_shared_;
};

}  // namespace tributary
