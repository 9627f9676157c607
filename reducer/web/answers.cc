#include "reducer/web/answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "base/json.h"
#include "base/status.h"
#include "reducer/metadata/labels.h"
#include "reducer/web/endings_json.h"
#include "reducer/web/unit_json.h"

namespace tributary {
namespace {

template <typename T>
void NumberColumn(JsonWriter& json, std::string_view key, const std::vector<T>& values) {
  json.Key(key);
  json.BeginArray();
  for (const T& value : values) json.Number(value);
  json.EndArray();
}

void StringColumn(JsonWriter& json, std::string_view key, const std::vector<std::string>& values) {
  json.Key(key);
  json.BeginArray();
  for (const std::string& value : values) json.String(value);
  json.EndArray();
}

void Weight(JsonWriter& json, uint64_t value, uint64_t count) {
  json.Field("ns", value);
  json.Field("count", count);
}

void Total(JsonWriter& json, uint64_t value, uint64_t count) {
  json.Key("total");
  json.BeginObject();
  Weight(json, value, count);
  json.EndObject();
}

void Range(JsonWriter& json, const QueryRequest& request) {
  json.Field("from", request.range.from.value / kNsPerMs);
  json.Field("to", request.range.to.value / kNsPerMs);
}

void Measure(JsonWriter& json, const Measured& measured) {
  json.Field("type", measured.type.name);
  WriteUnit(json, measured.type);
  if (measured.covered_from) json.Field("covered_from", measured.covered_from->value / kNsPerMs);
}

// Answers number the frame kinds in the order of `kinds`: first the kinds that answers always had, by their old number,
// then the others.
constexpr auto kNumberedKinds = [] {
  std::array<FrameKind, kFrameKindCount> kinds{};
  for (uint8_t i = 0; i < kFrameKindCount; ++i) kinds[i] = static_cast<FrameKind>(i);
  std::ranges::sort(kinds, {}, [](FrameKind kind) {
    const int old = RowOf(kind).old_number;
    return old >= 0 ? old : INT8_MAX + static_cast<int>(kind);
  });
  return kinds;
}();
constexpr auto kKindNumbers = [] {
  std::array<uint32_t, kFrameKindCount> numbers{};
  for (uint32_t i = 0; i < kFrameKindCount; ++i) numbers[static_cast<size_t>(kNumberedKinds[i])] = i;
  return numbers;
}();
constexpr uint32_t KindNumber(FrameKind kind) { return kKindNumbers[static_cast<size_t>(kind)]; }

// A column of a flame graph may have a million numbers.
template <typename T>
absl::Status LongColumn(JsonWriter& json, const QueryRequest& request, std::string_view key,
                        const std::vector<T>& values) {
  json.Key(key);
  json.BeginArray();
  for (size_t i = 0; i < values.size(); ++i) {
    RETURN_IF_ERROR(CheckCancelledAt(request, i));
    if constexpr (std::is_same_v<T, FrameKind>) {
      json.Number(KindNumber(values[i]));
    } else if constexpr (std::is_same_v<T, std::string>) {
      json.String(values[i]);
    } else {
      json.Number(values[i]);
    }
  }
  json.EndArray();
  return absl::OkStatus();
}

void Kinds(JsonWriter& json) {
  json.Key("kinds");
  json.BeginArray();
  for (const FrameKind kind : kNumberedKinds) {
    json.BeginObject();
    json.Field("name", RowOf(kind).name);
    json.Field("color", RowOf(kind).color);
    json.Field("mark", RowOf(kind).mark);
    if (!RowOf(kind).language.empty()) json.Field("language", RowOf(kind).language);
    json.EndObject();
  }
  json.EndArray();
}

void ProcessEntry(JsonWriter& json, const SeriesList::Process& process) {
  const store::ProcessRow& row = process.row;
  json.BeginObject();
  json.Field("pid", row.pid.value);
  json.Field("parent_pid", row.parent.value);
  json.Field("start_time_ns", row.start_time_ns);
  json.Field("command", row.comm);
  json.Field("executable", BaseName(row.executable_path));
  json.Field("executable_path", row.executable_path);
  json.Field("container_id", row.container_id);
  json.Field("host", row.host_name);
  json.Field("node_id", row.node_id);
  if (process.ended.value != 0) json.Field("ended", process.ended.value / kNsPerMs);
  Weight(json, process.value, process.count);
  json.EndObject();
}

void NamedEntries(JsonWriter& json, std::string_view key, const std::vector<SeriesList::Named>& entries,
                  std::initializer_list<std::string_view> fields) {
  json.Key(key);
  json.BeginArray();
  for (const SeriesList::Named& entry : entries) {
    json.BeginObject();
    for (std::string_view field : fields) {
      const std::string& value = field == "id"     ? entry.id
                                 : field == "name" ? entry.name
                                 : field == "kind" ? entry.kind
                                                   : entry.name_space;
      json.Field(field, value);
    }
    Weight(json, entry.value, entry.count);
    json.EndObject();
  }
  json.EndArray();
}

const std::string* TextOf(const FunctionLines::Line& line, const std::vector<SourceText>& sources) {
  for (const SourceText& source : sources) {
    if (source.file != line.file || line.line < source.first_line) continue;
    const size_t at = line.line - source.first_line;
    return at < source.lines.size() ? &source.lines[at] : nullptr;
  }
  return nullptr;
}

// Ranks: higher is better. Of two tables, the one with the higher origin_rank is kept, then the one with the higher
// rank.
void TableObject(JsonWriter& json, const SymbolFiles::Row& row) {
  json.BeginObject();
  json.Field("source", SymbolSourceName(row.header.source));
  json.Field("rank", static_cast<uint64_t>(SymbolSourceRank(row.header.source)));
  json.Field("origin", SymbolOriginName(row.origin()));
  json.Field("functions", row.header.functions);
  json.Field("bytes", row.stored_bytes);
  json.Field("stored_at", row.header.stored_at.value / kNsPerMs);
  json.Field("contested", row.header.contested);
  json.Field("origin_rank", static_cast<uint64_t>(SymbolOriginRank(row.origin(), row.header.source)));
  const TableNotes notes = row.notes();
  StringColumn(json, "nodes", notes.node_ids());
  StringColumn(json, "disputed_by", notes.disputed_by);
  json.EndObject();
}

}  // namespace

std::string ErrorJson(std::string_view message) {
  JsonWriter json;
  json.BeginObject();
  json.Field("error", message);
  json.EndObject();
  return std::move(json).Take();
}

absl::StatusOr<std::string> FlameGraphJson(const QueryRequest& request, const Measured& measured,
                                           const FlameGraph& graph) {
  JsonWriter json;
  json.BeginObject();
  Range(json, request);
  Measure(json, measured);
  Total(json, graph.total_values[0], graph.total_counts[0]);
  json.Field("truncated_nodes", graph.truncated_nodes);
  RETURN_IF_ERROR(LongColumn(json, request, "names", graph.names));
  json.Key("nodes");
  json.BeginObject();
  RETURN_IF_ERROR(LongColumn(json, request, "parent", graph.parents));
  RETURN_IF_ERROR(LongColumn(json, request, "name", graph.node_names));
  RETURN_IF_ERROR(LongColumn(json, request, "kind", graph.kinds));
  RETURN_IF_ERROR(LongColumn(json, request, "total_ns", graph.total_values));
  RETURN_IF_ERROR(LongColumn(json, request, "self_ns", graph.self_values));
  RETURN_IF_ERROR(LongColumn(json, request, "total_count", graph.total_counts));
  RETURN_IF_ERROR(LongColumn(json, request, "self_count", graph.self_counts));
  RETURN_IF_ERROR(LongColumn(json, request, "executable", graph.node_executables));
  if (request.lines) {
    RETURN_IF_ERROR(LongColumn(json, request, "file", graph.node_files));
    RETURN_IF_ERROR(LongColumn(json, request, "line", graph.node_lines));
  }
  json.EndObject();
  RETURN_IF_ERROR(LongColumn(json, request, "executables", graph.executables));
  if (request.lines) RETURN_IF_ERROR(LongColumn(json, request, "files", graph.files));
  Kinds(json);
  json.EndObject();
  return std::move(json).Take();
}

absl::StatusOr<std::string> TopJson(const QueryRequest& request, const Measured& measured,
                                    const std::vector<TopFunction>& functions, uint64_t total_value,
                                    uint64_t total_count) {
  JsonWriter json;
  json.BeginObject();
  Measure(json, measured);
  Total(json, total_value, total_count);
  json.Key("functions");
  json.BeginArray();
  size_t written = 0;
  for (const TopFunction& function : functions) {
    RETURN_IF_ERROR(CheckCancelledAt(request, ++written));
    json.BeginObject();
    json.Field("name", function.name);
    json.Field("executable", function.executable);
    if (request.lines) {
      json.Field("file", function.file);
      json.Field("line", function.line);
    }
    json.Field("kind", KindNumber(function.kind));
    json.Field("self_ns", function.self_value);
    json.Field("self_count", function.self_count);
    json.Field("total_ns", function.total_value);
    json.Field("total_count", function.total_count);
    json.EndObject();
  }
  json.EndArray();
  Kinds(json);
  json.EndObject();
  return std::move(json).Take();
}

std::string TimelineJson(const QueryRequest& request, const Measured& measured, const Timeline& timeline) {
  JsonWriter json;
  json.BeginObject();
  Range(json, request);
  Measure(json, measured);
  json.Field("step_ms", timeline.step_ns / kNsPerMs);
  NumberColumn(json, "cpu_ns", timeline.values);
  NumberColumn(json, "count", timeline.counts);
  json.EndObject();
  return std::move(json).Take();
}

std::string TypesJson(const std::set<SampleTypeInfo>& types) {
  JsonWriter json;
  json.BeginObject();
  json.Key("types");
  json.BeginArray();
  for (const SampleTypeInfo& type : types) {
    json.BeginObject();
    json.Field("name", type.name);
    WriteUnit(json, type);
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
  return std::move(json).Take();
}

std::string LabelsJson(const std::vector<std::string>& labels) {
  JsonWriter json;
  json.BeginObject();
  StringColumn(json, "labels", labels);
  json.EndObject();
  return std::move(json).Take();
}

std::string SeriesJson(const Measured& measured, const SeriesList& series) {
  JsonWriter json;
  json.BeginObject();
  Measure(json, measured);
  json.Key("processes");
  json.BeginArray();
  for (const SeriesList::Process& process : series.processes) ProcessEntry(json, process);
  json.EndArray();
  json.Key("threads");
  json.BeginArray();
  for (const SeriesList::Thread& thread : series.threads) {
    json.BeginObject();
    json.Field("pid", thread.pid.value);
    json.Field("tid", thread.row.tid.value);
    json.Field("name", thread.row.name);
    json.Field("host", thread.host_name);
    Weight(json, thread.value, thread.count);
    json.EndObject();
  }
  json.EndArray();
  NamedEntries(json, "containers", series.containers, {"id", "name"});
  NamedEntries(json, "hosts", series.hosts, {"id", "name"});
  NamedEntries(json, "pods", series.pods, {"id", "name", "namespace"});
  NamedEntries(json, "namespaces", series.namespaces, {"name"});
  NamedEntries(json, "workloads", series.workloads, {"kind", "name", "namespace"});
  NamedEntries(json, "services", series.services, {"name", "namespace"});
  json.Field("truncated", series.truncated);
  json.EndObject();
  return std::move(json).Take();
}

absl::StatusOr<std::string> SymbolsJson(const QueryRequest& request, const Measured& measured,
                                        const ExecutableList& list, const std::vector<SymbolNotices::Notice>& notices) {
  JsonWriter json;
  json.BeginObject();
  Measure(json, measured);
  Total(json, list.value, list.count);
  json.Key("executables");
  json.BeginArray();
  size_t written = 0;
  for (const ExecutableList::Executable& executable : list.executables) {
    RETURN_IF_ERROR(CheckCancelledAt(request, ++written));
    json.BeginObject();
    json.Field("build_id", executable.id.known() ? executable.id.ToString() : std::string());
    json.Field("name", BaseName(executable.path));
    json.Field("path", executable.path);
    json.Field("self_ns", executable.self_value);
    json.Field("self_count", executable.self_count);
    json.Field("total_ns", executable.total_value);
    json.Field("total_count", executable.total_count);
    json.Field("addresses", executable.addresses);
    json.Field("unnamed_addresses", executable.unnamed_addresses);
    json.Key("symbols");
    if (executable.symbols) {
      TableObject(json, *executable.symbols);
    } else {
      json.Null();
    }
    json.EndObject();
  }
  json.EndArray();
  json.Field("truncated", list.truncated);
  json.Key("notices");
  json.BeginArray();
  for (const SymbolNotices::Notice& notice : notices) {
    json.BeginObject();
    json.Field("at", notice.at.value / kNsPerMs);
    json.Field("build_id", notice.executable);
    json.Field("text", notice.text);
    json.Field("times", notice.times);
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
  return std::move(json).Take();
}

std::string LinesJson(const Measured& measured, const FunctionLinesRequest& function, const FunctionLines& lines,
                      const SourceTexts& sources) {
  JsonWriter json;
  json.BeginObject();
  Measure(json, measured);
  json.Field("function", function.name);
  json.Field("executable", function.executable);
  json.Key("lines");
  json.BeginArray();
  for (const FunctionLines::Line& line : lines.lines) {
    json.BeginObject();
    json.Field("file", line.file);
    json.Field("line", line.line);
    json.Key("text");
    if (const std::string* text = TextOf(line, sources.texts)) {
      json.String(*text);
    } else {
      json.Null();
    }
    json.Field("self_ns", line.self_value);
    json.Field("self_count", line.self_count);
    json.Field("total_ns", line.total_value);
    json.Field("total_count", line.total_count);
    json.Key("addresses");
    json.BeginArray();
    for (const FunctionLines::Address& address : line.addresses) {
      json.BeginObject();
      json.Field("build_id", address.id.ToString());
      json.Field("address", fmt::format("0x{:x}", address.address));
      Weight(json, address.value, address.count);
      json.EndObject();
    }
    json.EndArray();
    json.EndObject();
  }
  json.EndArray();
  json.Key("sources");
  json.BeginArray();
  for (const SourceText& source : sources.texts) {
    json.BeginObject();
    json.Field("file", source.file);
    json.Field("first_line", source.first_line);
    StringColumn(json, "text", source.lines);
    json.EndObject();
  }
  json.EndArray();
  StringColumn(json, "sources_coming", sources.coming);
  json.EndObject();
  return std::move(json).Take();
}

std::string UploadJson(const SymbolImporter::Imported& imported) {
  const SymbolFiles::Row& row = imported.kept.row;
  JsonWriter json;
  json.BeginObject();
  json.Field("build_id", row.header.id.ToString());
  json.Field("stored", imported.kept.stored);
  json.Key("symbols");
  TableObject(json, row);
  json.Key("remarks");
  json.BeginArray();
  for (const std::string& remark : imported.remarks) json.String(remark);
  json.EndArray();
  json.EndObject();
  return std::move(json).Take();
}

std::string RemovedTableJson(const ExecutableId& id) {
  JsonWriter json;
  json.BeginObject();
  json.Field("build_id", id.ToString());
  json.Field("deleted", true);
  json.EndObject();
  return std::move(json).Take();
}

std::string StackHealthJson(const Measured& measured, const StackHealth& health) {
  const uint64_t(&counts)[kEndingCount] = health.total.ending_counts;
  const uint64_t walked = health.total.count - counts[static_cast<size_t>(Ending::kKernelOnly)];
  JsonWriter json;
  json.BeginObject();
  Measure(json, measured);
  json.Field("samples", health.total.count);
  json.Field("ns", health.total.value);
  Endings(json, "endings", counts);
  Endings(json, "endings_ns", health.total.ending_values);
  json.Key("complete_share");
  if (walked == 0) {
    json.Null();
  } else {
    json.Number(static_cast<double>(counts[static_cast<size_t>(Ending::kComplete)]) / static_cast<double>(walked));
  }
  json.Key("executables");
  json.BeginArray();
  for (const StackHealth::Executable& executable : health.executables) {
    json.BeginObject();
    json.Field("name", executable.name);
    json.Field("build_id", executable.build_id);
    json.Field("samples", executable.weights.count);
    json.Field("ns", executable.weights.value);
    Endings(json, "endings", executable.weights.ending_counts);
    StringColumn(json, "programs", executable.programs);
    json.EndObject();
  }
  json.EndArray();
  json.Field("truncated_executables", health.truncated_executables);
  json.EndObject();
  return std::move(json).Take();
}

}  // namespace tributary
