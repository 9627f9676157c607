#include "reducer/sqlite/shard_reader.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <tuple>

#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "reducer/sqlite/column_codec.h"
#include "reducer/sqlite/maintenance.h"
#include "reducer/sqlite/minute_sums.h"
#include "reducer/sqlite/sample_type_table.h"
#include "reducer/sqlite/schema.h"
#include "reducer/sqlite/session_columns.h"
#include "reducer/sqlite/session_table.h"

namespace tributary::store {
namespace {

// Keeps rows [from, to) of the chunk.
void Cut(SampleColumns& columns, size_t from, size_t to) {
  auto cut = [&](auto& column) {
    column.erase(column.begin() + static_cast<ptrdiff_t>(to), column.end());
    column.erase(column.begin(), column.begin() + static_cast<ptrdiff_t>(from));
  };
  if (from == 0 && to == columns.times.size()) return;
  cut(columns.times);
  cut(columns.processes);
  cut(columns.threads);
  cut(columns.nodes);
  cut(columns.values);
  cut(columns.counts);
  cut(columns.endings);
  cut(columns.cpus);
  if (!columns.attributes.empty()) cut(columns.attributes);
}

// A tail is joined with its trie once the tail has more than kTailNodesMin + (nodes of the trie) / kTailShare nodes.
constexpr size_t kTailNodesMin = 4096;
constexpr size_t kTailShare = 16;

void CutToRange(SampleColumns& columns, TimeRange range) {
  const auto begin = columns.times.begin(), end = columns.times.end();
  const auto from = std::lower_bound(begin, end, range.from), to = std::lower_bound(from, end, range.to);
  Cut(columns, static_cast<size_t>(from - begin), static_cast<size_t>(to - begin));
}

Slot LastSlotOf(TimeRange range) { return SlotOf(UnixNs{range.to.value - 1}); }

}  // namespace

absl::StatusOr<std::unique_ptr<StoreReader>> SqliteShardReader::Open(const std::string& path, uint32_t shard,
                                                                     const Shared& shared) {
  std::unique_ptr<SqliteShardReader> reader(new SqliteShardReader(shard, shared));
  RETURN_IF_ERROR(reader->Start(path));
  return reader;
}

absl::Status SqliteShardReader::Start(const std::string& path) {
  absl::StatusOr<Database> database = OpenShardForReading(path);
  if (absl::IsNotFound(database.status())) return absl::OkStatus();
  RETURN_IF_ERROR(database.status());
  database_ = std::make_unique<Database>(*std::move(database));
  // The first SELECT takes the snapshot.
  RETURN_IF_ERROR(database_->Execute("BEGIN"));
  ASSIGN_OR_RETURN(int64_t version, database_->QueryInt("PRAGMA user_version"));
  if (version < kShardSchema) {  // the writer is about to update the schema
    database_ = nullptr;
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(closed_before_, database_->QueryInt("SELECT value FROM watermark WHERE name = 'closed_before'"));
  ASSIGN_OR_RETURN(raw_from_, database_->QueryInt("SELECT value FROM watermark WHERE name = 'raw_from'"));
  ASSIGN_OR_RETURN(Statement machines, database_->Prepare("SELECT id, node_id, host_name FROM machine"));
  for (;;) {
    ASSIGN_OR_RETURN(bool row, machines.Step());
    if (!row) break;
    machines_.emplace(machines.Int(0), MachineRow{std::string(machines.Bytes(1)), std::string(machines.Bytes(2))});
  }
  ASSIGN_OR_RETURN(trie_pieces_, TriePieces::Prepare(*database_));
  ASSIGN_OR_RETURN(strings_, StringReader::Prepare(*database_));
  ASSIGN_OR_RETURN(executables_, ExecutableReader::Prepare(*database_, executable_numbers_));
  ASSIGN_OR_RETURN(events_, EventReader::Prepare(*database_, machines_, &damage_));
  return absl::OkStatus();
}

absl::StatusOr<std::string_view> SqliteShardReader::NodeIdOf(int64_t machine) {
  auto it = machines_.find(machine);
  return it != machines_.end() ? std::string_view(it->second.node_id) : std::string_view();
}

absl::StatusOr<std::vector<NodeStatus>> SqliteShardReader::Nodes() {
  std::vector<NodeStatus> nodes;
  if (database_ == nullptr) return nodes;
  ASSIGN_OR_RETURN(
      Statement statement,
      database_->Prepare("SELECT m.node_id, m.host_name, m.agent_version, m.kernel_release, m.architecture, "
                         "m.cpu_count, m.sample_rate_hz, s.last_seen, s.captured, s.idle, s.lost, s.stored, "
                         "s.wire_bytes, s.endings, s.closed_reason, s.closed_captured, s.boot_ns, s.types FROM session "
                         "s JOIN machine m ON "
                         "m.id = s.machine ORDER BY m.id"));
  for (;;) {
    ASSIGN_OR_RETURN(bool row, statement.Step());
    if (!row) return nodes;
    if (nodes.empty() || nodes.back().node_id != statement.Bytes(0)) {
      NodeStatus& added = nodes.emplace_back();
      added.node_id = statement.Bytes(0);
      added.host_name = statement.Bytes(1);
      added.agent_version = statement.Bytes(2);
      added.kernel_release = statement.Bytes(3);
      added.architecture = statement.Bytes(4);
      added.cpu_count = static_cast<uint32_t>(statement.Int(5));
      added.sample_rate_hz = static_cast<uint32_t>(statement.Int(6));
    }
    NodeStatus& node = nodes.back();
    if (const UnixNs last_seen{statement.Int(7)}; last_seen >= node.last_seen) {
      node.last_seen = last_seen;
      node.booted = UnixNs{statement.Int(16)};
    }
    SessionTotals totals;
    totals.accounting.captured = static_cast<uint64_t>(statement.Int(8));
    totals.accounting.idle = static_cast<uint64_t>(statement.Int(9));
    DecodeLosses(statement.Bytes(10), &totals.accounting);
    DecodeCounters(statement.Bytes(13), totals.endings);
    totals.stored = static_cast<uint64_t>(statement.Int(11));
    totals.closed_reason = statement.Int(14);
    totals.closed_captured = static_cast<uint64_t>(statement.Int(15));
    RETURN_IF_ERROR(statement.InFile(DecodeSessionTypes(statement.Bytes(17), &totals)));
    node.Add(totals.WithClosing(), totals.stored);
    node.wire_bytes += static_cast<uint64_t>(statement.Int(12));
    for (size_t i = 0; i < kEndingCount; ++i) node.endings[i] += totals.endings[i];
  }
}

absl::StatusOr<std::map<TypeNo, SampleTypeInfo>> SqliteShardReader::SampleTypes() {
  std::map<TypeNo, SampleTypeInfo> types;
  if (database_ == nullptr) return types;
  ASSIGN_OR_RETURN(Statement statement, database_->Prepare("SELECT id, name, unit, aggregation FROM sample_type"));
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, statement.Step());
    if (!row) return types;
    const TypeNo type = ReadType(statement.Int(0));
    if (type.value == 0) continue;
    types.emplace(type, SampleTypeInfo{std::string(statement.Bytes(1)), std::string(statement.Bytes(2)),
                                       ReadAggregation(statement.Int(3))});
  }
}

absl::Status SqliteShardReader::ScanProcesses(TimeRange range, const ProcessVisitor& visit) {
  return ScanProcesses(range, nullptr, visit);
}

absl::Status SqliteShardReader::ScanProcesses(TimeRange range, const ProcessSet* only, const ProcessVisitor& visit) {
  if (database_ == nullptr || range.from >= range.to) return absl::OkStatus();
  absl::flat_hash_set<uint32_t> seen;
  ProcessRow row;  // one row for all visits, so its texts keep their memory
  return VisitProcesses(*database_, SlotOf(range.from), LastSlotOf(range), &damage_,
                        [&](const StoredProcesses& piece, Slot last_slot) -> absl::Status {
                          for (auto it = piece.processes.rbegin(); it != piece.processes.rend(); ++it) {
                            if (only != nullptr && !only->contains(ProcessNo{it->no})) continue;
                            if (!seen.insert(it->no).second) continue;
                            RETURN_IF_ERROR(Describe(*it, last_slot, &row));
                            RETURN_IF_ERROR(visit(row));
                          }
                          return absl::OkStatus();
                        });
}

absl::Status SqliteShardReader::Describe(const StoredProcess& process, Slot last_slot, ProcessRow* row) {
  row->no = ProcessNo{process.no};
  const auto machine = machines_.find(process.machine);
  row->node_id = machine == machines_.end() ? "" : machine->second.node_id;
  row->host_name = machine == machines_.end() ? "" : machine->second.host_name;
  row->pid = Pid{process.pid};
  row->parent = Pid{process.parent};
  row->start_time_ns = process.start_time_ns;
  row->exec_sequence = process.exec_sequence;
  ASSIGN_OR_RETURN(row->comm, strings_->Get(process.comm));
  ASSIGN_OR_RETURN(row->executable_path, strings_->Get(process.executable_path));
  ASSIGN_OR_RETURN(row->container_id, strings_->Get(process.container_id));
  ASSIGN_OR_RETURN(row->cgroup_path, strings_->Get(process.cgroup_path));
  ASSIGN_OR_RETURN(row->attributes, strings_->Get(process.attributes));
  ASSIGN_OR_RETURN(row->executable, executables_->NumberOf(process.executable));
  row->as_of = StartOf(last_slot);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ProcessRow>> SqliteShardReader::Processes(TimeRange range, const ProcessSet* only) {
  std::vector<ProcessRow> rows;
  RETURN_IF_ERROR(ScanProcesses(range, only, [&rows](const ProcessRow& row) {
    rows.push_back(row);
    return absl::OkStatus();
  }));
  std::reverse(rows.begin(), rows.end());  // in the order in which they were written
  return rows;
}

absl::StatusOr<std::vector<ThreadRow>> SqliteShardReader::Threads(TimeRange range, const ProcessSet& of) {
  std::vector<ThreadRow> rows;
  if (database_ == nullptr || range.from >= range.to) return rows;
  absl::flat_hash_set<uint32_t> seen;
  RETURN_IF_ERROR(VisitProcesses(*database_, SlotOf(range.from), LastSlotOf(range), &damage_,
                                 [&](const StoredProcesses& piece, Slot) -> absl::Status {
                                   for (auto it = piece.threads.rbegin(); it != piece.threads.rend(); ++it) {
                                     const ProcessNo process{it->process};
                                     if (!seen.insert(it->no).second || !of.contains(process)) continue;
                                     ASSIGN_OR_RETURN(const std::string_view name, strings_->Get(it->name));
                                     rows.push_back({ThreadNo{it->no}, process, Tid{it->tid}, std::string(name)});
                                   }
                                   return absl::OkStatus();
                                 }));
  std::reverse(rows.begin(), rows.end());
  return rows;
}

absl::StatusOr<std::vector<ExecutableRow>> SqliteShardReader::Executables() {
  return executables_ ? executables_->All() : std::vector<ExecutableRow>(1);
}

absl::StatusOr<SqliteShardReader::Pieces> SqliteShardReader::PiecesOf(Day day) {
  if (database_ == nullptr) return Pieces{};
  ASSIGN_OR_RETURN(Statement bounds, database_->Prepare("SELECT min(id), max(id) FROM trie_chunk WHERE day = ?"));
  ASSIGN_OR_RETURN([[maybe_unused]] bool row, bounds.Bind(day.value).Step());
  ASSIGN_OR_RETURN(const int64_t newest_gap, trie_pieces_->NewestGap(day));
  return bounds.IsNull(0) ? Pieces{.newest_gap = newest_gap} : Pieces{bounds.Int(0), bounds.Int(1), newest_gap};
}

// If the snapshot's newest piece was joined into a later one (TrieMerger), the later one also contains nodes that the
// snapshot has. Then nothing can be appended to the snapshot.
absl::StatusOr<TrieCache::Snapshot> SqliteShardReader::FindTrie(const TrieCache::Key& key, const Pieces& pieces) {
  TrieCache::Snapshot known = cache_.Find(key);
  if (known.trie == nullptr || known.newest() >= pieces.last) return known;
  ASSIGN_OR_RETURN(Statement find, database_->Prepare("SELECT 1 FROM trie_chunk WHERE id = ?"));
  const absl::StatusOr<bool> stands = find.Bind(known.newest()).Step();
  if (absl::IsDataLoss(stands.status())) return TrieCache::Snapshot{};
  RETURN_IF_ERROR(stands.status());
  return *stands ? known : TrieCache::Snapshot{};
}

absl::StatusOr<bool> SqliteShardReader::AppendPieces(Day day, int64_t after, const TrieEnds& before, Trie* to) {
  TrieAppender sink(to, before);
  std::vector<DamagedRun> damage;
  const size_t frames = to->frame_rows.size();
  RETURN_IF_ERROR(trie_pieces_->Read(day, after, sink, &damage));
  RETURN_IF_ERROR(executables_->Number(std::span(to->frame_rows).subspan(frames)));
  if (damage.empty()) return true;
  damage_.Report({PieceKind::kTrie, day.value}, Error(absl::StatusCode::kDataLoss, damage.front().reason));
  return false;
}

absl::StatusOr<bool> SqliteShardReader::DecodeOrReport(const Statement& row, PieceKind kind, int id_column,
                                                       int raw_bytes_column,
                                                       absl::FunctionRef<absl::Status(std::string_view)> decode) {
  const absl::StatusOr<std::string> raw = UnpackColumns(row.Bytes(raw_bytes_column + 1), row.Int(raw_bytes_column));
  const absl::Status decoded = row.InFile(raw.ok() ? decode(*raw) : raw.status());
  if (absl::IsDataLoss(decoded)) {
    damage_.Report({kind, row.Int(id_column)}, decoded);
    return false;
  }
  RETURN_IF_ERROR(decoded);
  return true;
}

absl::StatusOr<std::shared_ptr<const Trie>> SqliteShardReader::LoadTrie(Day day) {
  ASSIGN_OR_RETURN(const Pieces pieces, PiecesOf(day));
  if (pieces.last == 0 && pieces.newest_gap == 0) return std::make_shared<const Trie>(EmptyTrie());
  const TrieCache::Key key{shard_, day, pieces.first, pieces.newest_gap, executables_->generation()};
  ASSIGN_OR_RETURN(TrieCache::Snapshot known, FindTrie(key, pieces));
  // A longer trie that a later reader loaded serves as well, because ids never change their meaning.
  if (known.trie != nullptr && known.last_piece >= pieces.last) return known.trie;

  auto trie = std::make_shared<Trie>(known.trie != nullptr ? *known.trie : EmptyTrie());
  if (known.tail != nullptr) AppendTail(*known.tail, trie.get());
  ASSIGN_OR_RETURN(const bool whole, AppendPieces(day, known.newest(), {}, trie.get()));
  if (!whole) return trie;
  cache_.Put(key, {.trie = trie, .last_piece = std::max(known.newest(), pieces.last)});
  return trie;
}

// Pieces that were committed after the trie was loaded go to a tail, as long as the tail is small. Without the tail,
// each reader would copy the whole trie to add the nodes of the latest commits.
absl::StatusOr<TriePart> SqliteShardReader::LoadTriePart(Day day, std::span<const NodeNo> leaves) {
  ASSIGN_OR_RETURN(const Pieces pieces, PiecesOf(day));
  if (pieces.last == 0 && pieces.newest_gap == 0) return CutTrie(EmptyTrie(), {}, leaves);
  const TrieCache::Key key{shard_, day, pieces.first, pieces.newest_gap, executables_->generation()};
  ASSIGN_OR_RETURN(TrieCache::Snapshot known, FindTrie(key, pieces));
  if (known.trie == nullptr) {
    ASSIGN_OR_RETURN(const std::shared_ptr<const Trie> trie, LoadTrie(day));
    return CutTrie(*trie, {}, leaves);
  }
  if (known.newest() < pieces.last) {
    auto tail = known.tail != nullptr ? std::make_shared<TrieTail>(*known.tail) : std::make_shared<TrieTail>();
    tail->first_node = known.trie->parents.size();
    tail->first_frame = known.trie->frame_rows.size();
    ASSIGN_OR_RETURN(const bool whole,
                     AppendPieces(day, known.newest(), {tail->first_node, tail->first_frame}, &tail->added));
    if (!whole) return CutTrie(*known.trie, *tail, leaves);
    if (tail->added.parents.size() > kTailNodesMin + known.trie->parents.size() / kTailShare) {
      auto trie = std::make_shared<Trie>(*known.trie);
      AppendTail(*tail, trie.get());
      known = {.trie = std::move(trie), .last_piece = pieces.last};
    } else {
      known.tail = std::move(tail);
      known.last_tail_piece = pieces.last;
    }
    cache_.Put(key, known);
  }
  static const TrieTail kNoTail;
  return CutTrie(*known.trie, known.tail != nullptr ? *known.tail : kNoTail, leaves);
}

absl::StatusOr<std::string_view> SqliteShardReader::Text(StringId id) {
  if (database_ == nullptr || id.value == 0) return std::string_view();
  return strings_->Get(id.value);
}

absl::Status SqliteShardReader::ScanRaw(TimeRange range, int64_t first_minute, int64_t last_minute,
                                        const SampleVisitor& visit) {
  first_minute = std::max(first_minute, raw_from_);
  if (first_minute > last_minute) return absl::OkStatus();
  ASSIGN_OR_RETURN(Statement statement,
                   database_->Prepare("SELECT minute, machine, type, raw_bytes, columns, id FROM sample_chunk "
                                      "WHERE minute BETWEEN ? AND ? ORDER BY minute, machine, type, id"));
  statement.Bind(first_minute, last_minute);
  SampleColumns columns;
  const auto decode = [&columns](std::string_view raw) { return DecodeSamples(raw, &columns); };
  for (;;) {
    ASSIGN_OR_RETURN(bool row, statement.Step());
    if (!row) return absl::OkStatus();
    ASSIGN_OR_RETURN(const bool intact, DecodeOrReport(statement, PieceKind::kSamples, 5, 3, decode));
    if (!intact) continue;
    CutToRange(columns, range);
    if (columns.times.empty()) continue;
    ASSIGN_OR_RETURN(columns.node_id, NodeIdOf(statement.Int(1)));
    columns.type = ReadType(statement.Int(2));
    columns.day = DayOfMinute(statement.Int(0));
    RETURN_IF_ERROR(visit(columns));
  }
}

absl::Status SqliteShardReader::ScanSamples(TimeRange range, const SampleVisitor& visit) {
  if (database_ == nullptr || range.from >= range.to) return absl::OkStatus();
  return ScanRaw(range, MinuteOf(range.from), MinuteOf(UnixNs{range.to.value - 1}), visit);
}

absl::StatusOr<bool> SqliteShardReader::IsGauge(TypeNo type) {
  if (!gauges_) {
    gauges_.emplace();
    ASSIGN_OR_RETURN(const auto types, SampleTypes());
    for (const auto& [no, info] : types) {
      if (info.is_gauge()) gauges_->insert(no);
    }
  }
  return gauges_->contains(type);
}

// Chunks of one minute, machine and type follow each other. The last snapshot of a gauge may be in any of them.
absl::Status SqliteShardReader::SumRaw(TimeRange range, int64_t first_minute, int64_t last_minute,
                                       const SumVisitor& visit) {
  SumTable table;
  SumColumns sums;
  auto flush = [&]() -> absl::Status {
    if (table.empty()) return absl::OkStatus();
    for (const StoredSum& sum : table.Sorted()) {
      sums.processes.push_back(ProcessNo{sum.process});
      sums.nodes.push_back(NodeNo{sum.node});
      sums.values.push_back(sum.value);
      sums.counts.push_back(sum.count);
    }
    return visit(sums);
  };
  const absl::Status scanned =
      ScanRaw(range, first_minute, last_minute, [&](const SampleColumns& samples) -> absl::Status {
        const UnixNs minute{MinuteOf(samples.times.front()) * kNsPerMinute};
        if (table.empty() ||
            std::tie(minute, samples.node_id, samples.type) != std::tie(sums.minute, sums.node_id, sums.type)) {
          RETURN_IF_ERROR(flush());
          ASSIGN_OR_RETURN(const bool is_gauge, IsGauge(samples.type));
          table.Start(is_gauge ? Aggregation::kLast : Aggregation::kSum);
          sums = {};
          sums.node_id = samples.node_id;
          sums.type = samples.type;
          sums.day = samples.day;
          sums.minute = minute;
        }
        table.Add(samples);
        return absl::OkStatus();
      });
  RETURN_IF_ERROR(scanned);
  return flush();
}

// Drops the sums in later rows of a minute, machine and type if an earlier row has the same process. These sums came
// after the minute was closed, and the earlier snapshot stays valid.
class SqliteShardReader::LateSnapshots {
 public:
  void Drop(SumColumns* columns) {
    const auto key = std::tie(columns->minute, columns->node_id, columns->type);
    if (key != std::tie(minute_, node_id_, type_)) {
      std::tie(minute_, node_id_, type_) = key;
      seen_.clear();
    }
    size_t kept = 0;
    for (size_t i = 0; i < columns->processes.size(); ++i) {
      if (seen_.contains(columns->processes[i])) continue;
      columns->processes[kept] = columns->processes[i];
      columns->nodes[kept] = columns->nodes[i];
      columns->values[kept] = columns->values[i];
      columns->counts[kept] = columns->counts[i];
      ++kept;
    }
    columns->processes.resize(kept);
    columns->nodes.resize(kept);
    columns->values.resize(kept);
    columns->counts.resize(kept);
    seen_.insert(columns->processes.begin(), columns->processes.end());
  }

 private:
  UnixNs minute_{INT64_MIN};
  std::string_view node_id_;
  TypeNo type_;
  ProcessSet seen_;
};

absl::Status SqliteShardReader::ScanSumRows(int64_t first_minute, int64_t last_minute, const SumVisitor& visit) {
  if (first_minute > last_minute) return absl::OkStatus();
  ASSIGN_OR_RETURN(Statement statement,
                   database_->Prepare("SELECT minute, machine, type, raw_bytes, columns, id FROM minute_sum "
                                      "WHERE minute BETWEEN ? AND ? ORDER BY minute, machine, type, id"));
  statement.Bind(first_minute, last_minute);
  LateSnapshots late;
  SumColumns columns;
  for (;;) {
    ASSIGN_OR_RETURN(bool row, statement.Step());
    if (!row) return absl::OkStatus();
    ASSIGN_OR_RETURN(const bool intact,
                     DecodeOrReport(statement, PieceKind::kSums, 5, 3,
                                    [&columns](std::string_view raw) { return DecodeSums(raw, &columns); }));
    if (!intact) continue;
    ASSIGN_OR_RETURN(columns.node_id, NodeIdOf(statement.Int(1)));
    columns.type = ReadType(statement.Int(2));
    columns.minute = UnixNs{statement.Int(0) * kNsPerMinute};
    columns.day = DayOfMinute(statement.Int(0));
    ASSIGN_OR_RETURN(const bool is_gauge, IsGauge(columns.type));
    if (is_gauge) late.Drop(&columns);
    RETURN_IF_ERROR(visit(columns));
  }
}

// Minutes before `raw_from_` have only sums, and belong to the range that contains their first nanosecond. So adjacent
// ranges together still have every sample once.
absl::Status SqliteShardReader::ScanSums(TimeRange range, const SumVisitor& visit) {
  if (database_ == nullptr || range.from >= range.to) return absl::OkStatus();
  const int64_t first = MinuteOf(range.from), last = MinuteOf(UnixNs{range.to.value - 1});
  const bool starts_on_minute = range.from.value % kNsPerMinute == 0,
             ends_on_minute = range.to.value % kNsPerMinute == 0;
  const int64_t first_sum = starts_on_minute ? first : first + 1;
  const int64_t last_sum = std::min(ends_on_minute || last < raw_from_ ? last : last - 1, closed_before_ - 1);
  RETURN_IF_ERROR(SumRaw(range, first, std::min(first_sum - 1, last), visit));
  RETURN_IF_ERROR(ScanSumRows(first_sum, last_sum, visit));
  return SumRaw(range, std::max(first_sum, last_sum + 1), last, visit);
}

absl::StatusOr<CommittedScan> SqliteShardReader::ScanCommitted(const Cursor& cursor, size_t samples_max,
                                                               const CommittedVisitor& visit) {
  CommittedScan scan{.next = cursor};
  if (database_ == nullptr) return scan;
  ASSIGN_OR_RETURN(scan.newest, database_->QueryInt(
                                    "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'sample_chunk'"));
  // The cursor is from before the file was replaced by an empty one: start over.
  if (cursor.chunk + (cursor.rows > 0 ? 1 : 0) > scan.newest) scan.next = {};
  ASSIGN_OR_RETURN(Statement statement,
                   database_->Prepare("SELECT id, minute, machine, type, raw_bytes, columns, samples_end FROM "
                                      "sample_chunk WHERE id > ? ORDER BY id"));
  statement.Bind(scan.next.chunk);
  SampleColumns columns;
  for (size_t rows = 0; rows == 0 || rows < samples_max; rows += columns.times.size()) {
    ASSIGN_OR_RETURN(const bool row, statement.Step());
    if (!row) {
      if (scan.next.chunk == scan.newest) break;
      ASSIGN_OR_RETURN(const int64_t samples, database_->QueryInt(kSamplesEnd));
      scan.MoveTo(scan.newest + 1, static_cast<uint64_t>(samples));
      break;
    }
    const int64_t id = statement.Int(0);
    ASSIGN_OR_RETURN(const bool intact,
                     DecodeOrReport(statement, PieceKind::kSamples, 0, 4,
                                    [&columns](std::string_view raw) { return DecodeSamples(raw, &columns); }));
    if (!intact) {
      // For the exporter, the chunk has expired.
      std::optional<uint64_t> after;
      if (!statement.IsNull(6)) after = static_cast<uint64_t>(statement.Int(6));
      scan.MoveTo(id + 1, after);
      columns.times.clear();
      continue;
    }
    if (id == scan.next.chunk + 1) {
      Cut(columns, std::min<uint64_t>(scan.next.rows, columns.times.size()), columns.times.size());
    }
    std::optional<uint64_t> end, begin;
    if (!statement.IsNull(6)) {
      end = static_cast<uint64_t>(statement.Int(6));
      begin = *end - std::accumulate(columns.counts.begin(), columns.counts.end(), uint64_t{0});
    }
    scan.MoveTo(id, begin);
    if (samples_max == 0) break;
    ASSIGN_OR_RETURN(columns.node_id, NodeIdOf(statement.Int(2)));
    columns.type = ReadType(statement.Int(3));
    columns.day = DayOfMinute(statement.Int(1));
    RETURN_IF_ERROR(visit(columns, scan.next));
    scan.next = {.chunk = id, .samples = end};
  }
  return scan;
}

absl::Status SqliteShardReader::ScanEvents(TimeRange range, const EventVisitor& visit) {
  return events_ ? events_->Scan(range, visit) : absl::OkStatus();
}

absl::StatusOr<int64_t> SqliteShardReader::ScanCommittedEvents(int64_t cursor, size_t events_max,
                                                               const EventVisitor& visit) {
  if (!events_) return cursor;
  return events_->ScanCommitted(cursor, events_max, visit);
}

}  // namespace tributary::store
