#include "cli/json_reader.h"

#include <fmt/format.h>

#include <map>
#include <tuple>

#include "base/status.h"
#include "cli/json_fields.h"

namespace tributary::cli {
namespace {

Totals GetTotals(const object& from) {
  return {.captured = GetNumber(from, "captured"),
          .idle = GetNumber(from, "idle"),
          .stored = GetNumber(from, "stored"),
          .in_flight = GetNumber(from, "in_flight"),
          .lost = GetCounts(from, "lost")};
}

Measure GetMeasure(const object& from) {
  Measure measure;
  for (auto& [key, text] : {std::pair<std::string_view, std::string&>("type", measure.type), {"unit", measure.unit}}) {
    if (std::string value = GetString(from, key); !value.empty()) text = std::move(value);
  }
  measure.is_gauge = GetString(from, "aggregation") == "last";
  measure.covered_from_ms = GetNumber(from, "covered_from");
  return measure;
}

absl::StatusOr<std::vector<std::string>> GetStrings(const object& from, std::string_view key) {
  array items;
  if (from.at_key(key).get(items) != simdjson::SUCCESS) return Bad(std::string("no list ").append(key));
  std::vector<std::string> strings;
  for (element item : items) {
    std::string_view text;
    if (item.get(text) != simdjson::SUCCESS) return Bad(std::string("invalid entry in list ").append(key));
    strings.emplace_back(text);
  }
  return strings;
}

// Calls take(i, value) over a column that must have as many entries as there are nodes.
template <typename T, typename Take>
absl::Status ReadColumn(const object& columns, std::string_view key, size_t count, Take take) {
  array items;
  if (columns.at_key(key).get(items) != simdjson::SUCCESS) return Bad(std::string("no column ").append(key));
  size_t i = 0;
  for (element item : items) {
    T value{};
    if (i >= count || item.get(value) != simdjson::SUCCESS) return Bad(std::string("invalid column ").append(key));
    take(i++, value);
  }
  return i == count ? absl::OkStatus() : Bad(std::string("too few values in column ").append(key));
}

// An answer of an earlier release has no list; then the kinds that every answer has stay in `out`.
absl::Status ReadKinds(const object& root, std::vector<FrameKind>* out, bool* has_languages) {
  if (root.at_key("kinds").error() == simdjson::NO_SUCH_FIELD) return absl::OkStatus();
  out->clear();
  RETURN_IF_ERROR(ForEachObject(root, "kinds", [&](const object& kind) {
    out->push_back({GetString(kind, "name"), GetString(kind, "color"), GetString(kind, "mark")});
    *has_languages |= !GetString(kind, "language").empty();
  }));
  return out->size() > kUnknown && out->size() <= UINT8_MAX ? absl::OkStatus()
                                                            : Bad("too few or too many kinds of frames");
}

uint8_t KindNumber(uint64_t number, const std::vector<FrameKind>& kinds) {
  return number < kinds.size() ? static_cast<uint8_t>(number) : static_cast<uint8_t>(kUnknown);
}

absl::Status CheckTree(const FlameGraph& graph) {
  if (graph.nodes.empty() || graph.nodes[0].parent != -1) return Bad("the call tree has no root");
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const FlameGraph::Node& node = graph.nodes[i];
    if (i > 0 && (node.parent < 0 || static_cast<size_t>(node.parent) >= i))
      return Bad("a node has no parent, or precedes its parent");
    if (node.name < 0 || static_cast<size_t>(node.name) >= graph.names.size())
      return Bad("the index of a name is out of range");
    if (node.executable < -1 || node.executable >= static_cast<int64_t>(graph.executables.size())) {
      return Bad("the index of an executable is out of range");
    }
  }
  return absl::OkStatus();
}

int32_t Index(int64_t value) { return value < -1 || value > INT32_MAX ? INT32_MAX : static_cast<int32_t>(value); }

SymbolTableAnswer GetTable(const object& table) {
  absl::StatusOr<std::vector<std::string>> nodes = GetStrings(table, "nodes");  // earlier releases send none
  bool contested = false;
  if (table.at_key("contested").get(contested) != simdjson::SUCCESS) contested = false;
  return {.source = GetString(table, "source"),
          .origin = GetString(table, "origin"),
          .functions = GetNumber(table, "functions"),
          .bytes = GetNumber(table, "bytes"),
          .contested = contested,
          .nodes = nodes.ok() ? *std::move(nodes) : std::vector<std::string>()};
}

// Returns "name (file.py:12)", or the name if the line is not known.
std::string WithLine(const std::string& name, std::string_view file, uint64_t line) {
  if (line == 0) return name;
  file.remove_prefix(file.rfind('/') + 1);  // npos + 1 is 0
  return fmt::format("{} ({}:{})", name, file.empty() ? "?" : file, line);
}

// Appends the lines of frames to their names, if the answer has lines.
absl::Status AddLines(const object& root, const object& columns, FlameGraph* graph) {
  element ignored;
  if (columns.at_key("line").get(ignored) != simdjson::SUCCESS) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<std::string> files, GetStrings(root, "files"));
  std::vector<int32_t> file_of(graph->nodes.size());
  RETURN_IF_ERROR(
      ReadColumn<int64_t>(columns, "file", file_of.size(), [&](size_t i, int64_t v) { file_of[i] = Index(v); }));
  std::map<std::tuple<int32_t, int32_t, uint64_t>, int32_t> known;  // by name, file and line
  return ReadColumn<uint64_t>(columns, "line", file_of.size(), [&](size_t i, uint64_t line) {
    FlameGraph::Node& node = graph->nodes[i];
    if (line == 0) return;
    const auto [it, added] =
        known.try_emplace({node.name, file_of[i], line}, static_cast<int32_t>(graph->names.size()));
    if (added) {
      const auto file = static_cast<size_t>(file_of[i]);
      graph->names.push_back(WithLine(graph->NameOf(node), file < files.size() ? files[file] : "", line));
    }
    node.name = it->second;
  });
}

}  // namespace

absl::StatusOr<StatusAnswer> ParseStatus(std::string_view json) {
  Document document;
  RETURN_IF_ERROR(document.Parse(json));
  const object& root = document.root;
  object total;
  if (root.at_key("total").get(total) != simdjson::SUCCESS) return Bad("no total");
  StatusAnswer status{.version = GetString(root, "version"),
                      .uptime_s = GetNumber(root, "uptime_s"),
                      .total = GetTotals(total),
                      .stack_health = GetCounts(root, "stack_health")};
  if (object events; total.at_key("process_events").get(events) == simdjson::SUCCESS) {
    status.process_events = GetTotals(events);
  }
  if (!total.at_key("types").error()) {  // only if there are types other than CPU
    RETURN_IF_ERROR(ForEachObject(total, "types", [&](const object& type) {
      status.types.push_back({GetString(type, "name"), GetString(type, "unit"), GetTotals(type)});
    }));
  }
  RETURN_IF_ERROR(ForEachObject(root, "nodes", [&](const object& node) {
    status.nodes.push_back({.id = GetString(node, "id"),
                            .host = GetString(node, "host"),
                            .kernel = GetString(node, "kernel"),
                            .architecture = GetString(node, "architecture"),
                            .version = GetString(node, "version"),
                            .cpus = GetNumber(node, "cpus"),
                            .sample_rate_hz = GetNumber(node, "sample_rate_hz"),
                            .last_seen_ms = GetNumber(node, "last_seen"),
                            .wire_bytes = GetNumber(node, "wire_bytes"),
                            .connected = GetBool(node, "connected"),
                            .totals = GetTotals(node),
                            .stack_health = GetCounts(node, "stack_health")});
  }));
  if (!root.at_key("refusals").error()) {  // an older reducer does not send refusals
    RETURN_IF_ERROR(ForEachObject(root, "refusals", [&](const object& refusal) {
      status.refusals.push_back(
          {GetString(refusal, "node"), GetString(refusal, "reason"), GetNumber(refusal, "amount")});
    }));
  }
  if (!root.at_key("damage").error()) {  // an older reducer does not send damage
    RETURN_IF_ERROR(ForEachObject(root, "damage", [&](const object& damage) {
      status.damage.push_back({.kind = GetString(damage, "kind"),
                               .reason = GetString(damage, "reason"),
                               .shard = GetNumber(damage, "shard"),
                               .count = GetNumber(damage, "count")});
    }));
  }
  if (!root.at_key("clusters").error()) {  // an older reducer does not send clusters
    RETURN_IF_ERROR(ForEachObject(root, "clusters", [&](const object& cluster) {
      status.clusters.push_back({.id = GetString(cluster, "id"),
                                 .connected = GetBool(cluster, "connected"),
                                 .entities = GetNumber(cluster, "entities"),
                                 .last_update_ms = GetNumber(cluster, "last_told")});
    }));
  }
  object reducer;
  if (root.at_key("reducer").get(reducer) == simdjson::SUCCESS) {
    status.reducer_cpu_seconds = GetReal(reducer, "cpu_seconds");
    status.reducer_rss_bytes = GetNumber(reducer, "rss_bytes");
    status.reducer_disk_bytes = GetNumber(reducer, "disk_bytes");
    status.shards = GetNumber(reducer, "shards");
    status.symbol_tables = GetNumber(reducer, "symbol_tables");
  }
  return status;
}

absl::StatusOr<StackHealthAnswer> ParseStackHealth(std::string_view json) {
  Document document;
  RETURN_IF_ERROR(document.Parse(json));
  const object& root = document.root;
  object endings;
  if (root.at_key("endings").get(endings) != simdjson::SUCCESS) return Bad("no endings");
  StackHealthAnswer health{.samples = GetNumber(root, "samples"),
                           .ns = GetNumber(root, "ns"),
                           .endings = GetCounts(root, "endings"),
                           .truncated_executables = GetNumber(root, "truncated_executables")};
  double share = 0;
  if (root.at_key("complete_share").get(share) == simdjson::SUCCESS) health.complete_share = share;
  absl::Status bad;
  RETURN_IF_ERROR(ForEachObject(root, "executables", [&](const object& executable) {
    absl::StatusOr<std::vector<std::string>> programs = GetStrings(executable, "programs");
    bad.Update(programs.status());
    health.executables.push_back({.name = GetString(executable, "name"),
                                  .build_id = GetString(executable, "build_id"),
                                  .samples = GetNumber(executable, "samples"),
                                  .endings = GetCounts(executable, "endings"),
                                  .programs = std::move(programs).value_or(std::vector<std::string>())});
  }));
  RETURN_IF_ERROR(bad);
  return health;
}

absl::StatusOr<SymbolsAnswer> ParseSymbols(std::string_view json) {
  Document document;
  RETURN_IF_ERROR(document.Parse(json));
  const object& root = document.root;
  object total;
  if (root.at_key("total").get(total) != simdjson::SUCCESS) return Bad("no total");
  SymbolsAnswer answer{.total_ns = GetNumber(total, "ns"), .truncated = GetNumber(root, "truncated")};
  RETURN_IF_ERROR(ForEachObject(root, "executables", [&](const object& executable) {
    answer.executables.push_back({.build_id = GetString(executable, "build_id"),
                                  .name = GetString(executable, "name"),
                                  .path = GetString(executable, "path"),
                                  .total_ns = GetNumber(executable, "total_ns"),
                                  .addresses = GetNumber(executable, "addresses"),
                                  .unnamed_addresses = GetNumber(executable, "unnamed_addresses")});
    object table;
    if (executable.at_key("symbols").get(table) == simdjson::SUCCESS) {
      answer.executables.back().symbols = GetTable(table);
    }
  }));
  RETURN_IF_ERROR(ForEachObject(root, "notices", [&](const object& notice) {
    answer.notices.push_back({.build_id = GetString(notice, "build_id"),
                              .text = GetString(notice, "text"),
                              .times = GetNumber(notice, "times")});
  }));
  return answer;
}

absl::StatusOr<LinesAnswer> ParseLines(std::string_view json) {
  Document document;
  RETURN_IF_ERROR(document.Parse(json));
  LinesAnswer answer{.measure = GetMeasure(document.root)};
  RETURN_IF_ERROR(ForEachObject(document.root, "lines", [&](const object& line) {
    answer.lines.push_back({.file = GetString(line, "file"),
                            .line = GetNumber(line, "line"),
                            .text = GetString(line, "text"),
                            .self = {GetNumber(line, "self_ns"), GetNumber(line, "self_count")},
                            .total = {GetNumber(line, "total_ns"), GetNumber(line, "total_count")}});
  }));
  ASSIGN_OR_RETURN(const std::vector<std::string> coming, GetStrings(document.root, "sources_coming"));
  answer.files_coming = coming.size();
  return answer;
}

absl::StatusOr<RolloutsAnswer> ParseRollouts(std::string_view json) {
  Document document;
  RETURN_IF_ERROR(document.Parse(json));
  RolloutsAnswer answer{.measure = GetMeasure(document.root)};
  auto version = [](const object& from) {
    return RolloutsAnswer::Version{GetString(from, "hash"), GetString(from, "images"), GetString(from, "version")};
  };
  auto use = [](const object& rollout, std::string_view key) {
    object from;
    if (rollout.at_key(key).get(from) != simdjson::SUCCESS) return RolloutsAnswer::Use();
    return RolloutsAnswer::Use{GetNumber(from, "from"), GetNumber(from, "to"), GetNumber(from, "cpu_ns")};
  };
  RETURN_IF_ERROR(ForEachObject(document.root, "rollouts", [&](const object& rollout) {
    object previous;
    const bool has_previous = rollout.at_key("previous").get(previous) == simdjson::SUCCESS;
    answer.rollouts.push_back({.at_ms = GetNumber(rollout, "at"),
                               .kind = GetString(rollout, "kind"),
                               .name_space = GetString(rollout, "namespace"),
                               .name = GetString(rollout, "name"),
                               .environment = GetString(rollout, "environment"),
                               .executable = GetString(rollout, "executable"),
                               .now = version(rollout),
                               .previous = has_previous ? version(previous) : RolloutsAnswer::Version(),
                               .before = use(rollout, "before"),
                               .after = use(rollout, "after")});
  }));
  if (document.root.at_key("truncated").get(answer.truncated) != simdjson::SUCCESS)
    return Bad("\"truncated\" is missing");
  return answer;
}

absl::StatusOr<UploadAnswer> ParseUpload(std::string_view json) {
  Document document;
  RETURN_IF_ERROR(document.Parse(json));
  const object& root = document.root;
  object table;
  if (root.at_key("symbols").get(table) != simdjson::SUCCESS) return Bad("no symbols");
  UploadAnswer answer{.build_id = GetString(root, "build_id"), .symbols = GetTable(table)};
  if (root.at_key("stored").get(answer.stored) != simdjson::SUCCESS) return Bad("\"stored\" is missing");
  ASSIGN_OR_RETURN(answer.remarks, GetStrings(root, "remarks"));
  return answer;
}

absl::StatusOr<FlameGraph> ParseFlameGraph(std::string_view json) {
  Document document;
  RETURN_IF_ERROR(document.Parse(json));
  const object& root = document.root;
  FlameGraph graph{.from_ms = GetSigned(root, "from"),
                   .to_ms = GetSigned(root, "to"),
                   .truncated_nodes = GetNumber(root, "truncated_nodes")};
  object total, columns;
  array parents;
  if (root.at_key("total").get(total) != simdjson::SUCCESS) return Bad("no total");
  graph.total = {GetNumber(total, "ns"), GetNumber(total, "count")};
  ASSIGN_OR_RETURN(graph.names, GetStrings(root, "names"));
  ASSIGN_OR_RETURN(graph.executables, GetStrings(root, "executables"));
  RETURN_IF_ERROR(ReadKinds(root, &graph.kinds, &graph.has_languages));
  graph.measure = GetMeasure(root);
  if (root.at_key("nodes").get(columns) != simdjson::SUCCESS) return Bad("no nodes");
  if (columns.at_key("parent").get(parents) != simdjson::SUCCESS) return Bad("no column parent");
  // array::size() stops counting at 2^24.
  size_t count = 0;
  for ([[maybe_unused]] element item : parents) ++count;
  graph.nodes.resize(count);
  auto& nodes = graph.nodes;
  RETURN_IF_ERROR(
      ReadColumn<int64_t>(columns, "parent", count, [&](size_t i, int64_t v) { nodes[i].parent = Index(v); }));
  RETURN_IF_ERROR(ReadColumn<int64_t>(columns, "name", count, [&](size_t i, int64_t v) { nodes[i].name = Index(v); }));
  RETURN_IF_ERROR(
      ReadColumn<int64_t>(columns, "executable", count, [&](size_t i, int64_t v) { nodes[i].executable = Index(v); }));
  RETURN_IF_ERROR(ReadColumn<uint64_t>(columns, "kind", count,
                                       [&](size_t i, uint64_t v) { nodes[i].kind = KindNumber(v, graph.kinds); }));
  RETURN_IF_ERROR(ReadColumn<uint64_t>(columns, "self_ns", count, [&](size_t i, uint64_t v) { nodes[i].self.ns = v; }));
  RETURN_IF_ERROR(
      ReadColumn<uint64_t>(columns, "total_ns", count, [&](size_t i, uint64_t v) { nodes[i].total.ns = v; }));
  RETURN_IF_ERROR(
      ReadColumn<uint64_t>(columns, "self_count", count, [&](size_t i, uint64_t v) { nodes[i].self.count = v; }));
  RETURN_IF_ERROR(
      ReadColumn<uint64_t>(columns, "total_count", count, [&](size_t i, uint64_t v) { nodes[i].total.count = v; }));
  RETURN_IF_ERROR(CheckTree(graph));
  RETURN_IF_ERROR(AddLines(root, columns, &graph));
  return graph;
}

absl::StatusOr<TopAnswer> ParseTop(std::string_view json) {
  Document document;
  RETURN_IF_ERROR(document.Parse(json));
  object total;
  if (document.root.at_key("total").get(total) != simdjson::SUCCESS) return Bad("no total");
  TopAnswer top{.total = {GetNumber(total, "ns"), GetNumber(total, "count")}};
  RETURN_IF_ERROR(ReadKinds(document.root, &top.kinds, &top.has_languages));
  top.measure = GetMeasure(document.root);
  RETURN_IF_ERROR(ForEachObject(document.root, "functions", [&](const object& function) {
    top.functions.push_back(
        {.name = WithLine(GetString(function, "name"), GetString(function, "file"), GetNumber(function, "line")),
         .executable = GetString(function, "executable"),
         .kind = KindNumber(GetNumber(function, "kind"), top.kinds),
         .self = {GetNumber(function, "self_ns"), GetNumber(function, "self_count")},
         .total = {GetNumber(function, "total_ns"), GetNumber(function, "total_count")}});
  }));
  return top;
}

absl::StatusOr<SeriesAnswer> ParseSeries(std::string_view json) {
  Document document;
  RETURN_IF_ERROR(document.Parse(json));
  SeriesAnswer series{.truncated = GetBool(document.root, "truncated")};
  RETURN_IF_ERROR(ForEachObject(document.root, "processes", [&](const object& process) {
    series.processes.push_back({.pid = GetSigned(process, "pid"),
                                .parent_pid = GetSigned(process, "parent_pid"),
                                .command = GetString(process, "command"),
                                .values = {GetNumber(process, "ns"), GetNumber(process, "count")}});
  }));
  return series;
}

std::string ParseErrorBody(std::string_view json) {
  Document document;
  return document.Parse(json).ok() ? GetString(document.root, "error") : "";
}

absl::StatusOr<Ports> ParsePorts(std::string_view json) {
  Document document;
  RETURN_IF_ERROR(document.Parse(json));
  uint64_t intake = GetNumber(document.root, "intake"), http = GetNumber(document.root, "http");
  if (intake == 0 || intake > 65'535 || http == 0 || http > 65'535) return Bad("no ports");
  return Ports{static_cast<uint16_t>(intake), static_cast<uint16_t>(http)};
}

}  // namespace tributary::cli
