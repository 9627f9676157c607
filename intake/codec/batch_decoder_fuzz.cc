#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "intake/codec/batch_decoder.h"
#include "intake/codec/columns.h"
#include "intake/codec/event_columns.h"
#include "intake/testing/message_mutator_testing.h"
#include "intake/wire/wire.h"

// Tests a decoder with the messages of a connection, one after the other: definitions, batches, evictions, undone and
// truncated messages. Next to the decoder it keeps a plain list of nodes, and computes the sum over all nodes from this
// list. A batch with a wrong sum would not be read, so the sum is corrected first. An input is a list of steps. Each
// step is a byte for the action (its high bit leaves the sum as it is), a length of two bytes, and that many bytes.

namespace {

using namespace tributary;
using namespace tributary::intake;

struct Step {
  enum Kind : uint8_t { kBatch, kDefinitions, kUndo, kTruncate, kUnpack, kKinds };
  uint8_t code = 0;
  std::string bytes;
  Kind kind() const { return static_cast<Kind>((code & 0x7f) % kKinds); }
};

std::vector<Step> StepsOf(std::string_view input) {
  std::vector<Step> steps;
  while (input.size() >= 3) {
    const size_t size =
        std::min<size_t>(static_cast<uint8_t>(input[1]) | static_cast<uint8_t>(input[2]) << 8, input.size() - 3);
    steps.push_back({static_cast<uint8_t>(input[0]), std::string(input.substr(3, size))});
    input.remove_prefix(3 + size);
  }
  return steps;
}

std::string InputOf(const std::vector<Step>& steps) {
  std::string input;
  for (const Step& step : steps) {
    const std::string_view bytes = std::string_view(step.bytes).substr(0, UINT16_MAX);
    input.push_back(static_cast<char>(step.code));
    input.push_back(static_cast<char>(bytes.size()));
    input.push_back(static_cast<char>(bytes.size() >> 8));
    input += bytes;
  }
  return input;
}

// A batch that a decoder accepts refers only to defined ids.
void CheckBatch(const IncomingBatch& batch, const DictionaryCounts& after) {
  uint32_t next = batch.before.nodes;
  for (const Node& node : batch.definitions.nodes) {
    if (node.parent.value >= next++ || node.frame.value >= after.frames) abort();
  }
  if (next != after.nodes) abort();
  for (const tributary::Frame& frame : batch.definitions.frames) {
    if (!after.Define(frame)) abort();
  }
  for (const Process& process : batch.definitions.processes) {
    if (!after.Define(process)) abort();
  }
  for (const Thread& thread : batch.definitions.threads) {
    if (!after.Define(thread)) abort();
  }
  for (const Sample& sample : batch.samples) {
    if (sample.node.value >= after.nodes || sample.thread.value >= after.threads) abort();
    if (sample.attributes.value >= after.strings) abort();
    if (static_cast<uint8_t>(sample.ending) >= kEndingCount) abort();
#ifdef TRIBUTARY_PLANT_CRASH
    // Only a batch that continues an evicted dictionary, with the right sum and whole columns, reaches this line.
    if (batch.derived && batch.accounting.captured > 1'000'000) abort();
#endif
  }
}

void CheckEvents(const IncomingBatch& batch, const DictionaryCounts& after) {
  if (batch.events.size() > kProcessEventsPerBatchMax) abort();
  int64_t last = INT64_MIN;
  for (const ProcessEvent& event : batch.events) {
    ForEachString(event, [&after](StringRef ref) {
      if (ref.value >= after.strings) abort();
    });
    const auto kind = static_cast<uint8_t>(event.kind);
    if (kind == 0 || kind > kProcessEventKindMax || event.events == 0 || event.processes == 0) abort();
    if (event.kind != ProcessEventKind::kSum && event.events != 1) abort();
    if (event.time.value < last) abort();
    last = event.time.value;
#ifdef TRIBUTARY_PLANT_CRASH
    if (event.kind == ProcessEventKind::kSum && event.processes > 1'000'000) abort();
#endif
  }
}

class Connection {
 public:
  void Take(const Step& step) {
    switch (step.kind()) {
      case Step::kBatch:
        return Decode(MessageType::kBatch, (step.code & 0x80) != 0 ? step.bytes : WithSum(step.bytes));
      case Step::kDefinitions:
        return Decode(MessageType::kDefinitions, step.bytes);
      case Step::kUndo:
        return Undo();
      case Step::kTruncate:
        return Truncate(step.bytes.empty() ? 0 : static_cast<uint8_t>(step.bytes[0]));
      default:
        Unpack(kSamplePackings, step.bytes);
        Unpack(kDefinitionPackings, step.bytes);
        Unpack(kEventPackings, step.bytes);
    }
  }

 private:
  struct State {
    std::vector<Node> nodes{Node{}};
    std::vector<DictionaryCounts> positions{{}};  // of this generation, each after one message
  };

  static State After(State state, const IncomingBatch& batch, const DictionaryCounts& have) {
    if (batch.derived) {
      const std::vector<uint32_t> nodes = batch.derived->eviction.nodes.NewIds(),
                                  frames = batch.derived->eviction.frames.NewIds();
      State kept;
      for (size_t i = 1; i < state.nodes.size(); ++i) {
        if (nodes.at(i) == 0) continue;
        const Node node = state.nodes[i];
        kept.nodes.push_back({NodeRef{nodes.at(node.parent.value)}, FrameRef{frames.at(node.frame.value)}});
      }
      kept.positions = {batch.before};
      state = std::move(kept);
    }
    state.nodes.insert(state.nodes.end(), batch.definitions.nodes.begin(), batch.definitions.nodes.end());
    state.positions.push_back(have);
    return state;
  }

  static uint64_t Sum(const std::vector<Node>& nodes) {
    uint64_t hash = 0;
    for (size_t i = 1; i < nodes.size(); ++i) hash = Dictionary::RollHash(hash, nodes[i]);
    return hash;
  }

  // Does what a session does before it decodes.
  bool Select(MessageType type, std::string_view payload) {
    const auto info = GenerationOf(type, payload);
    if (!info.ok()) return false;
    const bool continues = info->derived_from != 0 && info->derived_from == decoder_.generation();
    if (info->generation == decoder_.generation() || continues) return true;
    decoder_ = BatchDecoder(info->generation);
    state_ = State();
    undoable_ = false;
    return true;
  }

  void Decode(MessageType type, std::string_view payload) {
    if (!Select(type, payload)) return;
    const DictionaryCounts have = decoder_.have();
    const uint32_t generation = decoder_.generation();
    const auto batch = decoder_.Decode(type, 1, payload);
    if (!batch.ok()) {
      if (decoder_.have() != have || decoder_.generation() != generation) abort();
      undoable_ = false;
      return;
    }
    CheckBatch(*batch, decoder_.have());
    CheckEvents(*batch, decoder_.have());
    before_ = state_;
    generation_before_ = generation;
    undoable_ = true;
    state_ = After(std::move(state_), *batch, decoder_.have());
    if (state_.nodes.size() != decoder_.have().nodes) abort();
    if (type == MessageType::kBatch && batch->nodes_hash != Sum(state_.nodes)) abort();
  }

  void Undo() {
    decoder_.Undo();
    if (!undoable_) return;
    undoable_ = false;
    state_ = std::move(before_);
    if (decoder_.generation() != generation_before_ || decoder_.have() != state_.positions.back()) abort();
  }

  // Truncates to a position where the store may have been: after one of the messages.
  void Truncate(size_t index) {
    index %= state_.positions.size();
    if (!decoder_.Truncate(state_.positions[index]) || decoder_.have() != state_.positions[index]) abort();
    state_.positions.resize(index + 1);
    state_.nodes.resize(decoder_.have().nodes);
    undoable_ = false;
  }

  // Returns the batch with the sum that its sender would have sent. To compute the sum, decodes the definitions alone
  // and undoes that.
  std::string WithSum(const std::string& payload) {
    if (payload.size() % sizeof(capnp::word) != 0 || !Select(MessageType::kBatch, payload)) return payload;
    kj::Array<capnp::word> words = kj::heapArray<capnp::word>(payload.size() / sizeof(capnp::word));
    std::copy(payload.begin(), payload.end(), words.asBytes().begin());
    try {
      capnp::FlatArrayMessageReader reader(words, {.traversalLimitInWords = 4 * words.size(), .nestingLimit = 8});
      const auto root = reader.getRoot<wire::Batch>();
      capnp::MallocMessageBuilder definitions, batch;
      definitions.setRoot(root.getDefinitions());
      const auto read = decoder_.Decode(MessageType::kDefinitions, 0, ToPayload(definitions));
      if (!read.ok()) return payload;
      const uint64_t sum = Sum(After(state_, *read, decoder_.have()).nodes);
      decoder_.Undo();
      if (decoder_.have() != state_.positions.back()) abort();
      batch.setRoot(root);
      batch.getRoot<wire::Batch>().setNodesHash(sum);
      return ToPayload(batch);
    } catch (const kj::Exception&) {
      return payload;
    }
  }

  // All bytes that unpack must pack again, to bytes that unpack to the same columns.
  static void Unpack(std::span<const ColumnPacking> packings, std::string_view packed) {
    UnpackedColumns columns, again;
    if (!UnpackColumns(packings, packed, UnpackedBytesMax(packed.size()), &columns) || columns.unknown != 0) return;
    columns.columns.resize(packings.size());
    size_t bytes = 0;
    for (const std::string& column : columns.columns) bytes += column.size();
    if (bytes > UnpackedBytesMax(packed.size())) abort();
    if (!UnpackColumns(packings, PackColumns(packings, columns.columns), bytes + 1, &again)) abort();
    again.columns.resize(packings.size());
    if (again.columns != columns.columns) abort();
  }

  BatchDecoder decoder_{1};
  State state_, before_;
  uint32_t generation_before_ = 0;
  bool undoable_ = false;
};

void Change(MessageMutator& mutator, std::vector<Step>& steps, size_t bytes_max) {
  const size_t at = mutator.Below(steps.size());
  Step& step = steps[at];
  const auto place = steps.begin() + static_cast<ptrdiff_t>(mutator.Below(steps.size() + 1));
  if (const uint64_t choice = mutator.Below(32); choice == 0) {
    step.code = static_cast<uint8_t>(mutator.Below(2 * Step::kKinds) | (mutator.OneIn(8) ? 0x80 : 0));
  } else if (choice == 1) {
    steps.insert(place, Step(step));
  } else if (choice == 2) {
    steps.erase(steps.begin() + static_cast<ptrdiff_t>(at));
  } else if (choice == 3) {
    steps.insert(place, Step{static_cast<uint8_t>(Step::kUndo + mutator.Below(2)), std::string(1, '\1')});
  } else if (step.kind() == Step::kBatch) {
    step.bytes = mutator.Message(MessageType::kBatch, step.bytes, bytes_max);
  } else if (step.kind() == Step::kDefinitions) {
    step.bytes = mutator.Message(MessageType::kDefinitions, step.bytes, bytes_max);
  } else {
    step.bytes = mutator.Bytes(step.bytes, bytes_max);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Connection connection;
  for (const Step& step : StepsOf({reinterpret_cast<const char*>(data), size})) connection.Take(step);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t size_max, unsigned seed) {
  MessageMutator mutator(seed);
  std::vector<Step> steps = StepsOf({reinterpret_cast<const char*>(data), size});
  if (steps.empty()) return LLVMFuzzerMutate(data, size, size_max);
  for (uint64_t i = mutator.Below(4); i < 4 && !steps.empty(); ++i) Change(mutator, steps, size_max);
  const std::string changed = InputOf(steps).substr(0, size_max);
  std::memcpy(data, changed.data(), changed.size());
  return changed.size();
}
