#include "test/fleet/hostile_kinds.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <limits>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "profile/dictionary.h"
#include "test/fleet/made_up_programs.h"

namespace tributary {
namespace {

constexpr MonotonicNs kNow{40 * kNsPerDay};
constexpr uint32_t kNodesMax = 131'071;
constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

Batch BatchAt(int64_t offset_ns, std::shared_ptr<const Dictionary> dictionary) {
  Batch batch;
  batch.clock = {kNow, UnixNs{Clock::Real().Pair().unix.value + offset_ns}};
  batch.dictionary = std::move(dictionary);
  return batch;
}

ThreadRef InternThread(Dictionary& d, int32_t pid, std::string_view text) {
  Process process;
  process.key = {Pid{pid}, int64_t{pid} * kNsPerMs, 1};
  process.comm = d.InternString(text.substr(0, 15));
  process.executable_path = d.InternString(text);
  return d.InternThread({d.InternProcess(process), Tid{pid}, process.comm});
}

void AddSample(Batch& batch, ThreadRef thread, NodeRef node) {
  batch.samples.push_back(
      {.time = kNow, .thread = thread, .node = node, .ending = Ending::kComplete, .value = 10'000'000});
}

// Interns chains of `depth` nodes until the dictionary is full. Returns the leaves.
std::vector<NodeRef> InternChains(Dictionary& d, uint64_t address, uint32_t depth) {
  std::vector<NodeRef> leaves;
  const ExecutableRef executable = d.InternExecutable(IdOf(MadeUpFile::kLibrary), PathOf(MadeUpFile::kLibrary));
  const FrameRef frame = d.InternFrame({FrameKind::kNative, true, executable, address});
  while (d.node_count() + depth <= kNodesMax + 1) {
    const FrameRef outermost = d.InternFrame({FrameKind::kNative, true, executable, address + 1 + leaves.size()});
    NodeRef node = d.InternNode({NodeRef{}, outermost});
    for (uint32_t i = 1; i < depth; ++i) node = d.InternNode({node, frame});
    leaves.push_back(node);
  }
  return leaves;
}

// Each sample has a new process, two new strings of 4 KB, and a new stack. Such strings are a few bytes on the wire.
Batch History(uint64_t number) {
  constexpr uint64_t kSamples = 250, kStringBytes = 4'000;
  auto d = std::make_shared<Dictionary>();
  Batch batch = BatchAt(0, d);
  for (uint64_t i = 0; i < kSamples; ++i) {
    const uint64_t id = number * kSamples + i;
    const ThreadRef thread =
        InternThread(*d, static_cast<int32_t>(1'000 + id), fmt::format("{:015}{}", id, std::string(kStringBytes, 'x')));
    Frame named;
    named.kind = FrameKind::kGo;
    named.name = d->InternString(fmt::format("f{:015}{}", id, std::string(500, 'y')));
    NodeRef node;
    for (uint32_t line = 0; line < 20; ++line) {
      named.position = line;
      node = d->InternNode({node, d->InternFrame(named)});
    }
    AddSample(batch, thread, node);
  }
  return batch;
}

// Each batch has as many new nodes as a dictionary may have.
Batch Chains(uint64_t number, uint32_t depth) {
  auto d = std::make_shared<Dictionary>();
  Batch batch = BatchAt(0, d);
  const ThreadRef thread = InternThread(*d, 7, "chains");
  for (const NodeRef leaf : InternChains(*d, 0x10'0000 + number * 0x1000, depth)) AddSample(batch, thread, leaf);
  return batch;
}

// The dictionary is always the same, and each batch sends it again as a new generation: 131,000 nodes in few
// bytes. No sample uses them.
Batch Definitions(uint64_t) {
  static const std::shared_ptr<Dictionary> dictionary = [] {
    auto d = std::make_shared<Dictionary>();
    InternChains(*d, 0x1000, 1'000);
    return d;
  }();
  return BatchAt(0, dictionary);
}

// The clock is 30 days behind, an hour ahead, and then each day of the last month in turn. Each batch has new
// processes.
Batch Clocks(uint64_t number) {
  constexpr int32_t kProcesses = 20;
  auto d = std::make_shared<Dictionary>();
  const int64_t offset_ns = number % 3 == 0   ? -30 * kNsPerDay
                            : number % 3 == 1 ? 59 * kNsPerMinute
                                              : -static_cast<int64_t>(number / 3 % 30) * kNsPerDay;
  Batch batch = BatchAt(offset_ns, d);
  const NodeRef leaf = InternChains(*d, 0x20'0000 + number * 0x1000, 100).front();
  for (int32_t i = 0; i < kProcesses; ++i) {
    const auto pid = static_cast<int32_t>(1'000 + number * kProcesses + static_cast<uint64_t>(i));
    AddSample(batch, InternThread(*d, pid, fmt::format("clock-{}", pid)), leaf);
  }
  return batch;
}

// Samples in the files that all nodes have.
Batch SharedFiles(uint64_t number) {
  auto d = std::make_shared<Dictionary>();
  Batch batch = BatchAt(0, d);
  const ThreadRef thread = InternThread(*d, 7, "symbols");
  for (const MadeUpFile file : {MadeUpFile::kLibrary, MadeUpFile::kWeb}) {
    const ExecutableRef executable = d->InternExecutable(IdOf(file), PathOf(file));
    const FrameRef frame = d->InternFrame({FrameKind::kNative, false, executable, 4 + number % 8});
    AddSample(batch, thread, d->InternNode({NodeRef{}, frame}));
  }
  return batch;
}

// As many executables as a dictionary may have.
Batch Executables(uint64_t number) {
  constexpr uint64_t kExecutables = 16'383;
  auto d = std::make_shared<Dictionary>();
  Batch batch = BatchAt(0, d);
  const ThreadRef thread = InternThread(*d, 7, "memory");
  NodeRef node;
  for (uint64_t i = 0; i < kExecutables; ++i) {
    const std::string id = fmt::format("{:020}", number * kExecutables + i);
    const ExecutableRef executable = d->InternExecutable(*ExecutableId::Make(ExecutableIdKind::kGnuBuildId, id), "/x");
    const FrameRef frame = d->InternFrame({FrameKind::kNative, true, executable, 4});
    if (i < 1'000) node = d->InternNode({node, frame});
  }
  AddSample(batch, thread, node);
  return batch;
}

const std::vector<HostileKind>& Kinds() {
  static const std::vector<HostileKind> kinds = {
      {.name = "history", .next = History, .batches_done = 40, .batches_max = 80},
      {.name = "deep-trie",
       .next = [](uint64_t number) { return Chains(number, kNodesMax); },
       .batches_done = 66,
       .batches_max = 100,
       .window = 4},
      {.name = "wide-trie",
       .next = [](uint64_t number) { return Chains(number, 1'000); },
       .batches_done = 66,
       .batches_max = 100,
       .window = 4},
      {.name = "event-loop",
       .next = Definitions,
       .batches_done = kUnlimited,
       .batches_max = kUnlimited,
       .connections = 4,
       .window = 32,
       .generation_each = true},
      {.name = "clocks", .next = Clocks, .batches_done = 180, .batches_max = 1'000},
      {.name = "symbols",
       .next = SharedFiles,
       .symbols =
           [](const ExecutableId& id) { return PackedTable::Of(TableOf(id, "hostile_", 2 * kFunctionsPerFile)); },
       .unasked = {IdOf(MadeUpFile::kDatabase)},
       .batches_done = 20,
       .batches_max = 1'000,
       .window = 1},
      {.name = "memory",
       .next = Executables,
       .batches_done = 150,
       .batches_max = 300,
       .connections = 4,
       .session_each = true},
  };
  return kinds;
}

}  // namespace

absl::StatusOr<HostileKind> FindHostileKind(std::string_view name) {
  for (const HostileKind& kind : Kinds()) {
    if (kind.name == name) return kind;
  }
  return Error(absl::StatusCode::kInvalidArgument, fmt::format("there is no kind of hostile node \"{}\"", name));
}

}  // namespace tributary
