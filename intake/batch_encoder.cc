#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "intake/batch_codec.h"
#include "intake/columns.h"
#include "intake/wire.h"

namespace tributary::intake {
namespace {

// Column bytes of one kDefinitions message; leaves room for the longest string and the message's own structure.
constexpr size_t kDefinitionBytesMax = 3u << 20;
// More than a sample can take in its columns (docs/intake-protocol.md), and the rest of a message.
constexpr size_t kSampleBytesMax = 40;
constexpr size_t kMessageBytesMax = 64u << 10;
static_assert(BatchEncoder::kSamplesPerBatchMax * kSampleBytesMax + kMessageBytesMax <= kPayloadBytesMax);

int64_t ToWireTime(MonotonicNs time) {
  int64_t units = time.value / kWireTimeUnitNs;
  const int64_t rest = time.value % kWireTimeUnitNs;
  if (rest >= kWireTimeUnitNs / 2) ++units;
  if (rest < -kWireTimeUnitNs / 2) --units;
  return std::clamp(units, -kWireTimeMax, kWireTimeMax);
}

// One message's definitions, from `before` up to `after`.
class DefinitionColumns {
 public:
  DefinitionColumns(const Dictionary& dictionary, const DictionaryCounts& before)
      : dictionary_(dictionary), before_(before), after_(before), next_new_frame_(before.frames) {}

  // Adds what there is, in the order in which a reader takes it, until the message is full. True when nothing is left.
  bool Fill() {
    return FillTable(dictionary_.string_count(), &after_.strings, [this](uint32_t i) { AddString(i); }) &&
           FillTable(dictionary_.executable_count(), &after_.executables, [this](uint32_t i) { AddExecutable(i); }) &&
           FillTable(dictionary_.frame_count(), &after_.frames, [this](uint32_t i) { AddFrame(i); }) &&
           FillTable(dictionary_.node_count(), &after_.nodes, [this](uint32_t i) { AddNode(i); }) &&
           FillTable(dictionary_.process_count(), &after_.processes, [this](uint32_t i) { AddProcess(i); }) &&
           FillTable(dictionary_.thread_count(), &after_.threads, [this](uint32_t i) { AddThread(i); });
  }

  const DictionaryCounts& after() const { return after_; }
  size_t bytes() const {
    return string_lengths_.size() + string_bytes_.size() + executables_.size() + frame_kinds_.size() +
           frame_executables_.size() + frame_addresses_.size() + chain_attach_.size() + 5 * chain_leaves_.size() +
           node_frames_.size() + processes_.size() + threads_.size();
  }
  const std::vector<uint32_t>& chain_leaves() const { return chain_leaves_; }

  void Write(uint32_t generation, wire::Definitions::Builder to) const {
    to.setGeneration(generation);
    WriteCounts(to.initBefore(), before_);
    to.setStringCount(after_.strings - before_.strings);
    to.setStringLengths(DataOf(string_lengths_));
    to.setStringBytes(DataOf(string_bytes_));
    to.setExecutableCount(after_.executables - before_.executables);
    to.setExecutables(DataOf(executables_));
    to.setFrameCount(after_.frames - before_.frames);
    to.setFrameKinds(DataOf(frame_kinds_));
    to.setFrameExecutables(DataOf(frame_executables_));
    to.setFrameAddresses(DataOf(frame_addresses_));
    to.setNodeCount(after_.nodes - before_.nodes);
    to.setChainAttach(DataOf(chain_attach_));
    std::string lengths;
    for (uint32_t first = before_.nodes; uint32_t leaf : chain_leaves_) {
      AppendVarint(lengths, leaf + 1 - first);
      first = leaf + 1;
    }
    to.setChainLengths(DataOf(lengths));
    to.setNodeFrames(DataOf(node_frames_));
    to.setProcessCount(after_.processes - before_.processes);
    to.setProcesses(DataOf(processes_));
    to.setThreadCount(after_.threads - before_.threads);
    to.setThreads(DataOf(threads_));
  }

 private:
  template <typename Add>
  bool FillTable(uint32_t end, uint32_t* next, Add&& add) {
    for (; *next < end; ++*next) {
      if (bytes() >= kDefinitionBytesMax) return false;
      add(*next);
    }
    return true;
  }

  void AddString(uint32_t i) {
    const std::string_view text = dictionary_.string(StringRef{i});
    AppendVarint(string_lengths_, text.size());
    string_bytes_.append(text);
  }
  void AddExecutable(uint32_t i) {
    const Executable& executable = dictionary_.executable(ExecutableRef{i});
    AppendVarint(executables_, static_cast<uint64_t>(executable.id.kind()));
    AppendVarint(executables_, executable.id.bytes().size());
    executables_.append(executable.id.view());
    AppendVarint(executables_, executable.path.value);
  }
  void AddFrame(uint32_t i) {
    const tributary::Frame& frame = dictionary_.frame(FrameRef{i});
    frame_kinds_.push_back(static_cast<char>(static_cast<uint8_t>(frame.kind) << 1 | (frame.is_caller ? 1 : 0)));
    AppendVarint(frame_executables_, frame.executable.value);
    uint64_t& last = last_address_[frame.executable.value];
    AppendSignedVarint(frame_addresses_, static_cast<int64_t>(frame.address - last));
    last = frame.address;
  }
  void AddNode(uint32_t i) {
    const Node node = dictionary_.node(NodeRef{i});
    if (chain_leaves_.empty() || node.parent.value != i - 1) {
      AppendVarint(chain_attach_, i - node.parent.value);
      chain_leaves_.push_back(i);
    } else {
      chain_leaves_.back() = i;
    }
    if (node.frame.value == next_new_frame_) {
      AppendVarint(node_frames_, 0);
      ++next_new_frame_;
    } else {
      AppendVarint(node_frames_, uint64_t{node.frame.value} + 1);
    }
  }
  void AddProcess(uint32_t i) {
    const Process& process = dictionary_.process(ProcessRef{i});
    AppendSignedVarint(processes_, process.key.pid.value);
    AppendSignedVarint(processes_, process.key.start_time_ns);
    AppendVarint(processes_, process.key.exec_sequence);
    AppendSignedVarint(processes_, process.parent.value);
    AppendVarint(processes_, process.comm.value);
    AppendVarint(processes_, process.executable.value);
    AppendVarint(processes_, process.executable_path.value);
    AppendVarint(processes_, process.container_id.value);
    AppendVarint(processes_, process.cgroup_path.value);
  }
  void AddThread(uint32_t i) {
    const Thread& thread = dictionary_.thread(ThreadRef{i});
    AppendVarint(threads_, thread.process.value);
    AppendSignedVarint(threads_, thread.tid.value);
    AppendVarint(threads_, thread.name.value);
  }

  const Dictionary& dictionary_;
  const DictionaryCounts before_;
  DictionaryCounts after_;
  uint32_t next_new_frame_;
  absl::flat_hash_map<uint32_t, uint64_t> last_address_;  // by executable
  std::vector<uint32_t> chain_leaves_;
  std::string string_lengths_, string_bytes_, executables_, frame_kinds_, frame_executables_, frame_addresses_,
      chain_attach_, node_frames_, processes_, threads_;
};

void WriteSamples(const std::vector<Sample>& samples, uint32_t newest_node, LeafCursor leaves,
                  wire::Batch::Builder to) {
  to.setSampleCount(static_cast<uint32_t>(samples.size()));
  if (samples.empty()) return;
  std::string times, threads, nodes, cpus;
  RunWriter types, endings, values, counts;
  int64_t last = ToWireTime(samples.front().time);
  to.setTimeBase(last);
  for (const Sample& sample : samples) {
    const int64_t time = ToWireTime(sample.time);
    AppendVarint(times, static_cast<uint64_t>(time - last));
    last = time;
    AppendVarint(threads, sample.thread.value);
    const uint32_t node = sample.node.value;
    AppendVarint(nodes, node != 0 && node == leaves.next() ? 0 : uint64_t{1} + newest_node - node);
    leaves.Name(node);
    AppendVarint(cpus, sample.cpu);
    types.Add(static_cast<uint64_t>(sample.type));
    endings.Add(static_cast<uint64_t>(sample.ending));
    values.Add(sample.value);
    counts.Add(sample.count);
  }
  to.setTimes(DataOf(times));
  to.setThreads(DataOf(threads));
  to.setNodes(DataOf(nodes));
  to.setCpus(DataOf(cpus));
  to.setTypes(DataOf(std::move(types).Take()));
  to.setEndings(DataOf(std::move(endings).Take()));
  to.setValues(DataOf(std::move(values).Take()));
  to.setCounts(DataOf(std::move(counts).Take()));
}

std::string EncodeDefinitions(uint32_t generation, const DefinitionColumns& columns) {
  capnp::MallocMessageBuilder message(static_cast<unsigned>(columns.bytes() / sizeof(capnp::word)) + 128);
  columns.Write(generation, message.initRoot<wire::Definitions>());
  return EncodeFrame(MessageType::kDefinitions, kChannelSamples, 0, ToPayload(message));
}

std::string EncodeSamples(uint32_t generation, const DefinitionColumns& columns, const Batch& batch) {
  capnp::MallocMessageBuilder message(
      static_cast<unsigned>((columns.bytes() + 12 * batch.samples.size()) / sizeof(capnp::word)) + 128);
  auto root = message.initRoot<wire::Batch>();
  columns.Write(generation, root.initDefinitions());
  WriteClock(root.initClock(), batch.clock);
  root.setCaptured(batch.accounting.captured);
  root.setIdle(batch.accounting.idle);
  auto lost = root.initLost(kLossReasonCount);
  for (unsigned i = 0; i < kLossReasonCount; ++i) lost.set(i, batch.accounting.lost[i]);
  root.setNodesHash(batch.dictionary->rolling_hash());
  WriteCloses(batch.closes, root);
  const uint32_t newest_node = columns.after().nodes - 1;
  auto by_time = [](const Sample& a, const Sample& b) { return a.time < b.time; };
  if (std::is_sorted(batch.samples.begin(), batch.samples.end(), by_time)) {
    WriteSamples(batch.samples, newest_node, LeafCursor(columns.chain_leaves()), root);
  } else {
    std::vector<Sample> sorted = batch.samples;
    std::stable_sort(sorted.begin(), sorted.end(), by_time);
    WriteSamples(sorted, newest_node, LeafCursor(columns.chain_leaves()), root);
  }
  return EncodeFrame(MessageType::kBatch, kChannelSamples, batch.sequence, ToPayload(message));
}

}  // namespace

MonotonicNs RoundToWire(MonotonicNs time) { return MonotonicNs{ToWireTime(time) * kWireTimeUnitNs}; }

std::vector<std::string> BatchEncoder::Encode(const Batch& batch) {
  TRIBUTARY_CHECK(batch.samples.size() <= kSamplesPerBatchMax && batch.closes.size() <= kClosedSessionsMax);
  std::vector<std::string> frames;
  while (true) {
    DefinitionColumns columns(*batch.dictionary, sent_);
    const bool complete = columns.Fill();
    sent_ = columns.after();
    const size_t bytes = columns.bytes() + batch.samples.size() * kSampleBytesMax + kMessageBytesMax;
    if (complete && (columns.bytes() == 0 || bytes <= kPayloadBytesMax)) {
      frames.push_back(EncodeSamples(generation_, columns, batch));
      return frames;
    }
    frames.push_back(EncodeDefinitions(generation_, columns));
  }
}

}  // namespace tributary::intake
