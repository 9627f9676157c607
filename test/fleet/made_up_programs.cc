#include "test/fleet/made_up_programs.h"

#include <fmt/format.h>

#include <array>

#include "symbols/symbol_builder.h"
#include "symbols/symbol_codec.h"

namespace tributary {
namespace {

constexpr uint64_t kPeriodNs = 10'000'000;
constexpr std::array<std::string_view, kMadeUpFileCount> kPaths = {"/usr/lib/libmade.so.1", "/usr/bin/web",
                                                                   "/usr/bin/database"};
constexpr std::array<std::string_view, kMadeUpFileCount> kFunctionPrefixes = {"libmade_f", "web_f", "database_f"};

}  // namespace

ExecutableId IdOf(MadeUpFile file) {
  return *ExecutableId::Make(ExecutableIdKind::kGnuBuildId,
                             std::string(20, static_cast<char>('a' + static_cast<int>(file))));
}

std::string_view PathOf(MadeUpFile file) { return kPaths[static_cast<size_t>(file)]; }

std::string TableOf(const ExecutableId& id, std::string_view prefix, uint64_t functions) {
  const auto file = static_cast<size_t>(id.view().front() - 'a');
  SymbolTableBuilder builder;
  for (uint64_t i = 0; i < functions; ++i) {
    builder.AddFunction({i * kFunctionBytes, kFunctionBytes, fmt::format("{}{}{}", prefix, kFunctionPrefixes[file], i)},
                        SymbolTableBuilder::Layer::kSymbols);
  }
  return EncodeSymbolTable(*builder.Build(id, SymbolSource::kSymtab));
}

MadeUpPrograms::MadeUpPrograms(uint32_t node, UnixNs begin, int64_t batch_ns)
    : node_(node), batch_ns_(batch_ns), now_{MonotonicNs{1'000 * kNsPerSecond}, begin}, random_(node) {}

Batch MadeUpPrograms::Next() {
  Batch batch;
  for (int i = 0; i < kSamplesPerBatch; ++i) {
    const MonotonicNs time{now_.monotonic.value + i * (batch_ns_ / kSamplesPerBatch)};
    batch.samples.push_back(NextSample(time, i == 0 && node_ % 25 == 0));
  }
  AddEvents(batch);
  now_.monotonic.value += batch_ns_;
  now_.unix.value += batch_ns_;
  batch.clock = now_;
  accounting_.captured += CountRecords(batch);
  batch.accounting = accounting_;
  batch.dictionary = dictionary_;
  ++batches_;
  return batch;
}

ThreadRef MadeUpPrograms::Intern(MadeUpFile file, int32_t pid) {
  Dictionary& d = *dictionary_;
  Process process;
  process.key = {Pid{pid}, int64_t{pid} * kNsPerSecond, 1};
  process.parent = Pid{1};
  process.comm = d.InternString(fmt::format("{}-{}", file == MadeUpFile::kWeb ? "web" : "database", node_));
  process.executable = d.InternExecutable(IdOf(file), PathOf(file));
  process.executable_path = d.InternString(PathOf(file));
  process.cgroup_path = d.InternString("/system.slice/made-up.service");
  return d.InternThread({d.InternProcess(process), Tid{pid}, process.comm});
}

NodeRef MadeUpPrograms::Push(NodeRef parent, MadeUpFile file, uint64_t function, bool is_caller) {
  Frame frame;
  frame.kind = FrameKind::kNative;
  frame.is_caller = is_caller;
  frame.executable = dictionary_->InternExecutable(IdOf(file), PathOf(file));
  frame.address = function % kFunctionsPerFile * kFunctionBytes + (is_caller ? 9 : 4);
  return dictionary_->InternNode({parent, dictionary_->InternFrame(frame)});
}

Sample MadeUpPrograms::NextSample(MonotonicNs time, bool deep) {
  const MadeUpFile file = Below(3) < 2 ? MadeUpFile::kWeb : MadeUpFile::kDatabase;
  Sample sample;
  sample.time = time;
  sample.thread = Intern(file, static_cast<int32_t>(100 + batches_ / 2 * 10 + static_cast<uint64_t>(file)));
  const uint64_t depth = deep ? kDeepStack : 4 + Below(10);
  NodeRef node;
  for (uint64_t i = 0; i < depth; ++i) {
    const bool is_caller = i + 1 < depth;
    const MadeUpFile of = is_caller && i % 4 != 3 ? file : MadeUpFile::kLibrary;
    // The outermost frames name node and batch. So stacks of other nodes and of earlier batches have other nodes.
    const uint64_t function = i == 0 ? node_ : i == 1 ? node_ / kFunctionsPerFile : i == 2 ? batches_ : Below(3) + i;
    node = Push(node, of, function, is_caller);
  }
  sample.node = node;
  sample.ending = Ending::kComplete;
  sample.value = kPeriodNs;
  return sample;
}

// A tool starts and exits.
void MadeUpPrograms::AddEvents(Batch& batch) {
  ProcessEvent event;
  event.time = MonotonicNs{now_.monotonic.value + kNsPerSecond};
  event.pid = Pid{static_cast<int32_t>(10'000 + batches_)};
  event.parent = Pid{1};
  event.start_time_ns = event.time.value;
  event.name = dictionary_->InternString("tool");
  event.executable_path = dictionary_->InternString("/usr/bin/tool");
  batch.events.push_back(event);
  event.kind = ProcessEventKind::kExit;
  event.time.value += 20 * kNsPerMs;
  event.end = {.exit_code = 3, .run_ns = 20'000'000, .user_ns = 9'000'000, .peak_rss_bytes = 3u << 20};
  batch.events.push_back(event);
}

}  // namespace tributary
