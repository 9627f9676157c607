#include "reducer/store/memory_reader.h"

#include <algorithm>
#include <span>

#include "absl/container/flat_hash_set.h"
#include "base/status.h"

namespace tributary::store {
namespace {

constexpr size_t kRowsPerCheck = 1024;  // rows between two checks whether the caller has cancelled

UnixNs MinuteStart(UnixNs time) { return UnixNs{MinuteOf(time) * kNsPerMinute}; }

bool IsIn(UnixNs time, TimeRange range) { return time >= range.from && time < range.to; }

void Append(const MemoryShard::Sample& sample, SampleColumns* columns) {
  columns->times.push_back(sample.time);
  columns->processes.push_back(sample.process);
  columns->threads.push_back(sample.thread);
  columns->nodes.push_back(sample.node);
  columns->values.push_back(sample.value);
  columns->counts.push_back(sample.count);
  columns->endings.push_back(sample.ending);
  columns->cpus.push_back(sample.cpu);
  columns->attributes.push_back(sample.attributes);
}

ProcessEventRow RowOf(const MemoryShard::Event& event) {
  return {.kind = event.kind,
          .time = event.time,
          .node_id = event.node_id,
          .host_name = event.host_name,
          .pid = event.pid,
          .parent = event.parent,
          .start_time_ns = event.start_time_ns,
          .uid = event.uid,
          .name = event.name,
          .executable_path = event.executable_path,
          .container_id = event.container_id,
          .cgroup_path = event.cgroup_path,
          .events = event.events,
          .processes = event.processes,
          .end = event.end};
}

void AddTo(const MemoryShard::Session& session, NodeStatus* node) {
  if (session.last_seen >= node->last_seen) {
    node->last_seen = session.last_seen;
    node->booted = UnixNs{session.boot_ns};
  }
  node->Add(session.totals.WithClosing(), session.totals.stored);
  node->wire_bytes += session.totals.wire_bytes;
  for (size_t i = 0; i < kEndingCount; ++i) node->endings[i] += session.totals.endings[i];
}

}  // namespace

MemoryReader::MemoryReader(MemoryShard shard) : shard_(std::move(shard)) {
  std::map<std::string, std::string> host_names;  // by node id
  for (const MemoryShard::Sample& sample : shard_.samples) host_names.try_emplace(sample.node_id);
  for (const MemoryShard::Event& event : shard_.events) host_names[event.node_id] = event.host_name;
  for (const ProcessRow& row : shard_.processes) host_names[row.node_id] = row.host_name;
  for (const auto& [node_id, info] : shard_.machines) host_names[node_id] = info.host_name;
  for (auto& [node_id, host_name] : host_names) machines_.push_back({node_id, std::move(host_name)});
}

MachineNo MemoryReader::MachineOf(const std::string& node_id) const {
  const auto found = std::ranges::lower_bound(machines_, node_id, {}, &MachineRow::node_id);
  return MachineNo{found - machines_.begin() + 1};
}

absl::Status MemoryReader::Check() const {
  RETURN_IF_ERROR(shard_.Check());
  return is_cancelled_ && is_cancelled_() ? absl::DeadlineExceededError("the caller has cancelled") : absl::OkStatus();
}

absl::StatusOr<UnixNs> MemoryReader::RawFrom() {
  RETURN_IF_ERROR(Check());
  return shard_.raw_expired_until.value <= 0 ? UnixNs{0} : MinuteStart(shard_.raw_expired_until);
}

absl::StatusOr<std::map<MachineNo, MachineRow>> MemoryReader::ListMachines() {
  RETURN_IF_ERROR(Check());
  std::map<MachineNo, MachineRow> rows;
  for (size_t i = 0; i < machines_.size(); ++i) rows.emplace(MachineNo{static_cast<int64_t>(i) + 1}, machines_[i]);
  return rows;
}

absl::StatusOr<std::vector<NodeStatus>> MemoryReader::Nodes() {
  RETURN_IF_ERROR(Check());
  std::vector<NodeStatus> nodes = shard_.nodes;
  for (const auto& [node_id, info] : shard_.machines) {
    NodeStatus node{.node_id = info.node_id,
                    .host_name = info.host_name,
                    .agent_version = info.agent_version,
                    .kernel_release = info.kernel_release,
                    .architecture = info.architecture,
                    .cpu_count = info.cpu_count,
                    .sample_rate_hz = info.sample_rate_hz};
    bool has_session = false;
    for (const auto& [source, session] : shard_.sessions) {
      if (session.node_id != node_id) continue;
      has_session = true;
      AddTo(session, &node);
    }
    if (has_session) nodes.push_back(std::move(node));
  }
  return nodes;
}

absl::StatusOr<std::map<TypeNo, SampleTypeInfo>> MemoryReader::SampleTypes() {
  RETURN_IF_ERROR(Check());
  return shard_.types;
}

absl::StatusOr<std::vector<ProcessRow>> MemoryReader::Processes(TimeRange range, const ProcessSet* only) {
  RETURN_IF_ERROR(Check());
  absl::flat_hash_set<ProcessNo> ran;
  size_t looked_at = 0;
  for (const MemoryShard::Sample& sample : shard_.samples) {
    if (++looked_at % kRowsPerCheck == 0) RETURN_IF_ERROR(Check());
    if (IsIn(sample.time, range)) ran.insert(sample.process);
  }
  std::vector<ProcessRow> rows;
  for (const ProcessRow& row : shard_.processes) {
    if (++looked_at % kRowsPerCheck == 0) RETURN_IF_ERROR(Check());
    if (ran.contains(row.no) && (only == nullptr || only->contains(row.no))) rows.push_back(row);
  }
  return rows;
}

absl::Status MemoryReader::ScanProcesses(TimeRange range, const ProcessVisitor& visit) {
  ASSIGN_OR_RETURN(const std::vector<ProcessRow> rows, Processes(range, nullptr));
  for (const ProcessRow& row : rows) RETURN_IF_ERROR(visit(row));
  return absl::OkStatus();
}

StringId MemoryReader::Intern(const std::string& text) {
  if (text.empty()) return {};
  const auto no = static_cast<uint32_t>(shard_.texts.size() + interned_texts_.size());
  const auto [it, added] = interned_.try_emplace(text, StringId{no});
  if (added) interned_texts_.push_back(&it->first);
  return it->second;
}

absl::Status MemoryReader::ScanProcessIds(TimeRange range, const ScanFilter& filter, const ProcessIdsVisitor& visit) {
  ASSIGN_OR_RETURN(const std::vector<ProcessRow> rows, Processes(range, nullptr));
  std::vector<ProcessIds> piece;
  size_t looked_at = 0;
  for (const ProcessRow& row : rows) {
    if (++looked_at % kRowsPerCheck == 0) RETURN_IF_ERROR(Check());
    const MachineNo machine = MachineOf(row.node_id);
    if (!filter.Has(machine)) continue;
    piece.push_back({.no = row.no,
                     .machine = machine,
                     .pid = row.pid,
                     .parent = row.parent,
                     .start_time_ns = row.start_time_ns,
                     .exec_sequence = row.exec_sequence,
                     .comm = Intern(row.comm),
                     .executable_path = Intern(row.executable_path),
                     .container_id = Intern(row.container_id),
                     .cgroup_path = Intern(row.cgroup_path),
                     .attributes = Intern(row.attributes),
                     .as_of = row.as_of});
    if (piece.size() < kChunkSamples) continue;
    RETURN_IF_ERROR(visit(piece));
    piece.clear();
  }
  return piece.empty() ? absl::OkStatus() : visit(piece);
}

// Visits each thread alone, and before its process.
absl::Status MemoryReader::ScanIds(TimeRange range, const ScanFilter& filter, const IdsVisitor& visit) {
  RETURN_IF_ERROR(Check());
  size_t looked_at = 0;
  for (const ThreadRow& row : shard_.threads) {
    if (++looked_at % kRowsPerCheck == 0) RETURN_IF_ERROR(Check());
    const ThreadIds ids{row.no, row.process, row.tid, Intern(row.name)};
    RETURN_IF_ERROR(visit({}, {&ids, 1}));
  }
  return ScanProcessIds(range, filter, [&](std::span<const ProcessIds> processes) { return visit(processes, {}); });
}

absl::StatusOr<std::vector<ThreadRow>> MemoryReader::Threads(TimeRange /*range*/, const ProcessSet& of) {
  RETURN_IF_ERROR(Check());
  std::vector<ThreadRow> rows;
  size_t looked_at = 0;
  for (const ThreadRow& row : shard_.threads) {
    if (++looked_at % kRowsPerCheck == 0) RETURN_IF_ERROR(Check());
    if (of.contains(row.process)) rows.push_back(row);
  }
  return rows;
}

absl::StatusOr<std::vector<ExecutableRow>> MemoryReader::Executables() {
  RETURN_IF_ERROR(Check());
  return shard_.executables;
}

absl::StatusOr<ExecutableRow> MemoryReader::Executable(ExecutableNo no) {
  RETURN_IF_ERROR(Check());
  return no.value < shard_.executables.size() ? shard_.executables[no.value] : ExecutableRow{};
}

absl::StatusOr<TrieView> MemoryReader::LoadTrie(Day day) {
  RETURN_IF_ERROR(Check());
  return TrieView(std::make_shared<const Trie>(shard_.TrieOf(day)));
}

absl::StatusOr<TriePart> MemoryReader::LoadTriePart(Day day, std::span<const NodeNo> leaves) {
  RETURN_IF_ERROR(Check());
  return CutTrie(shard_.TrieOf(day), leaves);
}

absl::StatusOr<std::string_view> MemoryReader::Text(StringId id) {
  RETURN_IF_ERROR(Check());
  if (id.value < shard_.texts.size()) return shard_.texts[id.value];
  const size_t interned = id.value - shard_.texts.size();
  return interned < interned_texts_.size() ? std::string_view(*interned_texts_[interned]) : std::string_view();
}

bool MemoryReader::IsExpired(const MemoryShard::Sample& sample) const {
  return MinuteOf(sample.time) < MinuteOf(shard_.raw_expired_until);
}

bool MemoryReader::Has(const ScanFilter& filter, const MemoryShard::Sample& sample) const {
  return filter.Has(sample.type) && (!filter.machines || filter.Has(MachineOf(sample.node_id)));
}

template <typename Filter>
absl::StatusOr<MemoryReader::Groups> MemoryReader::Group(Filter filter) const {
  Groups groups;
  size_t looked_at = 0;
  for (const MemoryShard::Sample& sample : shard_.samples) {
    if (++looked_at % kRowsPerCheck == 0) RETURN_IF_ERROR(Check());
    if (filter(sample)) groups[Key{MinuteOf(sample.time), sample.type, sample.node_id}].push_back(&sample);
  }
  for (auto& [key, group] : groups) {
    std::stable_sort(group.begin(), group.end(), [](const auto* a, const auto* b) { return a->time < b->time; });
  }
  return groups;
}

absl::Status MemoryReader::ScanSamples(TimeRange range, const ScanFilter& filter, const SampleVisitor& visit) {
  RETURN_IF_ERROR(Check());
  const auto is_wanted = [&](const MemoryShard::Sample& sample) {
    return IsIn(sample.time, range) && !IsExpired(sample) && Has(filter, sample);
  };
  ASSIGN_OR_RETURN(const Groups groups, Group(is_wanted));
  for (const auto& [key, group] : groups) {
    for (size_t begin = 0; begin < group.size(); begin += kChunkSamples) {
      SampleColumns columns{.node_id = key.node_id, .type = key.type, .day = DayOfMinute(key.minute)};
      for (size_t i = begin; i < std::min(group.size(), begin + kChunkSamples); ++i) Append(*group[i], &columns);
      RETURN_IF_ERROR(visit(columns));
    }
  }
  return absl::OkStatus();
}

absl::Status MemoryReader::ScanThreadWeights(TimeRange range, const ScanFilter& filter, const WeightsVisitor& visit) {
  return ScanSamples(range, filter, [&](const SampleColumns& columns) {
    return visit({.type = columns.type,
                  .threads = columns.threads,
                  .processes = columns.processes,
                  .values = columns.values,
                  .counts = {columns.counts.begin(), columns.counts.end()}});
  });
}

// Computes the sums on each call. Closing a minute only means that its samples may expire. An expired minute belongs to
// the range that contains its first nanosecond.
absl::Status MemoryReader::ScanSums(TimeRange range, const ScanFilter& filter, const SumVisitor& visit) {
  RETURN_IF_ERROR(Check());
  const auto is_wanted = [&](const MemoryShard::Sample& sample) {
    return IsIn(IsExpired(sample) ? MinuteStart(sample.time) : sample.time, range) && Has(filter, sample);
  };
  ASSIGN_OR_RETURN(const Groups groups, Group(is_wanted));
  for (const auto& [key, group] : groups) {
    RETURN_IF_ERROR(Check());
    const auto type = shard_.types.find(key.type);
    const bool is_gauge = type != shard_.types.end() && type->second.is_gauge();
    std::map<ProcessNo, UnixNs> latest;
    for (const MemoryShard::Sample* sample : group) latest[sample->process] = sample->time;  // samples are in order
    std::map<std::pair<ProcessNo, NodeNo>, std::pair<uint64_t, uint64_t>> sums;
    for (const MemoryShard::Sample* sample : group) {
      if (is_gauge && sample->time != latest[sample->process]) continue;
      auto& [value, count] = sums[{sample->process, sample->node}];
      value += sample->value;
      count += sample->count;
    }
    SumColumns columns{.node_id = key.node_id,
                       .type = key.type,
                       .day = DayOfMinute(key.minute),
                       .minute = UnixNs{key.minute * kNsPerMinute}};
    for (const auto& [row, sum] : sums) {
      columns.processes.push_back(row.first);
      columns.nodes.push_back(row.second);
      columns.values.push_back(sum.first);
      columns.counts.push_back(sum.second);
    }
    RETURN_IF_ERROR(visit(columns));
  }
  return absl::OkStatus();
}

// Each chunk has one sample, so a cursor is never within a chunk.
absl::StatusOr<CommittedScan> MemoryReader::ScanCommitted(const Cursor& cursor, size_t samples_max,
                                                          const CommittedVisitor& visit) {
  RETURN_IF_ERROR(Check());
  CommittedScan scan{.next = cursor,
                     .newest = std::max(shard_.last_sample, static_cast<int64_t>(shard_.samples.size()))};
  if (cursor.chunk > scan.newest) scan.next = {};  // the cursor belongs to data that no longer exist: start over
  uint64_t end = 0;
  size_t visited = 0;
  for (size_t i = 0; i < shard_.samples.size(); ++i) {
    const MemoryShard::Sample& sample = shard_.samples[i];
    const int64_t no = sample.no != 0 ? sample.no : static_cast<int64_t>(i) + 1;
    end = sample.no != 0 ? sample.end : end + sample.count;
    if (no <= scan.next.chunk || IsExpired(sample)) continue;
    if (visited > 0 && visited >= samples_max) return scan;
    scan.MoveTo(no, end - sample.count);
    if (samples_max == 0) return scan;
    SampleColumns columns{.node_id = sample.node_id, .type = sample.type, .day = DayOf(sample.time)};
    Append(sample, &columns);
    RETURN_IF_ERROR(visit(columns, scan.next));
    ++visited;
    scan.next = {.chunk = no, .samples = end};
  }
  if (scan.next.chunk < scan.newest && (visited == 0 || visited < samples_max)) {
    scan.MoveTo(scan.newest + 1, shard_.last_sample != 0 ? shard_.samples_end : end);
  }
  return scan;
}

absl::Status MemoryReader::ScanEvents(TimeRange range, const ScanFilter& filter, const EventVisitor& visit) {
  RETURN_IF_ERROR(Check());
  size_t looked_at = 0;
  for (const MemoryShard::Event& event : shard_.events) {
    if (++looked_at % kRowsPerCheck == 0) RETURN_IF_ERROR(Check());
    if (IsIn(event.time, range) && filter.Has(MachineOf(event.node_id))) RETURN_IF_ERROR(visit(RowOf(event)));
  }
  return absl::OkStatus();
}

// Returns the event's place in the order of commits. `index`: that of the event in the shard.
int64_t MemoryReader::NumberOf(const MemoryShard::Event& event, size_t index) {
  return event.no != 0 ? event.no : static_cast<int64_t>(index) + 1;
}

absl::StatusOr<uint64_t> MemoryReader::CountPassedEvents(int64_t cursor) {
  RETURN_IF_ERROR(Check());
  int64_t passed = std::max(shard_.last_event, static_cast<int64_t>(shard_.events.size()));
  for (size_t i = 0; i < shard_.events.size(); ++i) {
    if (NumberOf(shard_.events[i], i) > cursor) --passed;
  }
  return static_cast<uint64_t>(passed);
}

// Each chunk has one event, as in ScanCommitted.
absl::StatusOr<int64_t> MemoryReader::ScanCommittedEvents(int64_t cursor, size_t events_max,
                                                          const EventVisitor& visit) {
  RETURN_IF_ERROR(Check());
  if (cursor > std::max(shard_.last_event, static_cast<int64_t>(shard_.events.size()))) cursor = 0;
  size_t visited = 0;
  for (size_t i = 0; i < shard_.events.size() && visited < events_max; ++i) {
    const MemoryShard::Event& event = shard_.events[i];
    const int64_t no = NumberOf(event, i);
    if (no <= cursor) continue;
    RETURN_IF_ERROR(visit(RowOf(event)));
    ++visited;
    cursor = no;
  }
  return cursor;
}

absl::StatusOr<int64_t> MemoryReader::ScanCommittedLosses(int64_t cursor, size_t losses_max, const LossVisitor& visit) {
  RETURN_IF_ERROR(Check());
  const auto newest = static_cast<int64_t>(shard_.losses.size());
  if (cursor > newest) cursor = 0;
  const int64_t end = cursor + std::min(newest - cursor, static_cast<int64_t>(losses_max));
  for (; cursor < end; ++cursor) RETURN_IF_ERROR(visit(shard_.losses[static_cast<size_t>(cursor)]));
  return cursor;
}

}  // namespace tributary::store
