#include "intake/recording/inspect.h"

#include <fmt/format.h>

#include <map>
#include <vector>

#include "base/hex.h"
#include "base/json.h"
#include "base/log.h"
#include "base/status.h"
#include "intake/metadata/metadata_message.h"
#include "intake/recording/message_sizes.h"

namespace tributary::intake {
namespace {

// Limits a name in a sample or event, which repeats the name; definitions contain the full name.
constexpr size_t kSampleTextBytesMax = 128;
constexpr std::string_view kEventColumnPrefix = "events.";  // see ColumnSize::name

std::string_view TypeName(MessageType type) {
  switch (type) {
    case MessageType::kHello:
      return "hello";
    case MessageType::kWelcome:
      return "welcome";
    case MessageType::kDefinitions:
      return "definitions";
    case MessageType::kBatch:
      return "batch";
    case MessageType::kAck:
      return "ack";
    case MessageType::kNeedDictionary:
      return "need_dictionary";
    case MessageType::kNeedSymbols:
      return "need_symbols";
    case MessageType::kSymbolChunk:
      return "symbol_chunk";
    case MessageType::kHeartbeat:
      return "heartbeat";
    case MessageType::kGoodbye:
      return "goodbye";
    case MessageType::kMetadata:
      return "metadata";
    case MessageType::kNeedDigests:
      return "need_digests";
    case MessageType::kSymbolDigest:
      return "symbol_digest";
    case MessageType::kOptOuts:
      return "opt_outs";
  }
  return "unknown";
}

std::string Hexadecimal(uint64_t n) { return fmt::format("{:#x}", n); }

void WriteCounts(JsonWriter& json, std::string_view key, const DictionaryCounts& counts) {
  json.Key(key);
  json.BeginObject();
  json.Field("strings", counts.strings);
  json.Field("executables", counts.executables);
  json.Field("frames", counts.frames);
  json.Field("nodes", counts.nodes);
  json.Field("processes", counts.processes);
  json.Field("threads", counts.threads);
  json.EndObject();
}

void WriteClock(JsonWriter& json, const ClockPair& clock) {
  json.Key("clock");
  json.BeginObject();
  json.Field("monotonic_ns", clock.monotonic.value);
  json.Field("unix_ns", clock.unix.value);
  json.EndObject();
}

// The sums over all messages of one type.
struct TypeSum {
  uint64_t messages = 0, stored_bytes = 0, raw_bytes = 0;
};

class Inspector {
 public:
  std::string Line(const RecordedFrame& recorded);
  std::string Summary(uint64_t file_bytes) const;
  const absl::Status& status() const { return status_; }

 private:
  void WriteHello(std::string_view payload);
  void WriteMetadata(std::string_view payload);
  void WriteSession(const Frame& frame);
  void WriteDefinitions(const DictionaryCounts& before, const Definitions& definitions);
  void WriteProcesses(uint32_t id, const std::vector<Process>& processes);
  void WriteSamples(const IncomingBatch& batch);
  void WriteEvents(const std::vector<ProcessEvent>& events);
  void WriteColumns(const Frame& frame);
  void Fail(const absl::Status& why) {
    json_.Field("error", EscapeForDisplay(Message(why)));
    if (status_.ok()) status_ = why;
  }
  std::string Text(StringRef ref) const { return EscapeForDisplay(session_.dictionary().string(ref)); }
  std::string ShortText(StringRef ref) const {
    return EscapeForDisplay(session_.dictionary().string(ref).substr(0, kSampleTextBytesMax));
  }

  uint32_t DepthOf(NodeRef node) const {
    uint32_t depth = 0;
    for (; node.value != 0; node = session_.dictionary().node(node).parent) ++depth;
    return depth;
  }

  RecordedSession session_;
  absl::Status status_;
  JsonWriter json_;  // the line being written

  std::map<std::string_view, TypeSum> types_;
  std::map<std::string, uint64_t> column_bytes_;
  uint64_t samples_ = 0, counted_ = 0, event_rows_ = 0, event_bytes_ = 0;
  std::map<std::string_view, uint64_t> by_type_, by_ending_, events_by_kind_;
  Accounting accounting_;
};

std::string Inspector::Line(const RecordedFrame& recorded) {
  const Frame& frame = recorded.frame;
  TypeSum& sum = types_[TypeName(frame.type)];
  ++sum.messages;
  sum.stored_bytes += recorded.stored_bytes;
  sum.raw_bytes += frame.payload.size();
  json_ = JsonWriter();
  json_.BeginObject();
  json_.Field("offset", recorded.offset);
  json_.Field("type", TypeName(frame.type));
  json_.Field("type_number", static_cast<uint32_t>(frame.type));
  json_.Field("channel", static_cast<uint32_t>(frame.channel));
  json_.Field("sequence", frame.sequence);
  json_.Field("header_bytes", static_cast<uint64_t>(kHeaderBytes));
  json_.Field("stored_bytes", recorded.stored_bytes);
  json_.Field("raw_bytes", static_cast<uint64_t>(frame.payload.size()));
  if (frame.type == MessageType::kHello) WriteHello(frame.payload);
  if (frame.type == MessageType::kMetadata) WriteMetadata(frame.payload);
  if (frame.type == MessageType::kDefinitions || frame.type == MessageType::kBatch) WriteSession(frame);
  json_.EndObject();
  return std::move(json_).Take() + "\n";
}

void Inspector::WriteHello(std::string_view payload) {
  absl::StatusOr<Hello> hello = DecodeHello(payload);
  if (!hello.ok()) return Fail(hello.status());
  const SessionInfo& session = hello->session;
  json_.Field("version_min", static_cast<uint32_t>(hello->version_min));
  json_.Field("version_max", static_cast<uint32_t>(hello->version_max));
  json_.Field("features", hello->features);
  json_.Field("role", static_cast<uint32_t>(hello->role));
  json_.Field("session_id", ToHex(session.session_id));
  json_.Field("node_id", EscapeForDisplay(session.node_id));
  json_.Field("boot_id", EscapeForDisplay(session.boot_id));
  json_.Field("host_name", EscapeForDisplay(session.host_name));
  json_.Field("kernel_release", EscapeForDisplay(session.kernel_release));
  json_.Field("architecture", EscapeForDisplay(session.architecture));
  json_.Field("agent_version", EscapeForDisplay(session.agent_version));
  json_.Field("cpu_count", session.cpu_count);
  json_.Field("sample_rate_hz", session.sample_rate_hz);
  json_.Field("dictionary_generation", hello->dictionary_generation);
  WriteCounts(json_, "sent", hello->sent);
  json_.Field("next_sequence", hello->next_sequence);
  // A credential is never shown.
  json_.Field("token", hello->token.empty() ? "" : "***");
  WriteClock(json_, hello->clock);
}

void Inspector::WriteMetadata(std::string_view payload) {
  uint32_t unknown_values = 0;
  absl::StatusOr<MetadataUpdate> update = DecodeMetadata(payload, &unknown_values);
  if (!update.ok()) return Fail(update.status());
  json_.Field("begins_snapshot", update->begins_snapshot);
  json_.Field("ends_snapshot", update->ends_snapshot);
  json_.Field("unknown_values", unknown_values);
  json_.Key("entities");
  json_.BeginArray();
  for (const Entity& entity : update->entities) {
    json_.BeginObject();
    json_.Field("kind", EntityKindName(entity.kind));
    json_.Field("id", EscapeForDisplay(entity.id));
    json_.Field("from_unix_ns", entity.from.value);
    json_.Field("gone", entity.gone);
    json_.Key("attributes");
    json_.BeginObject();
    for (const auto& [key, value] : entity.attributes) json_.Field(EscapeForDisplay(key), EscapeForDisplay(value));
    json_.EndObject();
    json_.EndObject();
  }
  json_.EndArray();
}

void Inspector::WriteSession(const Frame& frame) {
  absl::StatusOr<IncomingBatch> batch = session_.Take(frame);
  if (!batch.ok()) return Fail(batch.status());
  json_.Field("generation", batch->generation);
  WriteCounts(json_, "before", batch->before);
  if (frame.type == MessageType::kBatch) {
    WriteClock(json_, batch->clock);
    accounting_ = batch->accounting;
    json_.Field("captured", accounting_.captured.total());
    json_.Field("idle", accounting_.idle);
    json_.Key("lost");
    json_.BeginObject();
    for (uint8_t i = 0; i < kLossReasonCount; ++i) {
      if (accounting_.lost[i].total() > 0)
        json_.Field(LossReasonName(static_cast<LossReason>(i)), accounting_.lost[i].total());
    }
    json_.EndObject();
    if (const SampleCounts counted = accounting_.Counted(); counted.events() > 0) {
      json_.Field("captured_events", accounting_.captured.events());
      json_.Field("lost_events", accounting_.TotalLost().events());
    }
    json_.Field("nodes_hash", Hexadecimal(batch->nodes_hash));
    json_.Field("unknown_values", batch->unknown_values);
  }
  WriteColumns(frame);
  WriteDefinitions(batch->before, batch->definitions);
  if (frame.type != MessageType::kBatch) return;
  WriteSamples(*batch);
  if (!batch->events.empty()) WriteEvents(batch->events);
}

void Inspector::WriteColumns(const Frame& frame) {
  absl::StatusOr<std::vector<ColumnSize>> columns = ColumnSizes(frame.type, frame.payload);
  if (!columns.ok()) return Fail(columns.status());
  json_.Key("column_bytes");
  json_.BeginObject();
  for (const ColumnSize& column : *columns) {
    json_.Field(column.name, column.bytes);
    column_bytes_[column.name] += column.bytes;
    if (column.name.starts_with(kEventColumnPrefix)) event_bytes_ += column.bytes;
  }
  json_.EndObject();
}

// Writes every definition with its id, in the form [{"id": …}, …]. Nodes are many: they are [id, parent, frame].
void Inspector::WriteDefinitions(const DictionaryCounts& before, const Definitions& definitions) {
  auto table = [this](std::string_view key, uint32_t id, const auto& rows, auto&& write) {
    json_.Key(key);
    json_.BeginArray();
    for (const auto& row : rows) {
      json_.BeginObject();
      json_.Field("id", id++);
      write(row);
      json_.EndObject();
    }
    json_.EndArray();
  };
  json_.Key("definitions");
  json_.BeginObject();
  table("strings", before.strings, definitions.strings,
        [this](const std::string& text) { json_.Field("text", EscapeForDisplay(text)); });
  table("executables", before.executables, definitions.executables, [this](const Executable& executable) {
    json_.Field("executable_id", executable.id.ToString());
    json_.Field("path", Text(executable.path));
  });
  table("frames", before.frames, definitions.frames, [this](const tributary::Frame& frame) {
    json_.Field("kind", RowOf(frame.kind).name);
    json_.Field("is_caller", frame.is_caller);
    json_.Field("executable", frame.executable.value);
    json_.Field("address", Hexadecimal(frame.address));
    if (frame.position != 0) json_.Field("position", frame.position);
    if (frame.name.value != 0) json_.Field("name", Text(frame.name));
  });
  json_.Key("nodes");
  json_.BeginArray();
  for (uint32_t id = before.nodes; const Node& node : definitions.nodes) {
    json_.BeginArray();
    json_.Number(id++);
    json_.Number(node.parent.value);
    json_.Number(node.frame.value);
    json_.EndArray();
  }
  json_.EndArray();
  WriteProcesses(before.processes, definitions.processes);
  table("threads", before.threads, definitions.threads, [this](const Thread& thread) {
    json_.Field("process", thread.process.value);
    json_.Field("tid", thread.tid.value);
    json_.Field("name", Text(thread.name));
  });
  json_.EndObject();
}

void Inspector::WriteProcesses(uint32_t id, const std::vector<Process>& processes) {
  json_.Key("processes");
  json_.BeginArray();
  for (const Process& process : processes) {
    json_.BeginObject();
    json_.Field("id", id++);
    json_.Field("pid", process.key.pid.value);
    json_.Field("start_time_ns", process.key.start_time_ns);
    json_.Field("exec_sequence", process.key.exec_sequence);
    json_.Field("parent_pid", process.parent.value);
    json_.Field("comm", Text(process.comm));
    json_.Field("executable", process.executable.value);
    json_.Field("executable_path", Text(process.executable_path));
    json_.Field("container_id", Text(process.container_id));
    json_.Field("cgroup_path", Text(process.cgroup_path));
    json_.Field("attributes", Text(process.attributes));
    json_.EndObject();
  }
  json_.EndArray();
}

void Inspector::WriteSamples(const IncomingBatch& batch) {
  const Dictionary& dictionary = session_.dictionary();
  json_.Key("samples");
  json_.BeginArray();
  for (const Sample& sample : batch.samples) {
    const Thread& thread = dictionary.thread(sample.thread);
    const Process& process = dictionary.process(thread.process);
    const tributary::Frame& leaf = dictionary.frame(dictionary.node(sample.node).frame);
    json_.BeginObject();
    json_.Field("time_ns", sample.time.value);
    json_.Field("sample_type", SampleTypeName(sample.type));
    json_.Field("thread", sample.thread.value);
    json_.Field("tid", thread.tid.value);
    json_.Field("thread_name", ShortText(thread.name));
    json_.Field("pid", process.key.pid.value);
    json_.Field("comm", ShortText(process.comm));
    json_.Field("node", sample.node.value);
    json_.Field("depth", DepthOf(sample.node));
    json_.Field("leaf_kind", RowOf(leaf.kind).name);
    json_.Field("leaf_executable", ShortText(dictionary.executable(leaf.executable).path));
    json_.Field("leaf_address", Hexadecimal(leaf.address));
    json_.Field("ending", EndingName(sample.ending));
    json_.Field("cpu", static_cast<uint32_t>(sample.cpu));
    json_.Field("count", sample.count);
    json_.Field("value_ns", sample.value);
    if (sample.attributes.value != 0) json_.Field("attributes", Text(sample.attributes));
    json_.EndObject();
    ++samples_;
    counted_ += sample.count;
    by_type_[SampleTypeName(sample.type)] += sample.count;
    by_ending_[EndingName(sample.ending)] += sample.count;
  }
  json_.EndArray();
}

void Inspector::WriteEvents(const std::vector<ProcessEvent>& events) {
  json_.Key("events");
  json_.BeginArray();
  for (const ProcessEvent& event : events) {
    json_.BeginObject();
    json_.Field("time_ns", event.time.value);
    json_.Field("kind", ProcessEventKindName(event.kind));
    json_.Field("pid", event.pid.value);
    json_.Field("parent_pid", event.parent.value);
    json_.Field("start_time_ns", event.start_time_ns);
    json_.Field("uid", event.uid);
    json_.Field("name", ShortText(event.name));
    json_.Field("executable_path", ShortText(event.executable_path));
    json_.Field("container_id", ShortText(event.container_id));
    json_.Field("cgroup_path", ShortText(event.cgroup_path));
    if (event.kind == ProcessEventKind::kSum) {
      json_.Field("events", event.events);
      json_.Field("processes", event.processes);
    }
    if (event.has_end()) {
      json_.Field("exit_code", static_cast<uint32_t>(event.end.exit_code));
      json_.Field("signal", static_cast<uint32_t>(event.end.signal));
      json_.Field("core_dumped", event.end.core_dumped);
      json_.Field("oom_killed", event.end.oom_killed);
      json_.Field("run_ns", event.end.run_ns);
      json_.Field("user_ns", event.end.user_ns);
      json_.Field("system_ns", event.end.system_ns);
      json_.Field("peak_rss_bytes", event.end.peak_rss_bytes);
    }
    json_.EndObject();
    ++event_rows_;
    events_by_kind_[ProcessEventKindName(event.kind)] += event.events;
  }
  json_.EndArray();
}

std::string Inspector::Summary(uint64_t file_bytes) const {
  JsonWriter json;
  auto object = [&json](std::string_view key, const auto& numbers) {
    json.Key(key);
    json.BeginObject();
    for (const auto& [name, number] : numbers) json.Field(name, number);
    json.EndObject();
  };
  json.BeginObject();
  json.Field("type", "summary");
  json.Field("bytes", file_bytes);
  json.Key("messages");
  json.BeginObject();
  for (const auto& [name, sum] : types_) {
    json.Key(name);
    json.BeginObject();
    json.Field("messages", sum.messages);
    json.Field("header_bytes", sum.messages * kHeaderBytes);
    json.Field("stored_bytes", sum.stored_bytes);
    json.Field("raw_bytes", sum.raw_bytes);
    json.EndObject();
  }
  json.EndObject();
  object("column_bytes", column_bytes_);
  json.Field("sample_rows", samples_);
  json.Field("samples", counted_);
  json.Field("bytes_per_sample", counted_ == 0 ? 0.0 : static_cast<double>(file_bytes) / static_cast<double>(counted_));
  object("samples_by_type", by_type_);
  object("samples_by_ending", by_ending_);
  json.Field("captured", accounting_.captured.total());
  json.Field("lost", accounting_.TotalLost().total());
  if (event_rows_ > 0 || accounting_.Counted().events() > 0) {
    json.Field("event_rows", event_rows_);
    object("events_by_kind", events_by_kind_);
    json.Field("column_bytes_per_event_row",
               event_rows_ == 0 ? 0.0 : static_cast<double>(event_bytes_) / static_cast<double>(event_rows_));
    json.Field("captured_events", accounting_.captured.events());
    json.Field("lost_events", accounting_.TotalLost().events());
  }
  json.EndObject();
  return std::move(json).Take() + "\n";
}

}  // namespace

absl::Status Inspect(RecordingReader& reader, const std::function<absl::Status(std::string_view line)>& write) {
  Inspector inspector;
  RecordedFrame frame;
  absl::Status damage;
  while (damage.ok()) {
    absl::StatusOr<bool> got = reader.Next(&frame);
    if (got.ok() && !*got) break;
    if (!got.ok()) {
      damage = got.status();
      break;
    }
    RETURN_IF_ERROR(write(inspector.Line(frame)));
    if (!inspector.status().ok()) {
      damage = WithContext(inspector.status(), fmt::format("{}: offset {}", reader.path(), frame.offset));
    }
  }
  RETURN_IF_ERROR(write(inspector.Summary(reader.offset())));
  return damage;
}

}  // namespace tributary::intake
