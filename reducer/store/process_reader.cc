#include "reducer/store/process_reader.h"

#include <algorithm>
#include <functional>

#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "reducer/store/column_codec.h"

namespace tributary::store {
absl::StatusOr<StringReader> StringReader::Prepare(Database& database) {
  StringReader reader;
  ASSIGN_OR_RETURN(reader.find_, database.Prepare("SELECT text FROM string WHERE id = ?"));
  return reader;
}

absl::StatusOr<std::string> StringReader::Get(uint32_t id) {
  auto [it, added] = known_.try_emplace(id);
  if (!added) return it->second;
  ASSIGN_OR_RETURN(bool row, find_.Bind(id).Step());
  if (row) {
    it->second = find_.Bytes(0);
    find_.Reset();
  }
  return it->second;
}

absl::StatusOr<FoundProcesses> ReadProcesses(Database& database, Slot first, Slot last) {
  // Ids first, from the index alone: sorting whole rows would copy their columns.
  ASSIGN_OR_RETURN(Statement list,
                   database.Prepare("SELECT id FROM process_chunk WHERE last_slot >= ? AND first_slot <= ?"));
  std::vector<int64_t> ids;
  list.Bind(first.value, last.value);
  for (;;) {
    ASSIGN_OR_RETURN(bool row, list.Step());
    if (!row) break;
    ids.push_back(list.Int(0));
  }
  std::sort(ids.begin(), ids.end(), std::greater<>());
  ASSIGN_OR_RETURN(Statement find,
                   database.Prepare("SELECT raw_bytes, columns, last_slot FROM process_chunk WHERE id = ?"));
  StoredProcesses piece;
  FoundProcesses out;
  absl::flat_hash_set<uint32_t> met_processes, met_threads;
  for (int64_t id : ids) {
    ASSIGN_OR_RETURN(bool row, find.Bind(id).Step());
    if (!row) continue;
    ASSIGN_OR_RETURN(std::string raw, UnpackColumns(find.Bytes(1), find.Int(0)));
    RETURN_IF_ERROR(DecodeProcesses(raw, &piece));
    const Slot told{static_cast<int32_t>(find.Int(2))};
    for (auto it = piece.processes.rbegin(); it != piece.processes.rend(); ++it) {
      if (met_processes.insert(it->no).second) out.processes.push_back({*it, told});
    }
    for (auto it = piece.threads.rbegin(); it != piece.threads.rend(); ++it) {
      if (met_threads.insert(it->no).second) out.threads.push_back(*it);
    }
    find.Reset();
  }
  std::reverse(out.processes.begin(), out.processes.end());
  std::reverse(out.threads.begin(), out.threads.end());
  return out;
}

}  // namespace tributary::store
