#include "reducer/sqlite/event_columns.h"

#include <algorithm>
#include <concepts>
#include <limits>
#include <numeric>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "reducer/sqlite/column_pieces.h"

namespace tributary::store {
namespace {

static_assert(sizeof(StoredEvent) * kEventsPerChunkMax <= 8u << 20);

constexpr uint64_t kCoreDumped = 1u << 16, kOomKilled = 1u << 17, kEndFlagsEnd = 1u << 18;

auto ProcessOf(const StoredEvent& e) { return std::tuple(e.pid, e.parent, e.start_time_ns); }
auto ProgramOf(const StoredEvent& e) {
  return std::tuple(e.name, e.executable_path, e.container_id, e.cgroup_path, e.uid);
}

// Assigns `value` to `*field`. Returns false if the field cannot have the value.
template <std::integral T>
bool Assign(uint64_t value, T* field) {
  *field = static_cast<T>(value);
  return static_cast<uint64_t>(*field) == value;
}

// One list of columns serves both directions, so the layouts never differ between them.
template <typename Column>
bool ForEachProcessColumn(Column column) {
  return column.Differences(&StoredEvent::pid) && column.Differences(&StoredEvent::parent) &&
         column.Differences(&StoredEvent::start_time_ns);
}

template <typename Column>
bool ForEachProgramColumn(Column column) {
  return column.Differences(&StoredEvent::name) && column.Differences(&StoredEvent::executable_path) &&
         column.Runs(&StoredEvent::container_id) && column.Runs(&StoredEvent::cgroup_path) &&
         column.Runs(&StoredEvent::uid);
}

template <typename Column>
bool ForEachEndColumn(Column column) {
  return column.Multiples(&ProcessEnd::run_ns) && column.Multiples(&ProcessEnd::user_ns) &&
         column.Multiples(&ProcessEnd::system_ns) && column.Multiples(&ProcessEnd::peak_rss_bytes);
}

template <typename Row>
struct Append {
  std::string& out;
  const std::vector<const Row*>& rows;

  template <std::integral T>
  bool Differences(T Row::* field) {
    AppendDifferences(out, rows, [field](const Row* row) { return static_cast<uint64_t>(row->*field); });
    return true;
  }
  template <std::integral T>
  bool Runs(T Row::* field) {
    AppendRuns(out, rows, [field](const Row* row) { return static_cast<uint64_t>(row->*field); });
    return true;
  }
  // The greatest common divisor, then each value as a multiple of it: sizes are whole pages.
  bool Multiples(uint64_t Row::* field) {
    uint64_t unit = 0;
    for (const Row* row : rows) unit = std::gcd(unit, row->*field);
    unit = std::max<uint64_t>(unit, 1);
    AppendVarint(out, unit);
    for (const Row* row : rows) AppendVarint(out, row->*field / unit);
    return true;
  }
};

template <typename Row>
struct Read {
  VarintReader& reader;
  std::vector<Row*>& rows;

  template <std::integral T>
  bool Differences(T Row::* field) {
    bool fits = true;
    return ReadDifferences(reader, rows,
                           [&](Row* row, uint64_t value) { fits = Assign(value, &(row->*field)) && fits; }) &&
           fits;
  }
  template <std::integral T>
  bool Runs(T Row::* field) {
    size_t i = 0;
    bool fits = true;
    return ReadRuns(reader, rows.size(), [&](uint64_t value) { fits = Assign(value, &(rows[i++]->*field)) && fits; }) &&
           fits;
  }
  bool Multiples(uint64_t Row::* field) {
    uint64_t unit = 0;
    if (!reader.Read(&unit) || unit == 0) return false;
    for (Row* row : rows) {
      uint64_t multiple = 0;
      if (!reader.Read(&multiple) || multiple > std::numeric_limits<uint64_t>::max() / unit) return false;
      row->*field = multiple * unit;
    }
    return true;
  }
};

// The first event of each distinct part of the events, and for each event the number of its part.
struct Distinct {
  std::vector<const StoredEvent*> rows;
  std::vector<uint32_t> index;  // by event

  template <typename Part>
  Distinct(std::span<const StoredEvent> events, Part part) {
    absl::flat_hash_map<decltype(part(events[0])), uint32_t> known;
    for (const StoredEvent& event : events) {
      const auto [it, added] = known.try_emplace(part(event), static_cast<uint32_t>(rows.size()));
      if (added) rows.push_back(&event);
      index.push_back(it->second);
    }
  }

  // New processes come in order, so a process is written by its distance from the next new one: 0 is a new process.
  void AppendIndex(std::string& out) const {
    uint32_t next = 0;
    for (const uint32_t number : index) {
      AppendVarint(out, next - number);
      if (number == next) ++next;
    }
  }
};

bool ReadIndex(VarintReader& reader, size_t events, size_t distinct, std::vector<uint32_t>* index) {
  uint64_t next = 0;
  for (size_t i = 0; i < events; ++i) {
    uint64_t distance = 0;
    if (!reader.Read(&distance) || distance > next) return false;
    index->push_back(static_cast<uint32_t>(next - distance));
    if (distance == 0 && ++next > distinct) return false;
  }
  return next == distinct;
}

// Times: the first time, then differences in units of their greatest common divisor.
void AppendTimes(std::string& out, std::span<const StoredEvent> events) {
  uint64_t unit = 0;
  for (size_t i = 1; i < events.size(); ++i) {
    unit = std::gcd(unit, static_cast<uint64_t>(events[i].time_ns) - static_cast<uint64_t>(events[i - 1].time_ns));
  }
  unit = std::max<uint64_t>(unit, 1);
  AppendSignedVarint(out, events.empty() ? 0 : events.front().time_ns);
  AppendVarint(out, unit);
  for (size_t i = 1; i < events.size(); ++i) {
    const uint64_t difference = static_cast<uint64_t>(events[i].time_ns) - static_cast<uint64_t>(events[i - 1].time_ns);
    AppendVarint(out, difference / unit);
  }
}

bool ReadTimes(VarintReader& reader, std::vector<StoredEvent>* out) {
  int64_t time = 0;
  uint64_t unit = 0;
  if (!reader.ReadSigned(&time) || !reader.Read(&unit)) return false;
  for (size_t i = 0; i < out->size(); ++i) {
    uint64_t difference = 0;
    if (i > 0 && !reader.Read(&difference)) return false;
    time = static_cast<int64_t>(static_cast<uint64_t>(time) + difference * unit);
    if (i > 0 && time < (*out)[i - 1].time_ns) return false;
    (*out)[i].time_ns = time;
  }
  return true;
}

bool ReadDistinct(VarintReader& reader, std::vector<StoredEvent>* out) {
  uint64_t processes = 0, programs = 0;
  if (!reader.Read(&processes) || !reader.Read(&programs) || processes > out->size() || programs > out->size()) {
    return false;
  }
  std::vector<StoredEvent> process_rows(processes), program_rows(programs);
  auto pointers = [](std::vector<StoredEvent>& rows) {
    std::vector<StoredEvent*> to;
    for (StoredEvent& row : rows) to.push_back(&row);
    return to;
  };
  std::vector<StoredEvent*> to_processes = pointers(process_rows), to_programs = pointers(program_rows);
  std::vector<uint32_t> process_of, program_of;
  if (!ForEachProcessColumn(Read<StoredEvent>{reader, to_processes}) ||
      !ForEachProgramColumn(Read<StoredEvent>{reader, to_programs}) ||
      !ReadIndex(reader, out->size(), processes, &process_of) ||
      !ReadIndex(reader, out->size(), programs, &program_of)) {
    return false;
  }
  for (size_t i = 0; i < out->size(); ++i) {
    StoredEvent& event = (*out)[i];
    const StoredEvent &process = process_rows[process_of[i]], &program = program_rows[program_of[i]];
    event.pid = process.pid;
    event.parent = process.parent;
    event.start_time_ns = process.start_time_ns;
    event.name = program.name;
    event.executable_path = program.executable_path;
    event.container_id = program.container_id;
    event.cgroup_path = program.cgroup_path;
    event.uid = program.uid;
  }
  return true;
}

uint64_t FlagsOf(const ProcessEnd& end) {
  return end.exit_code | uint64_t{end.signal} << 8 | (end.core_dumped ? kCoreDumped : 0) |
         (end.oom_killed ? kOomKilled : 0);
}

bool ReadEnds(VarintReader& reader, std::vector<StoredEvent>* out) {
  std::vector<ProcessEnd*> ends;
  for (StoredEvent& event : *out) {
    if (event.has_end()) ends.push_back(&event.end);
  }
  size_t i = 0;
  bool fits = true;
  const bool read = ReadRuns(reader, ends.size(), [&](uint64_t flags) {
    ProcessEnd& end = *ends[i++];
    end.exit_code = static_cast<uint8_t>(flags);
    end.signal = static_cast<uint8_t>(flags >> 8);
    end.core_dumped = (flags & kCoreDumped) != 0;
    end.oom_killed = (flags & kOomKilled) != 0;
    fits = fits && flags < kEndFlagsEnd;
  });
  return read && fits && ForEachEndColumn(Read<ProcessEnd>{reader, ends});
}

bool ReadColumns(VarintReader& reader, std::vector<StoredEvent>* out) {
  if (!ReadTimes(reader, out)) return false;
  for (StoredEvent& event : *out) {
    std::string_view kind;
    if (!reader.ReadBytes(1, &kind)) return false;
    event.kind = static_cast<ProcessEventKind>(kind[0]);
  }
  if (!ReadDistinct(reader, out)) return false;
  std::vector<StoredEvent*> rows;
  for (StoredEvent& event : *out) rows.push_back(&event);
  Read<StoredEvent> column{reader, rows};
  return column.Runs(&StoredEvent::events) && column.Runs(&StoredEvent::processes) && ReadEnds(reader, out) &&
         reader.AtEnd();
}

}  // namespace

std::string EncodeEvents(std::span<const StoredEvent> events) {
  std::string out(1, kColumnVersion);
  AppendVarint(out, events.size());
  AppendTimes(out, events);
  for (const StoredEvent& event : events) out.push_back(static_cast<char>(event.kind));
  const Distinct processes(events, ProcessOf), programs(events, ProgramOf);
  AppendVarint(out, processes.rows.size());
  AppendVarint(out, programs.rows.size());
  ForEachProcessColumn(Append<StoredEvent>{out, processes.rows});
  ForEachProgramColumn(Append<StoredEvent>{out, programs.rows});
  processes.AppendIndex(out);
  programs.AppendIndex(out);
  AppendRuns(out, events, [](const StoredEvent& event) { return uint64_t{event.events}; });
  AppendRuns(out, events, [](const StoredEvent& event) { return uint64_t{event.processes}; });
  std::vector<const ProcessEnd*> ends;
  for (const StoredEvent& event : events) {
    if (event.has_end()) ends.push_back(&event.end);
  }
  AppendRuns(out, ends, [](const ProcessEnd* end) { return FlagsOf(*end); });
  ForEachEndColumn(Append<ProcessEnd>{out, ends});
  return out;
}

absl::Status DecodeEvents(std::string_view bytes, std::vector<StoredEvent>* out) {
  out->clear();
  VarintReader reader(bytes);
  std::string_view version;
  uint64_t rows = 0;
  // An event takes several bytes, so more events than bytes cannot be true.
  if (!reader.ReadBytes(1, &version) || version[0] != kColumnVersion || !reader.Read(&rows) ||
      rows > reader.remaining() || rows > kEventsPerChunkMax) {
    return CorruptColumns("process events");
  }
  out->resize(rows);
  return ReadColumns(reader, out) ? absl::OkStatus() : CorruptColumns("process events");
}

}  // namespace tributary::store
