#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/types.h"
#include "symbols/symbol_table.h"
#include "symbols/table_file.h"

namespace tributary {

// The origin of a table. Stored on disk, so append only.
enum class SymbolOrigin : uint8_t { kNode = 1, kUpload = 2, kDebugDirectory = 3, kDebuginfod = 4 };
std::string_view SymbolOriginName(SymbolOrigin origin);

// The directory of symbol tables, one per executable:
//   ab/ID.tsym           symbols/table_file.h; ab: the id's first byte
//   ab/ID-CHECKSUM.flat  the same table in the form that look-ups map; made again if it is missing
// Files are written whole and renamed, so that several reducers may share a directory: each call reads the current
// files. The time of a file's last use is its modification time. Any thread. Errors: as errno says; DataLoss if a file
// has wrong contents.
class SymbolFiles {
 public:
  struct Row {
    TableFile header;
    uint64_t stored_bytes = 0;  // of the file
    UnixNs last_used;

    SymbolOrigin origin() const { return static_cast<SymbolOrigin>(header.origin); }
  };
  struct Flat {
    std::string path;
    uint64_t bytes = 0;
    UnixNs last_used;
  };
  struct Contents {
    std::vector<Row> rows;
    std::vector<Flat> flats;
  };

  // Creates the directory if it is missing.
  static absl::StatusOr<SymbolFiles> Open(std::string directory);

  absl::StatusOr<Contents> List() const;                   // without files that make no sense
  absl::StatusOr<Row> Find(const ExecutableId& id) const;  // or NotFound
  // Writes both forms.
  absl::Status Put(const TableFile& header, const SymbolTable& table, std::string_view encoded, UnixNs now,
                   Row* row) const;
  absl::Status SetContested(const Row& row) const;
  absl::StatusOr<std::shared_ptr<const SymbolTable>> Load(const Row& row) const;
  void Touch(const Row& row, UnixNs time) const;  // marks both forms
  void Delete(const ExecutableId& id) const;
  void DeleteFlat(const Row& row) const;
  void DeleteFlat(const Flat& flat) const;

  const std::string& directory() const { return directory_; }

 private:
  explicit SymbolFiles(std::string directory) : directory_(std::move(directory)) {}
  std::string PathOf(const ExecutableId& id) const;
  std::string FlatPathOf(const Row& row) const;

  std::string directory_;
};

}  // namespace tributary
