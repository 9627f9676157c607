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

// Turns a file from any source into a table in the store. An extractor process reads an executable or a debug file. A
// table's file (symbols/table_file.h) is checked. Any thread; takes as long as reading the file takes.
class SymbolImporter {
 public:
  // Finds the file with the parts that dwz moved, by its build-id. The Fd is not valid if the file is not here.
  using FindShared = std::function<Fd(const ExecutableId& build_id)>;

  SymbolImporter(SymbolStore& store, SymbolExtractor& extractor, SymbolNotices& notices)
      : store_(store), extractor_(extractor), notices_(notices) {}
  void SetFindShared(FindShared find) { find_shared_ = std::move(find); }  // call it before the first Import

  struct File {
    int fd = -1;
    int package = -1;      // its .dwp; −1: none
    ExecutableId claimed;  // the executable that it must belong to, if known
    SymbolOrigin origin = SymbolOrigin::kUpload;
    std::string_view name;  // for messages
  };
  struct Imported {
    SymbolStore::Kept kept;
    std::vector<std::string> remarks;  // about missing or odd parts, each a sentence
  };
  // Errors: SymbolExtractor's and SymbolStore::Put's. All except Unavailable are added to the notices, too.
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
