#include "reducer/sqlite/process_columns.h"

#include <concepts>

#include "reducer/sqlite/column_pieces.h"

namespace tributary::store {
namespace {

// The first version had no column of attributes.
constexpr char kVersion = 2;

// One list of columns serves both directions, so the layouts never differ between them.
template <typename Column>
bool ForEachProcessColumn(Column column, char version) {
  return column.Differences(&StoredProcess::no) && column.Runs(&StoredProcess::machine) &&
         column.Runs(&StoredProcess::boot) && column.Differences(&StoredProcess::pid) &&
         column.Differences(&StoredProcess::parent) && column.Differences(&StoredProcess::start_time_ns) &&
         column.Runs(&StoredProcess::exec_sequence) && column.Differences(&StoredProcess::comm) &&
         column.Differences(&StoredProcess::executable_path) && column.Runs(&StoredProcess::container_id) &&
         column.Runs(&StoredProcess::cgroup_path) && column.Differences(&StoredProcess::executable) &&
         (version < 2 || column.Runs(&StoredProcess::attributes));
}

template <typename Column>
bool ForEachThreadColumn(Column column) {
  return column.Differences(&StoredThread::no) && column.Differences(&StoredThread::process) &&
         column.Differences(&StoredThread::tid) && column.Differences(&StoredThread::name);
}

template <typename Row>
struct Append {
  std::string& out;
  const std::vector<Row>& rows;

  template <std::integral T>
  bool Differences(T Row::* field) {
    AppendDifferences(out, rows, [field](const Row& row) { return static_cast<uint64_t>(row.*field); });
    return true;
  }
  template <std::integral T>
  bool Runs(T Row::* field) {
    AppendRuns(out, rows, [field](const Row& row) { return static_cast<uint64_t>(row.*field); });
    return true;
  }
};

template <typename Row>
struct Read {
  VarintReader& reader;
  std::vector<Row>& rows;

  template <std::integral T>
  bool Differences(T Row::* field) {
    return ReadDifferences(reader, rows, [field](Row& row, uint64_t value) { row.*field = static_cast<T>(value); });
  }
  template <std::integral T>
  bool Runs(T Row::* field) {
    size_t i = 0;
    return ReadRuns(reader, rows.size(), [&](uint64_t value) { rows[i++].*field = static_cast<T>(value); });
  }
};

}  // namespace

std::string EncodeProcesses(const StoredProcesses& rows) {
  std::string out(1, kVersion);
  AppendVarint(out, rows.processes.size());
  AppendVarint(out, rows.threads.size());
  ForEachProcessColumn(Append<StoredProcess>{out, rows.processes}, kVersion);
  ForEachThreadColumn(Append<StoredThread>{out, rows.threads});
  return out;
}

absl::Status DecodeProcesses(std::string_view bytes, StoredProcesses* out, PieceParts parts) {
  VarintReader reader(bytes);
  std::string_view version;
  uint64_t processes = 0, threads = 0;
  // A row takes several bytes, so more rows than bytes cannot be true.
  if (!reader.ReadBytes(1, &version) || version[0] < kColumnVersion || version[0] > kVersion ||
      !reader.Read(&processes) || !reader.Read(&threads) || processes > reader.remaining() ||
      threads > reader.remaining()) {
    return CorruptColumns("processes");
  }
  out->processes.assign(processes, {});
  out->threads.clear();
  if (!ForEachProcessColumn(Read<StoredProcess>{reader, out->processes}, version[0])) {
    return CorruptColumns("processes");
  }
  if (parts == PieceParts::kProcesses) return absl::OkStatus();
  out->threads.resize(threads);
  if (!ForEachThreadColumn(Read<StoredThread>{reader, out->threads}) || !reader.AtEnd()) {
    return CorruptColumns("processes");
  }
  return absl::OkStatus();
}

}  // namespace tributary::store
