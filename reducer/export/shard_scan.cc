#include "reducer/export/shard_scan.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "base/status.h"
#include "reducer/store/trie.h"
#include "symbols/frame_symbolizer.h"

namespace tributary {
namespace {

constexpr size_t kOwnBytesMax = 32u << 20;  // of samples' own attributes, in one scan of more than one chunk

}  // namespace

absl::StatusOr<std::unique_ptr<ShardScan>> ShardScan::Read(store::StoreReader& reader, const store::Cursor& cursor,
                                                           size_t samples_max) {
  for (bool is_cut = false;; is_cut = true) {
    auto scan = std::make_unique<ShardScan>();
    scan->is_cut_ = is_cut;
    RETURN_IF_ERROR(scan->Collect(reader, cursor, samples_max));
    RETURN_IF_ERROR(scan->LoadOwn(reader));
    if (scan->own_bytes_ > kOwnBytesMax && scan->chunks_.size() > 1) {
      samples_max = scan->row_count_ / 2;
      continue;
    }
    if (scan->row_count_ > 0) {
      RETURN_IF_ERROR(scan->LoadTries(reader));
      RETURN_IF_ERROR(scan->LoadDefinitions(reader));
      RETURN_IF_ERROR(scan->FindExecutables(reader));
    }
    return scan;
  }
}

absl::Status ShardScan::Collect(store::StoreReader& reader, const store::Cursor& cursor, size_t samples_max) {
  const auto add = [this](const store::SampleColumns& columns, const store::Cursor& begin) {
    if (columns.times.empty()) return absl::OkStatus();
    chunks_.push_back(
        Chunk{.node_id = std::string(columns.node_id), .columns = columns, .threads = {}, .begin = begin});
    row_count_ += columns.times.size();
    return absl::OkStatus();
  };
  ASSIGN_OR_RETURN(committed_, reader.ScanCommitted(cursor, samples_max, add));
  return absl::OkStatus();
}

// Returns the position of a row, or the position behind the scan if `chunk` is the number of chunks.
store::Cursor ShardScan::CursorAt(size_t chunk, size_t row) const {
  if (chunk == chunks_.size()) return committed_.next;
  store::Cursor cursor = chunks_[chunk].begin;
  cursor.rows += row;
  if (cursor.samples) {
    const std::vector<uint32_t>& counts = chunks_[chunk].columns.counts;
    *cursor.samples += std::accumulate(counts.begin(), counts.begin() + static_cast<ptrdiff_t>(row), uint64_t{0});
  }
  return cursor;
}

// Loads the part of each day's trie that the samples refer to, and writes its node numbers into the samples' columns.
absl::Status ShardScan::LoadTries(store::StoreReader& reader) {
  std::map<store::Day, std::vector<store::NodeNo>> leaves;
  for (const Chunk& chunk : chunks_) {
    std::vector<store::NodeNo>& of_day = leaves[chunk.columns.day];
    of_day.insert(of_day.end(), chunk.columns.nodes.begin(), chunk.columns.nodes.end());
  }
  std::map<store::Day, std::vector<store::NodeNo>> numbers;
  for (const auto& [day, of_day] : leaves) {
    absl::StatusOr<store::TriePart> part = reader.LoadTriePart(day, of_day);
    if (!part.ok() && part.status().code() != absl::StatusCode::kNotFound) return part.status();
    numbers[day] = part.ok() ? std::move(part->nodes) : std::vector<store::NodeNo>(of_day.size());
    tries_[day] = part.ok() ? std::move(part->trie) : store::EmptyTrie();
  }
  std::map<store::Day, size_t> taken;
  for (Chunk& chunk : chunks_) {
    const std::vector<store::NodeNo>& of_day = numbers[chunk.columns.day];
    size_t& next = taken[chunk.columns.day];
    for (store::NodeNo& node : chunk.columns.nodes) node = of_day[next++];
  }
  return absl::OkStatus();
}

// Numbers the processes and threads in the order in which they occur. Neighbouring rows often have the same thread.
void ShardScan::NumberThreads() {
  absl::flat_hash_map<std::pair<store::ProcessNo, store::ThreadNo>, uint32_t> indices;
  for (Chunk& chunk : chunks_) {
    const store::SampleColumns& columns = chunk.columns;
    chunk.threads.reserve(columns.threads.size());
    for (size_t row = 0; row < columns.threads.size(); ++row) {
      const store::ProcessNo process = columns.processes[row];
      const store::ThreadNo thread = columns.threads[row];
      if (row > 0 && process == columns.processes[row - 1] && thread == columns.threads[row - 1]) {
        chunk.threads.push_back(chunk.threads.back());
        continue;
      }
      const auto [it, added] = indices.try_emplace({process, thread}, static_cast<uint32_t>(threads_.size()));
      chunk.threads.push_back(it->second);
      if (!added) continue;
      const auto known = process_indices_.try_emplace(process, static_cast<uint32_t>(process_indices_.size())).first;
      threads_.push_back({.process = known->second, .no = thread, .row = {}});
    }
  }
}

absl::Status ShardScan::LoadDefinitions(store::StoreReader& reader) {
  store::TimeRange& range = range_;
  range = {chunks_[0].columns.times[0], chunks_[0].columns.times[0]};
  for (const Chunk& chunk : chunks_) {
    for (UnixNs time : chunk.columns.times) {
      range.from = std::min(range.from, time);
      range.to = std::max(range.to, UnixNs{time.value + 1});
    }
  }
  NumberThreads();
  store::ProcessSet wanted;
  wanted.reserve(process_indices_.size());
  for (const auto& [no, index] : process_indices_) wanted.insert(no);
  processes_.resize(process_indices_.size());
  ASSIGN_OR_RETURN(std::vector<store::ProcessRow> processes, reader.Processes(range, &wanted));
  for (store::ProcessRow& row : processes) {
    if (const auto it = process_indices_.find(row.no); it != process_indices_.end()) {
      processes_[it->second] = std::move(row);
    }
  }
  ASSIGN_OR_RETURN(std::vector<store::ThreadRow> rows, reader.Threads(range, wanted));
  absl::flat_hash_map<store::ThreadNo, store::ThreadRow*> by_number;
  by_number.reserve(rows.size());
  for (store::ThreadRow& row : rows) by_number.emplace(row.no, &row);
  for (Thread& thread : threads_) {
    if (const auto it = by_number.find(thread.no); it != by_number.end()) thread.row = *it->second;
  }
  ASSIGN_OR_RETURN(executable_rows_, reader.Executables());
  ASSIGN_OR_RETURN(types_, reader.SampleTypes());
  return absl::OkStatus();
}

absl::Status ShardScan::LoadOwn(store::StoreReader& reader) {
  for (const Chunk& chunk : chunks_) {
    for (store::StringId id : chunk.columns.attributes) {
      auto [it, added] = own_.try_emplace(id);
      if (!added || id.value == 0) continue;
      ASSIGN_OR_RETURN(it->second, reader.Text(id));
      own_bytes_ += it->second.size();
      if (own_bytes_ > kOwnBytesMax && chunks_.size() > 1) return absl::OkStatus();
    }
  }
  return absl::OkStatus();
}

// Also reads the names that frames came with.
absl::Status ShardScan::FindExecutables(store::StoreReader& reader) {
  std::set<ExecutableId> found;
  for (const auto& [day, trie] : tries_) {
    for (const store::FrameRow& row : trie.frame_rows) {
      if (row.name.value != 0) frame_names_.try_emplace(row.name);
      if (!RowOf(row.kind).has_address) continue;  // a source file has no symbols
      const uint32_t executable = row.executable.value;
      if (executable < executable_rows_.size() && executable_rows_[executable].id.known()) {
        found.insert(executable_rows_[executable].id);
      }
    }
  }
  executables_.assign(found.begin(), found.end());
  for (auto& [id, name] : frame_names_) {
    ASSIGN_OR_RETURN(const std::string_view text, reader.Text(id));
    name = FrameSymbolizer::OwnName(text);
  }
  return absl::OkStatus();
}

}  // namespace tributary
