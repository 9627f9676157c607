#include "intake/codec/definition_reader.h"

#include <fmt/format.h>

#include <type_traits>

#include "absl/container/flat_hash_map.h"
#include "base/status.h"
#include "base/varint.h"
#include "intake/wire/malformed.h"

namespace tributary::intake {
namespace {

// Counts one more definition of a table. A definition takes at least a byte, so the bytes sent limit the memory that a
// table takes.
absl::Status Count(std::string_view table, uint32_t max, uint32_t* next) {
  if (*next >= max) {
    return Error(absl::StatusCode::kOutOfRange,
                 fmt::format("dictionary: too many {}: at most {} are allowed", table, max));
  }
  ++*next;
  return absl::OkStatus();
}

absl::Status ReadKept(VarintReader& reader, uint32_t held, KeptIds* out) {
  uint64_t count = 0;
  if (!reader.Read(&count)) return Truncated("evicted");
  if (count != held) {
    return Error(absl::StatusCode::kFailedPrecondition,
                 fmt::format("an eviction expects a table of {} ids, but the table has {}", count, held));
  }
  while (out->before() < held) {
    uint64_t run = 0;
    if (!reader.Read(&run)) return Truncated("evicted");
    if (run > held - out->before() || !out->AddRun(static_cast<uint32_t>(run)))
      return Malformed("an eviction has wrong run lengths");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadEviction(std::string_view column, const DictionaryCounts& held, Eviction* out) {
  VarintReader reader(column);
  absl::Status status;
  ForEachTable(
      [&](uint32_t count, KeptIds& kept) {
        if (status.ok()) status = ReadKept(reader, count, &kept);
      },
      held, *out);
  RETURN_IF_ERROR(status);
  if (!reader.AtEnd()) return Truncated("evicted");
  return DropsEnough(*out) ? absl::OkStatus() : Malformed("an eviction removes too few ids");
}

bool DropsEnough(const Eviction& eviction) {
  return eviction.ids_before() - eviction.ids_after() >= eviction.ids_before() / 16;
}

absl::Status DefinitionReader::Read() {
  RETURN_IF_ERROR(ReadBefore());
  RETURN_IF_ERROR(ReadStrings());
  RETURN_IF_ERROR(ReadExecutables());
  RETURN_IF_ERROR(ReadNodes());
  RETURN_IF_ERROR(ReadProcesses());
  return ReadThreads();
}

absl::Status DefinitionReader::ReadBefore() {
  const std::string_view column = columns_[DefinitionColumn::kBefore];
  DictionaryCounts expected;
  if (!column.empty()) {
    VarintReader reader(column);
    bool whole = true;
    ForEachTable(
        [&](uint32_t& count) {
          uint64_t value = 0;
          whole = whole && reader.Read(&value) && value <= UINT32_MAX;
          count = static_cast<uint32_t>(value);
        },
        expected);
    if (!whole || !reader.AtEnd()) return Truncated("before");
  }
  if (expected != before_) {
    return Error(absl::StatusCode::kFailedPrecondition,
                 "the definitions continue a dictionary of another size than the receiver's");
  }
  return absl::OkStatus();
}

absl::Status DefinitionReader::ReadStrings() {
  VarintReader lengths(columns_[DefinitionColumn::kStringLengths]);
  VarintReader bytes(columns_[DefinitionColumn::kStringBytes]);
  while (!lengths.AtEnd()) {
    uint64_t length = 0;
    std::string_view text;
    if (!lengths.Read(&length)) return Truncated("stringLengths");
    RETURN_IF_ERROR(Count("strings", limits_.strings_max, &after_.strings));
    if (length > limits_.string_bytes_max) {
      return Malformed(
          fmt::format("a string has {} bytes, but at most {} are allowed", length, limits_.string_bytes_max));
    }
    if (!bytes.ReadBytes(length, &text)) return Truncated("stringBytes");
    definitions_.strings.emplace_back(text);
  }
  return bytes.AtEnd() ? absl::OkStatus() : Truncated("stringBytes");
}

absl::Status DefinitionReader::ReadExecutables() {
  VarintReader reader(columns_[DefinitionColumn::kExecutables]);
  while (!reader.AtEnd()) {
    uint64_t kind = 0, size = 0, path = 0;
    std::string_view bytes;
    if (!reader.Read(&kind) || !reader.Read(&size) || size > ExecutableId::kSizeMax ||
        !reader.ReadBytes(size, &bytes) || !reader.Read(&path)) {
      return Truncated("executables");
    }
    RETURN_IF_ERROR(Count("executables", limits_.executables_max, &after_.executables));
    if (path >= after_.strings) return BadReference("string", path);
    Executable& executable = definitions_.executables.emplace_back();
    executable.path = StringRef{static_cast<uint32_t>(path)};
    if (kind > static_cast<uint64_t>(ExecutableIdKind::kContentHash)) {
      ++out_.unknown_values;
      continue;
    }
    auto id = ExecutableId::Make(static_cast<ExecutableIdKind>(kind), bytes);
    if (!id) return Malformed("an executable id is invalid");
    executable.id = *id;
  }
  return absl::OkStatus();
}

absl::Status DefinitionReader::ReadFrame(const FrameContext& context) {
  uint64_t differs = 0, executable = 0;
  int64_t difference = 0;
  if (!frame_kinds_.Read(&differs)) return Truncated("frameKinds");
  if (!frame_executables_.Read(&executable)) return Truncated("frameExecutables");
  if (!frame_addresses_.ReadSigned(&difference)) return Truncated("frameAddresses");
  const FramePlace& base = context.base();
  if (executable == 0 && base.executable == 0) return Malformed("a frame has no executable");
  executable = executable == 0 ? base.executable : executable - 1;
  if (executable >= after_.executables) return BadReference("executable", executable);
  const bool same = base.executable != 0 && executable == base.executable;
  const uint64_t kind = differs >> 1 ^ (same ? base.kind : static_cast<uint8_t>(FrameKind::kNative));
  if (kind > UINT8_MAX) return Malformed("a frame kind is above 255");
  tributary::Frame& frame = definitions_.frames.emplace_back();
  uint64_t position = 0, name = 0;
  if (!frame_positions_.Read(&position) || position > UINT32_MAX) return Truncated("framePositions");
  if (!frame_names_.Read(&name)) return Truncated("frameNames");
  if (name >= after_.strings) return BadReference("string", name);
  if (IsFrameKind(kind)) {
    frame.kind = static_cast<FrameKind>(kind);
  } else {
    ++out_.unknown_values;
  }
  frame.is_caller = ((differs & 1) != 0) == context.is_leaf;
  frame.executable = ExecutableRef{static_cast<uint32_t>(executable)};
  frame.address = last_addresses_.BaseOf(context, frame.executable.value) + static_cast<uint64_t>(difference);
  frame.position = static_cast<uint32_t>(position);
  frame.name = StringRef{static_cast<uint32_t>(name)};
  last_addresses_.Set(frame.executable.value, frame.address);
  nodes_.AppendFrame(frame, static_cast<uint8_t>(kind));
  return absl::OkStatus();
}

absl::Status DefinitionReader::ReadFramesUpTo(uint32_t end) {
  while (nodes_.frame_count() < end) RETURN_IF_ERROR(ReadFrame({}));
  return absl::OkStatus();
}

absl::Status DefinitionReader::CountFrames() {
  VarintReader kinds = frame_kinds_;
  while (!kinds.AtEnd()) {
    uint64_t ignored = 0;
    if (!kinds.Read(&ignored)) return Truncated("frameKinds");
    RETURN_IF_ERROR(Count("frames", limits_.frames_max, &after_.frames));
  }
  return absl::OkStatus();
}

absl::StatusOr<FrameRef> DefinitionReader::ReadFrameUnder(uint32_t parent, bool is_leaf) {
  uint64_t code = 0;
  if (!node_frames_.Read(&code)) return Truncated("nodeFrames");
  const FrameRef above = nodes_.FrameOf(parent);
  const Followers& followers = nodes_.followers();
  if (code == kFrameNew) {
    const uint32_t next = nodes_.frame_count();
    if (next >= after_.frames) return BadReference("frame", next);
    RETURN_IF_ERROR(ReadFrame({.guessed = nodes_.PlaceOf(FrameRef{followers.At(above, 0)}),
                               .parent = nodes_.PlaceOf(above),
                               .is_leaf = is_leaf}));
    return FrameRef{next};
  }
  if (code < kFrameById) {
    const uint32_t frame = followers.At(above, static_cast<uint32_t>(code - kFrameFollower));
    if (frame == 0) return Malformed("a stack node refers to a frame that never followed the frame of its parent");
    return FrameRef{frame};
  }
  uint64_t distance = 0;
  if (code != kFrameById || !node_frame_ids_.Read(&distance)) return Truncated("nodeFrameIds");
  if (distance >= after_.frames) return BadReference("frame at distance", distance);
  const FrameRef frame{static_cast<uint32_t>(after_.frames - 1 - distance)};
  RETURN_IF_ERROR(ReadFramesUpTo(frame.value + 1));
  return frame;
}

absl::Status DefinitionReader::ReadNodes() {
  RETURN_IF_ERROR(CountFrames());
  VarintReader attach(columns_[DefinitionColumn::kChainAttach]);
  VarintReader lengths(columns_[DefinitionColumn::kChainLengths]);
  while (!lengths.AtEnd()) {
    uint64_t distance = 0, length = 0;
    if (!attach.Read(&distance)) return Truncated("chainAttach");
    if (!lengths.Read(&length) || length == 0) return Truncated("chainLengths");
    if (distance == 0 || distance > after_.nodes) return BadReference("parent node at distance", distance);
    auto parent = static_cast<uint32_t>(after_.nodes - distance);
    // A chain costs its sender about a byte, however long it is: each node may repeat the frame of its parent.
    if (length > limits_.stack_depth_max || nodes_.DepthOf(parent) + length > limits_.stack_depth_max) {
      return Malformed(fmt::format("a stack has more than {} frames", limits_.stack_depth_max));
    }
    for (uint64_t i = 0; i < length; ++i) {
      ASSIGN_OR_RETURN(const FrameRef frame, ReadFrameUnder(parent, i + 1 == length));
      RETURN_IF_ERROR(Count("nodes", limits_.nodes_max, &after_.nodes));
      const Node node{NodeRef{parent}, frame};
      definitions_.nodes.push_back(node);
      nodes_.Append(node);
      parent = after_.nodes - 1;
    }
    leaves_.push_back(parent);
  }
  RETURN_IF_ERROR(ReadFramesUpTo(after_.frames));
  if (!frame_kinds_.AtEnd() || !frame_executables_.AtEnd() || !frame_addresses_.AtEnd() || !frame_positions_.AtEnd() ||
      !frame_names_.AtEnd()) {
    return Truncated("frames");
  }
  return attach.AtEnd() && node_frames_.AtEnd() && node_frame_ids_.AtEnd() ? absl::OkStatus() : Truncated("nodes");
}

absl::Status DefinitionReader::ReadProcesses() {
  VarintReader reader(columns_[DefinitionColumn::kProcesses]);
  ValueReader attributes(columns_[DefinitionColumn::kProcessAttributes], 0);
  ProcessCoder coder;
  while (!reader.AtEnd()) {
    Process process;
    if (!coder.Read(reader, &process)) return Truncated("processes");
    RETURN_IF_ERROR(Count("processes", limits_.processes_max, &after_.processes));
    uint64_t text = 0;
    if (!attributes.Read(&text) || text > UINT32_MAX) return Truncated("processAttributes");
    process.attributes = StringRef{static_cast<uint32_t>(text)};
    absl::Status refers;
    ForEachRef(process, [&](auto ref) {
      constexpr std::string_view kTable = std::is_same_v<decltype(ref), StringRef> ? "string" : "executable";
      if (refers.ok() && ref.value >= TableOf(after_, ref)) refers = BadReference(kTable, ref.value);
    });
    RETURN_IF_ERROR(refers);
    definitions_.processes.push_back(process);
  }
  return attributes.AtEnd() ? absl::OkStatus() : Truncated("processAttributes");
}

absl::Status DefinitionReader::ReadThreads() {
  VarintReader reader(columns_[DefinitionColumn::kThreads]);
  ThreadCoder coder(before_.processes);
  while (!reader.AtEnd()) {
    Thread thread;
    if (!coder.ReadProcess(reader, after_.processes, &thread.process)) return Truncated("threads");
    const bool is_new = thread.process.value >= before_.processes;
    const Process* of = is_new ? &definitions_.processes[thread.process.value - before_.processes] : nullptr;
    if (!coder.ReadRest(reader, of, &thread)) return Truncated("threads");
    RETURN_IF_ERROR(Count("threads", limits_.threads_max, &after_.threads));
    if (thread.name.value >= after_.strings) return BadReference("string", thread.name.value);
    definitions_.threads.push_back(thread);
  }
  return absl::OkStatus();
}

}  // namespace tributary::intake
