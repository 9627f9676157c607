#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/types.h"
#include "reducer/symbolizer/table_notes.h"
#include "symbols/symbol_table.h"
#include "symbols/table_file.h"

namespace tributary {

// Where a table came from. The values are stored on disk: do not change them, only add new ones.
enum class SymbolOrigin : uint8_t {
  kNode = 1,  // one node: nothing confirms its table
  kUpload = 2,
  kDebugDirectory = 3,
  kDebuginfod = 4,
  kNodes = 5,  // two nodes have the same table
};
std::string_view SymbolOriginName(SymbolOrigin origin);
// How much a table of this origin is trusted: it replaces a table with a lower rank. Unknown origins, which a later
// release has stored, have the rank of one node. A directory often has stripped programs, too: without debug
// information, its tables have the rank of debuginfod, whose servers the operator has also chosen.
int SymbolOriginRank(SymbolOrigin origin, SymbolSource source);

// The directory of symbol tables, one per executable:
//   ab/ID.tsym           the table as a file of symbols/table_file.h; ab: the first byte of the executable's id, in hex
//   ab/ID-CHECKSUM.flat  the same table in the form that is mapped into memory; written again if it is missing
//   ab/NAME.PID-N.new    one of these files while it is written; a killed reducer leaves it behind
// ID: the kind of the executable's id as a number, a hyphen, and the id in hex.
// Several reducers may share a directory: a new file is written under another name and then renamed, and each call
// reads the current files. A file's modification time is the time of its last use. Any thread. Errors: DataLoss if the
// contents of a file are wrong; otherwise the status code for the errno of the failed call.
class SymbolFiles {
 public:
  struct Row {
    TableFile header;
    uint64_t stored_bytes = 0;  // of the file
    UnixNs last_used;

    SymbolOrigin origin() const { return static_cast<SymbolOrigin>(header.origin); }
    TableNotes notes() const { return ParseTableNotes(header.notes); }
  };
  struct Flat {
    std::string path;
    uint64_t bytes = 0;
    UnixNs last_used;
  };
  struct Contents {
    std::vector<Row> rows;
    std::vector<Flat> flats;
    std::vector<std::string> abandoned;  // paths of .new files that no reducer writes any more
  };
  // A .new file counts as abandoned after this time without a change. A write takes seconds. An hour also covers the
  // difference between the clocks of reducers that share the directory.
  static constexpr int64_t kAbandonedAfterNs = 3600 * kNsPerSecond;
  static constexpr size_t kAbandonedMax = 1024;  // in Contents; the next List returns further files

  // Creates the directory if it is missing.
  static absl::StatusOr<SymbolFiles> Open(std::string directory);

  absl::StatusOr<Contents> List(UnixNs now) const;         // without unreadable and misnamed files
  absl::StatusOr<Row> Find(const ExecutableId& id) const;  // NotFound: there is no table
  // Returns the contents of a .tsym file. `encoded`: the output of EncodeSymbolTable.
  static std::string Pack(const TableFile& header, std::string_view encoded);
  // Writes the .tsym file, which Pack has made, and the .flat file.
  absl::Status Put(const TableFile& header, const SymbolTable& table, std::string_view packed, UnixNs now,
                   Row* row) const;
  // Writes the table file of `row` again, with the origin, the notes and the contested mark of row.header.
  absl::Status Annotate(Row& row) const;
  absl::StatusOr<std::string> ReadEncoded(const ExecutableId& id) const;  // the output of EncodeSymbolTable
  absl::StatusOr<std::shared_ptr<const SymbolTable>> Load(const Row& row) const;
  void Touch(const Row& row, UnixNs time) const;  // sets the time of last use of both files
  void Delete(const ExecutableId& id) const;
  void DeleteFlat(const Row& row) const;
  void DeleteFlat(const Flat& flat) const;
  absl::Status DeleteAbandoned(const std::string& path) const;

  const std::string& directory() const { return directory_; }

 private:
  explicit SymbolFiles(std::string directory) : directory_(std::move(directory)) {}
  std::string PathOf(const ExecutableId& id) const;
  std::string FlatPathOf(const Row& row) const;

  std::string directory_;
};

}  // namespace tributary
