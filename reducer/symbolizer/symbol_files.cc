#include "reducer/symbolizer/symbol_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/fd.h"
#include "base/hex.h"
#include "base/log.h"
#include "base/mapped_file.h"
#include "base/status.h"
#include "base/whole_file.h"
#include "symbols/symbol_codec.h"

namespace tributary {
namespace {

constexpr int kZstdLevel = 3;
constexpr std::string_view kTableSuffix = ".tsym", kFlatSuffix = ".flat", kUnfinishedSuffix = ".new";

UnixNs TimeOf(const struct stat& info) { return UnixNs{info.st_mtim.tv_sec * kNsPerSecond + info.st_mtim.tv_nsec}; }

void SetTime(const std::string& path, UnixNs time) {
  const timespec at = {.tv_sec = time.value / kNsPerSecond, .tv_nsec = time.value % kNsPerSecond};
  const timespec times[] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, at};
  // If this fails, the file is evicted too early at worst.
  if (utimensat(AT_FDCWD, path.c_str(), times, 0) != 0)
    LogDebug("cannot set the time of last use of {}: errno {}", path, errno);
}

// Returns true for the names that WriteWholeFile (base/whole_file.h) gives to the unfinished files of this directory:
// NAME.tsym.PID-N.new and NAME.flat.PID-N.new. Files of other programs stay.
bool IsUnfinished(std::string_view name) {
  if (!name.ends_with(kUnfinishedSuffix)) return false;
  name.remove_suffix(kUnfinishedSuffix.size());
  const size_t dot = name.rfind('.');
  if (dot == name.npos) return false;
  const std::string_view finished = name.substr(0, dot), number = name.substr(dot + 1);
  return number.find_first_not_of("0123456789-") == number.npos &&
         (finished.ends_with(kTableSuffix) || finished.ends_with(kFlatSuffix));
}

bool IsAbandoned(const std::string& path, UnixNs now) {
  struct stat info{};
  return lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
         now.value - TimeOf(info).value >= SymbolFiles::kAbandonedAfterNs;
}

absl::StatusOr<SymbolFiles::Row> ReadRow(const std::string& path) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info{};
  char header_bytes[kTableFileBeginBytes];
  if (!file.valid() || fstat(file.get(), &info) != 0) return ErrnoStatus("open", path, errno);
  const ssize_t n = read(file.get(), header_bytes, sizeof(header_bytes));
  if (n < 0) return ErrnoStatus("read", path, errno);
  absl::StatusOr<TableFile> header = ParseTableFileHeader({header_bytes, static_cast<size_t>(n)});
  if (!header.ok()) return WithContext(header.status(), path);
  return SymbolFiles::Row{*std::move(header), static_cast<uint64_t>(info.st_size), TimeOf(info)};
}

}  // namespace

std::string_view SymbolOriginName(SymbolOrigin origin) {
  switch (origin) {
    case SymbolOrigin::kNode:
      return "node";
    case SymbolOrigin::kUpload:
      return "upload";
    case SymbolOrigin::kDebugDirectory:
      return "directory";
    case SymbolOrigin::kDebuginfod:
      return "debuginfod";
    case SymbolOrigin::kNodes:
      return "nodes";
  }
  return "unknown";
}

int SymbolOriginRank(SymbolOrigin origin, SymbolSource source) {
  switch (origin) {
    case SymbolOrigin::kUpload:
      return 5;
    case SymbolOrigin::kDebugDirectory:
      return source == SymbolSource::kDwarf ? 4 : 3;
    case SymbolOrigin::kDebuginfod:
      return 3;
    case SymbolOrigin::kNodes:
      return 2;
    case SymbolOrigin::kNode:
      break;
  }
  return 1;
}

absl::StatusOr<SymbolFiles> SymbolFiles::Open(std::string directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return ErrnoStatus("create", directory, error.value());
  if (access(directory.c_str(), R_OK | W_OK | X_OK) != 0) return ErrnoStatus("write to", directory, errno);
  return SymbolFiles(std::move(directory));
}

std::string SymbolFiles::PathOf(const ExecutableId& id) const {
  const std::string hex = ToHex(id.bytes());
  return fmt::format("{}/{}/{}-{}{}", directory_, hex.substr(0, 2), static_cast<int>(id.kind()), hex, kTableSuffix);
}

std::string SymbolFiles::FlatPathOf(const Row& row) const {
  std::string path = PathOf(row.header.id);
  path.resize(path.size() - kTableSuffix.size());
  return fmt::format("{}-{:016x}{}", path, row.header.checksum, kFlatSuffix);
}

absl::StatusOr<SymbolFiles::Contents> SymbolFiles::List(UnixNs now) const {
  Contents contents;
  std::error_code error;
  for (std::filesystem::directory_iterator byte(directory_, error), end; byte != end; byte.increment(error)) {
    if (error) break;
    std::error_code inner;
    for (std::filesystem::directory_iterator file(byte->path(), inner); !inner && file != end; file.increment(inner)) {
      const std::string path = file->path().string();
      if (path.ends_with(kTableSuffix)) {
        absl::StatusOr<Row> row = ReadRow(path);
        // A copy under another name would be counted twice and never be found.
        if (row.ok() && PathOf(row->header.id) == path) contents.rows.push_back(*std::move(row));
      } else if (path.ends_with(kFlatSuffix)) {
        struct stat info{};
        if (stat(path.c_str(), &info) != 0) continue;
        contents.flats.push_back({path, static_cast<uint64_t>(info.st_size), TimeOf(info)});
      } else if (IsUnfinished(path) && contents.abandoned.size() < kAbandonedMax && IsAbandoned(path, now)) {
        contents.abandoned.push_back(path);
      }
    }
  }
  if (error) return ErrnoStatus("read", directory_, error.value());
  std::sort(contents.rows.begin(), contents.rows.end(),
            [](const Row& a, const Row& b) { return a.header.id < b.header.id; });
  return contents;
}

absl::StatusOr<SymbolFiles::Row> SymbolFiles::Find(const ExecutableId& id) const {
  ASSIGN_OR_RETURN(Row row, ReadRow(PathOf(id)));
  if (row.header.id == id) return row;
  return Error(absl::StatusCode::kDataLoss, PathOf(id) + ": the table belongs to another executable");
}

std::string SymbolFiles::Pack(const TableFile& header, std::string_view encoded) {
  return PackTableFile(header, encoded, kZstdLevel);
}

absl::Status SymbolFiles::Put(const TableFile& header, const SymbolTable& table, std::string_view packed, UnixNs now,
                              Row* row) const {
  *row = Row{header, 0, now};
  const std::string path = PathOf(header.id);
  if (mkdir(path.substr(0, path.rfind('/')).c_str(), 0755) != 0 && errno != EEXIST) {
    return ErrnoStatus("create", path.substr(0, path.rfind('/')), errno);
  }
  const std::string_view flat[] = {table.bytes()};
  RETURN_IF_ERROR(WriteWholeFile(FlatPathOf(*row), flat, /*durable=*/true));
  const std::string_view parts[] = {packed};
  if (absl::Status written = WriteWholeFile(path, parts, /*durable=*/true); !written.ok()) {
    DeleteFlat(*row);
    return written;
  }
  row->stored_bytes = packed.size();
  Touch(*row, now);
  return absl::OkStatus();
}

absl::Status SymbolFiles::Annotate(Row& row) const {
  ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(PathOf(row.header.id)));
  ASSIGN_OR_RETURN(TableFile header, ParseTableFileHeader(file.bytes()));
  if (header.checksum != row.header.checksum) {
    return Error(absl::StatusCode::kAborted, "another reducer has just replaced the symbol table");
  }
  header.origin = row.header.origin;
  header.contested = row.header.contested;
  header.notes = row.header.notes;
  const std::string header_bytes = TableFileHeader(header);
  const std::string_view parts[] = {header_bytes, TableFileBody(file.bytes())};
  RETURN_IF_ERROR(WriteWholeFile(PathOf(row.header.id), parts, /*durable=*/true));
  row.stored_bytes = header_bytes.size() + parts[1].size();
  Touch(row, row.last_used);
  return absl::OkStatus();
}

absl::StatusOr<std::string> SymbolFiles::ReadEncoded(const ExecutableId& id) const {
  ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(PathOf(id)));
  return ReadTableFile(file.bytes());
}

absl::StatusOr<std::shared_ptr<const SymbolTable>> SymbolFiles::Load(const Row& row) const {
  const std::string flat_path = FlatPathOf(row);
  if (auto mapped = SymbolTable::Map(flat_path); mapped.ok() && (*mapped)->id() == row.header.id) return mapped;
  const std::string path = PathOf(row.header.id);
  ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  auto bad = [&](std::string_view why) { return Error(absl::StatusCode::kDataLoss, fmt::format("{}: {}", path, why)); };
  const absl::StatusOr<std::string> encoded = ReadTableFile(file.bytes());
  if (!encoded.ok()) return bad(Message(encoded.status()));
  auto table = DecodeSymbolTable(*encoded);
  if (!table.ok()) return bad(Message(table.status()));
  if ((*table)->id() != row.header.id) return bad("the table belongs to another executable");
  const std::string_view flat[] = {(*table)->bytes()};
  if (absl::Status written = WriteWholeFile(flat_path, flat, /*durable=*/true); !written.ok()) {
    LogDebug("symbol table stays in memory: {}", Message(written));
    return table;
  }
  if (auto mapped = SymbolTable::Map(flat_path); mapped.ok()) return mapped;
  return table;
}

void SymbolFiles::Touch(const Row& row, UnixNs time) const {
  SetTime(PathOf(row.header.id), time);
  SetTime(FlatPathOf(row), time);
}

void SymbolFiles::Delete(const ExecutableId& id) const {
  if (const absl::StatusOr<Row> row = Find(id); row.ok()) DeleteFlat(*row);
  unlink(PathOf(id).c_str());
}

void SymbolFiles::DeleteFlat(const Row& row) const { unlink(FlatPathOf(row).c_str()); }
void SymbolFiles::DeleteFlat(const Flat& flat) const { unlink(flat.path.c_str()); }
absl::Status SymbolFiles::DeleteAbandoned(const std::string& path) const {
  return unlink(path.c_str()) == 0 ? absl::OkStatus() : ErrnoStatus("delete", path, errno);
}

}  // namespace tributary
