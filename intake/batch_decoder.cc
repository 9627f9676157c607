#include <fmt/format.h>

#include "absl/container/flat_hash_map.h"
#include "intake/batch_codec.h"
#include "intake/columns.h"
#include "intake/wire.h"

namespace tributary::intake {
namespace {

absl::Status Truncated(std::string_view column) {
  return Malformed(fmt::format("column {} does not have the length it should", column));
}

absl::Status BadReference(std::string_view what, uint64_t value) {
  return Malformed(fmt::format("{} {} is not defined", what, value));
}

// Reads one message's definitions. Every reference is checked against what is defined before it, in the order
// strings, executables, frames, nodes, processes, threads.
class DefinitionReader {
 public:
  DefinitionReader(wire::Definitions::Reader from, const DictionaryCounts& before, const DictionaryLimits& limits,
                   IncomingBatch* out)
      : from_(from), before_(before), after_(before), limits_(limits), out_(*out), definitions_(out->definitions) {}

  absl::Status Read() {
    RETURN_IF_ERROR(Advance("strings", from_.getStringCount(), limits_.strings_max, &after_.strings));
    RETURN_IF_ERROR(Advance("executables", from_.getExecutableCount(), limits_.executables_max, &after_.executables));
    RETURN_IF_ERROR(Advance("frames", from_.getFrameCount(), limits_.frames_max, &after_.frames));
    RETURN_IF_ERROR(Advance("nodes", from_.getNodeCount(), limits_.nodes_max, &after_.nodes));
    RETURN_IF_ERROR(Advance("processes", from_.getProcessCount(), limits_.processes_max, &after_.processes));
    RETURN_IF_ERROR(Advance("threads", from_.getThreadCount(), limits_.threads_max, &after_.threads));
    RETURN_IF_ERROR(ReadStrings());
    RETURN_IF_ERROR(ReadExecutables());
    RETURN_IF_ERROR(ReadFrames());
    RETURN_IF_ERROR(ReadNodes());
    RETURN_IF_ERROR(ReadProcesses());
    return ReadThreads();
  }

  const DictionaryCounts& after() const { return after_; }
  std::vector<uint32_t> TakeLeaves() { return std::move(leaves_); }

 private:
  static absl::Status Advance(std::string_view table, uint32_t count, uint32_t max, uint32_t* next) {
    if (*next > max || count > max - *next) {
      return Error(absl::StatusCode::kOutOfRange,
                   fmt::format("dictionary: {} more {} after {} where {} are allowed", count, table, *next, max));
    }
    *next += count;
    return absl::OkStatus();
  }

  // A definition takes a byte at least: a count that its column cannot hold buys no memory.
  static bool Fits(uint32_t count, std::string_view column) { return count <= column.size(); }

  absl::Status ReadStrings() {
    const uint32_t count = from_.getStringCount();
    VarintReader lengths(ViewOf(from_.getStringLengths()));
    VarintReader bytes(ViewOf(from_.getStringBytes()));
    if (!Fits(count, ViewOf(from_.getStringLengths()))) return Truncated("stringLengths");
    definitions_.strings.reserve(count);
    for (uint32_t i = 0; i < count; ++i) {
      uint64_t length = 0;
      std::string_view text;
      if (!lengths.Read(&length)) return Truncated("stringLengths");
      if (length > limits_.string_bytes_max) {
        return Malformed(fmt::format("string of {} bytes where {} are allowed", length, limits_.string_bytes_max));
      }
      if (!bytes.ReadBytes(length, &text)) return Truncated("stringBytes");
      definitions_.strings.emplace_back(text);
    }
    return lengths.AtEnd() && bytes.AtEnd() ? absl::OkStatus() : Truncated("strings");
  }

  absl::Status ReadExecutables() {
    const uint32_t count = from_.getExecutableCount();
    const std::string_view column = ViewOf(from_.getExecutables());
    if (!Fits(count, column)) return Truncated("executables");
    VarintReader reader(column);
    definitions_.executables.reserve(count);
    for (uint32_t i = 0; i < count; ++i) {
      uint64_t kind = 0, size = 0, path = 0;
      std::string_view bytes;
      if (!reader.Read(&kind) || !reader.Read(&size) || size > ExecutableId::kSizeMax ||
          !reader.ReadBytes(size, &bytes) || !reader.Read(&path)) {
        return Truncated("executables");
      }
      if (path >= after_.strings) return BadReference("string", path);
      Executable& executable = definitions_.executables.emplace_back();
      executable.path = StringRef{static_cast<uint32_t>(path)};
      if (kind > static_cast<uint64_t>(ExecutableIdKind::kContentHash)) {
        ++out_.unknown_values;
        continue;
      }
      auto id = ExecutableId::Make(static_cast<ExecutableIdKind>(kind), bytes);
      if (!id) return Malformed("not an executable id");
      executable.id = *id;
    }
    return reader.AtEnd() ? absl::OkStatus() : Truncated("executables");
  }

  absl::Status ReadFrames() {
    const uint32_t count = from_.getFrameCount();
    const std::string_view kinds = ViewOf(from_.getFrameKinds());
    if (kinds.size() != count) return Truncated("frameKinds");
    VarintReader executables(ViewOf(from_.getFrameExecutables()));
    VarintReader addresses(ViewOf(from_.getFrameAddresses()));
    absl::flat_hash_map<uint32_t, uint64_t> last_address;
    definitions_.frames.reserve(count);
    for (uint32_t i = 0; i < count; ++i) {
      uint64_t executable = 0;
      int64_t difference = 0;
      if (!executables.Read(&executable)) return Truncated("frameExecutables");
      if (!addresses.ReadSigned(&difference)) return Truncated("frameAddresses");
      if (executable >= after_.executables) return BadReference("executable", executable);
      tributary::Frame& frame = definitions_.frames.emplace_back();
      const auto kind = static_cast<uint8_t>(static_cast<uint8_t>(kinds[i]) >> 1);
      if (kind < kFrameKindCount) {
        frame.kind = static_cast<FrameKind>(kind);
      } else {
        ++out_.unknown_values;
      }
      frame.is_caller = (kinds[i] & 1) != 0;
      frame.executable = ExecutableRef{static_cast<uint32_t>(executable)};
      uint64_t& last = last_address[frame.executable.value];
      last += static_cast<uint64_t>(difference);
      frame.address = last;
    }
    return executables.AtEnd() && addresses.AtEnd() ? absl::OkStatus() : Truncated("frames");
  }

  absl::Status ReadNodes() {
    VarintReader attach(ViewOf(from_.getChainAttach()));
    VarintReader lengths(ViewOf(from_.getChainLengths()));
    VarintReader frames(ViewOf(from_.getNodeFrames()));
    if (!Fits(from_.getNodeCount(), ViewOf(from_.getNodeFrames()))) return Truncated("nodeFrames");
    definitions_.nodes.reserve(from_.getNodeCount());
    uint32_t next_new_frame = before_.frames;
    for (uint32_t next = before_.nodes; next < after_.nodes;) {
      uint64_t distance = 0, length = 0;
      if (!attach.Read(&distance)) return Truncated("chainAttach");
      if (!lengths.Read(&length)) return Truncated("chainLengths");
      if (distance == 0 || distance > next) return BadReference("chain's parent at distance", distance);
      if (length == 0 || length > after_.nodes - next) return Truncated("chainLengths");
      auto parent = static_cast<uint32_t>(next - distance);
      for (uint64_t i = 0; i < length; ++i) {
        uint64_t reference = 0;
        if (!frames.Read(&reference)) return Truncated("nodeFrames");
        const uint64_t frame = reference == 0 ? next_new_frame++ : reference - 1;
        if (frame >= after_.frames) return BadReference("frame", frame);
        definitions_.nodes.push_back(Node{NodeRef{parent}, FrameRef{static_cast<uint32_t>(frame)}});
        parent = next++;
      }
      leaves_.push_back(next - 1);
    }
    return attach.AtEnd() && lengths.AtEnd() && frames.AtEnd() ? absl::OkStatus() : Truncated("nodes");
  }

  absl::Status ReadProcesses() {
    const uint32_t count = from_.getProcessCount();
    const std::string_view column = ViewOf(from_.getProcesses());
    if (!Fits(count, column)) return Truncated("processes");
    VarintReader reader(column);
    definitions_.processes.reserve(count);
    for (uint32_t i = 0; i < count; ++i) {
      int64_t pid = 0, start = 0, parent = 0;
      uint64_t exec = 0, comm = 0, executable = 0, path = 0, container = 0, cgroup = 0;
      if (!reader.ReadSigned(&pid) || !reader.ReadSigned(&start) || !reader.Read(&exec) ||
          !reader.ReadSigned(&parent) || !reader.Read(&comm) || !reader.Read(&executable) || !reader.Read(&path) ||
          !reader.Read(&container) || !reader.Read(&cgroup)) {
        return Truncated("processes");
      }
      if (!IsInt32(pid) || !IsInt32(parent) || exec > UINT32_MAX) return Malformed("process id out of range");
      for (uint64_t string : {comm, path, container, cgroup}) {
        if (string >= after_.strings) return BadReference("string", string);
      }
      if (executable >= after_.executables) return BadReference("executable", executable);
      definitions_.processes.push_back(
          Process{.key = {Pid{static_cast<int32_t>(pid)}, start, static_cast<uint32_t>(exec)},
                  .parent = Pid{static_cast<int32_t>(parent)},
                  .comm = StringRef{static_cast<uint32_t>(comm)},
                  .executable = ExecutableRef{static_cast<uint32_t>(executable)},
                  .executable_path = StringRef{static_cast<uint32_t>(path)},
                  .container_id = StringRef{static_cast<uint32_t>(container)},
                  .cgroup_path = StringRef{static_cast<uint32_t>(cgroup)}});
    }
    return reader.AtEnd() ? absl::OkStatus() : Truncated("processes");
  }

  absl::Status ReadThreads() {
    const uint32_t count = from_.getThreadCount();
    const std::string_view column = ViewOf(from_.getThreads());
    if (!Fits(count, column)) return Truncated("threads");
    VarintReader reader(column);
    definitions_.threads.reserve(count);
    for (uint32_t i = 0; i < count; ++i) {
      uint64_t process = 0, name = 0;
      int64_t tid = 0;
      if (!reader.Read(&process) || !reader.ReadSigned(&tid) || !reader.Read(&name)) return Truncated("threads");
      if (!IsInt32(tid)) return Malformed("thread id out of range");
      if (process >= after_.processes) return BadReference("process", process);
      if (name >= after_.strings) return BadReference("string", name);
      definitions_.threads.push_back(Thread{ProcessRef{static_cast<uint32_t>(process)}, Tid{static_cast<int32_t>(tid)},
                                            StringRef{static_cast<uint32_t>(name)}});
    }
    return reader.AtEnd() ? absl::OkStatus() : Truncated("threads");
  }

  static bool IsInt32(int64_t value) { return value >= INT32_MIN && value <= INT32_MAX; }

  wire::Definitions::Reader from_;
  const DictionaryCounts before_;
  DictionaryCounts after_;
  const DictionaryLimits& limits_;
  IncomingBatch& out_;
  Definitions& definitions_;
  std::vector<uint32_t> leaves_;
};

absl::Status ReadSamples(wire::Batch::Reader from, const DictionaryCounts& counts_after, LeafCursor leaves,
                         IncomingBatch* out) {
  const uint32_t count = from.getSampleCount();
  if (count > BatchEncoder::kSamplesPerBatchMax) {
    return Malformed(fmt::format("{} samples where {} are allowed", count, BatchEncoder::kSamplesPerBatchMax));
  }
  VarintReader times(ViewOf(from.getTimes())), threads(ViewOf(from.getThreads())), nodes(ViewOf(from.getNodes())),
      cpus(ViewOf(from.getCpus()));
  RunReader types(ViewOf(from.getTypes())), endings(ViewOf(from.getEndings())), values(ViewOf(from.getValues())),
      counts(ViewOf(from.getCounts()));
  if (count > times.remaining()) return Truncated("times");
  out->samples.reserve(count);
  int64_t time = from.getTimeBase();
  if (time < -kWireTimeMax || time > kWireTimeMax) return Malformed("time out of range");
  for (uint32_t i = 0; i < count; ++i) {
    uint64_t difference = 0, thread = 0, node = 0, cpu = 0, type = 0, ending = 0, value = 0, repeats = 0;
    if (!times.Read(&difference)) return Truncated("times");
    if (!threads.Read(&thread)) return Truncated("threads");
    if (!nodes.Read(&node)) return Truncated("nodes");
    if (!cpus.Read(&cpu)) return Truncated("cpus");
    if (!types.Read(&type)) return Truncated("types");
    if (!endings.Read(&ending)) return Truncated("endings");
    if (!values.Read(&value)) return Truncated("values");
    if (!counts.Read(&repeats)) return Truncated("counts");
    if (difference > static_cast<uint64_t>(kWireTimeMax - time)) return Malformed("time out of range");
    time += static_cast<int64_t>(difference);
    if (thread >= counts_after.threads) return BadReference("thread", thread);
    if (node == 0 ? leaves.next() == 0 : node > counts_after.nodes) return BadReference("node", node);
    if (cpu > UINT16_MAX || type > UINT8_MAX || repeats > UINT32_MAX) return Malformed("sample field out of range");
    const uint32_t node_id = node == 0 ? leaves.next() : static_cast<uint32_t>(counts_after.nodes - node);
    leaves.Name(node_id);
    if (type == 0 || type > kSampleTypeMax) ++out->unknown_values;
    if (ending >= kEndingCount) {
      ++out->unknown_values;
      ending = static_cast<uint64_t>(Ending::kUnknown);
    }
    out->samples.push_back(Sample{.time = MonotonicNs{time * kWireTimeUnitNs},
                                  .thread = ThreadRef{static_cast<uint32_t>(thread)},
                                  .node = NodeRef{node_id},
                                  .type = static_cast<SampleType>(type),
                                  .ending = static_cast<Ending>(ending),
                                  .cpu = static_cast<uint16_t>(cpu),
                                  .count = static_cast<uint32_t>(repeats),
                                  .value = value});
  }
  if (!times.AtEnd() || !threads.AtEnd() || !nodes.AtEnd() || !cpus.AtEnd() || !types.AtEnd() || !endings.AtEnd() ||
      !values.AtEnd() || !counts.AtEnd()) {
    return Malformed("sample columns are not of one length");
  }
  return absl::OkStatus();
}

absl::Status ReadAccounting(wire::Batch::Reader from, IncomingBatch* out) {
  out->accounting.captured = from.getCaptured();
  out->accounting.idle = from.getIdle();
  const auto lost = from.getLost();
  if (lost.size() > kLossReasonsMax) return Malformed("too many loss reasons");
  for (unsigned i = 0; i < lost.size(); ++i) {
    // A reason of a later release still counts: captured = stored + lost must hold.
    const bool known = i < kLossReasonCount;
    if (!known && lost[i] != 0) ++out->unknown_values;
    out->accounting.lost[known ? i : static_cast<unsigned>(LossReason::kBadRecord)] += lost[i];
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<uint32_t> GenerationOf(MessageType type, std::string_view payload) {
  if (type == MessageType::kDefinitions) {
    return ReadPayload<wire::Definitions, uint32_t>(payload,
                                                    [](wire::Definitions::Reader root, uint32_t* out) -> absl::Status {
                                                      *out = root.getGeneration();
                                                      return absl::OkStatus();
                                                    });
  }
  return ReadPayload<wire::Batch, uint32_t>(payload, [](wire::Batch::Reader root, uint32_t* out) -> absl::Status {
    *out = root.getDefinitions().getGeneration();
    return absl::OkStatus();
  });
}

absl::StatusOr<IncomingBatch> BatchDecoder::Decode(MessageType type, uint64_t sequence, std::string_view payload) {
  DictionaryCounts after;
  auto read_definitions = [&](wire::Definitions::Reader from, IncomingBatch* out,
                              std::vector<uint32_t>* leaves) -> absl::Status {
    out->generation = from.getGeneration();
    out->before = ReadCounts(from.getBefore());
    if (out->generation != generation_) {
      return Error(absl::StatusCode::kFailedPrecondition,
                   fmt::format("dictionary generation {} where {} is held", out->generation, generation_));
    }
    if (out->before != have_) {
      return Error(absl::StatusCode::kFailedPrecondition, "definitions do not continue what is held");
    }
    DefinitionReader reader(from, have_, limits_, out);
    RETURN_IF_ERROR(reader.Read());
    after = reader.after();
    *leaves = reader.TakeLeaves();
    return absl::OkStatus();
  };

  std::vector<uint32_t> leaves;
  absl::StatusOr<IncomingBatch> batch = Malformed("neither definitions nor a batch");
  if (type == MessageType::kDefinitions) {
    batch = ReadPayload<wire::Definitions, IncomingBatch>(
        payload,
        [&](wire::Definitions::Reader root, IncomingBatch* out) { return read_definitions(root, out, &leaves); });
  } else if (type == MessageType::kBatch) {
    batch = ReadPayload<wire::Batch, IncomingBatch>(
        payload, [&](wire::Batch::Reader root, IncomingBatch* out) -> absl::Status {
          out->sequence = sequence;
          RETURN_IF_ERROR(read_definitions(root.getDefinitions(), out, &leaves));
          out->clock = ReadClock(root.getClock());
          out->nodes_hash = root.getNodesHash();
          RETURN_IF_ERROR(ReadAccounting(root, out));
          RETURN_IF_ERROR(ReadCloses(root, out));
          return ReadSamples(root, after, LeafCursor(std::move(leaves)), out);
        });
  }
  if (!batch.ok()) return batch;
  std::optional<uint64_t> hash = nodes_hash_;
  if (hash.has_value()) {
    for (const Node& node : batch->definitions.nodes) hash = Dictionary::RollHash(*hash, node);
  }
  if (type == MessageType::kBatch) {
    if (hash.has_value() && *hash != batch->nodes_hash) {
      return Error(absl::StatusCode::kFailedPrecondition, "the two ends' nodes differ");
    }
    hash = batch->nodes_hash;
  }
  nodes_hash_ = hash;
  have_ = after;
  return batch;
}

}  // namespace tributary::intake
