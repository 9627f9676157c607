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

// From a file, whoever it came from, to a table in the store: an executable or a debug file is read by an extractor
// process, a table's file (symbols/table_file.h) is checked. Any thread; takes as long as reading the file does.
class SymbolImporter {
 public:
  // Finds what dwz moved out of a file by its build-id; an Fd that is not valid: not here.
  using FindShared = std::function<Fd(const ExecutableId& build_id)>;

  SymbolImporter(SymbolStore& store, SymbolExtractor& extractor, SymbolNotices& notices)
      : store_(store), extractor_(extractor), notices_(notices) {}
  void SetFindShared(FindShared find) { find_shared_ = std::move(find); }  // before the first Import

  struct File {
    int fd = -1;
    int package = -1;      // its .dwp; −1: none
    ExecutableId claimed;  // whose it must be, where that is known
    SymbolOrigin origin = SymbolOrigin::kUpload;
    std::string_view name;  // for people
  };
  struct Imported {
    SymbolStore::Kept kept;
    std::vector<std::string> remarks;  // what is missing or odd, each a sentence
  };
  // Errors: SymbolExtractor's and SymbolStore::Put's; they are noticed, too.
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
