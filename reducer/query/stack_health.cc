#include "reducer/query/stack_health.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/status.h"
#include "reducer/metadata/labels.h"
#include "reducer/query/query_context.h"
#include "reducer/query/selection.h"

namespace tributary {
namespace {

// Maximum number of trie nodes for which the executable is remembered. Beyond this limit a path is walked again, which
// only costs time.
constexpr size_t kRememberedNodesMax = 1'000'000;
// Maximum number of pairs (executable, process) with incomplete stacks in one shard.
constexpr size_t kCulpritsMax = 1'000'000;

// Used in place of an ExecutableNo.
constexpr uint32_t kNoUserFrameNo = UINT32_MAX;

// Returns true if the walk ended in an executable that caused it. The reducer cuts the innermost frames by itself.
bool HasCulprit(Ending ending) {
  return ending != Ending::kComplete && ending != Ending::kKernelOnly && ending != Ending::kCutByQuota;
}

// Finds the executable of each path's outermost frame. This frame is user code if the path has any, because the kernel
// frames of a stack come after its user frames. Frames of an interpreted language do not count: they are not part of
// the walk, and come first if their place is not known. Holds one day's trie at a time, because samples come in order
// of their days. If frames of a language runtime are missing, the executable is that of the outermost frame of an
// interpreter, if the path has one.
class OutermostFrames {
 public:
  explicit OutermostFrames(store::StoreReader& reader) : reader_(reader) {}

  // Returns an ExecutableNo (0: unknown), or kNoUserFrameNo.
  absl::StatusOr<uint32_t> ExecutableOf(store::Day day, store::NodeNo leaf, bool is_runtime_lost) {
    if (trie_.parents.empty() || day != day_) {
      ASSIGN_OR_RETURN(trie_, reader_.LoadTrie(day));
      day_ = day;
      remembered_.clear();
    }
    // The tree ends before a damaged piece until the store has set the piece aside.
    if (leaf.value == 0 || leaf.value >= trie_.parents.size()) return kNoUserFrameNo;
    const std::pair key(leaf, is_runtime_lost);
    if (auto it = remembered_.find(key); it != remembered_.end()) return it->second;
    const store::TrieView& trie = trie_;
    store::NodeNo node = leaf, interpreter, code;
    for (;;) {
      if (node.value >= trie.parents.size() || trie.parents[node.value] >= node) return Corrupt(node);
      if (node.value >= trie.frames.size() || trie.frames[node.value] >= trie.frame_rows.size()) return Corrupt(node);
      const FrameKind kind = trie.frame_rows[trie.frames[node.value]].kind;
      if (kind == FrameKind::kInterpreter) interpreter = node;
      if (!RowOf(kind).is_interpreted) code = node;
      if (trie.parents[node.value].value == 0) break;
      node = trie.parents[node.value];
    }
    if (code.value != 0) node = code;
    if (is_runtime_lost && interpreter.value != 0) node = interpreter;
    const store::FrameRow& row = trie.frame_rows[trie.frames[node.value]];
    const FrameKindRow& kind = RowOf(row.kind);
    uint32_t executable = kind.naming == FrameNaming::kKernel ? kNoUserFrameNo
                          : !kind.has_address                 ? 0
                                                              : row.executable.value;
    if (remembered_.size() < kRememberedNodesMax) remembered_.emplace(key, executable);
    return executable;
  }

 private:
  static absl::Status Corrupt(store::NodeNo node) {
    return Error(
        absl::StatusCode::kDataLoss,
        fmt::format("the store is corrupt: stack node {} does not lead to the root of its day's tree of stacks",
                    node.value));
  }

  store::StoreReader& reader_;
  store::Day day_;
  store::TrieView trie_;
  absl::flat_hash_map<std::pair<store::NodeNo, bool>, uint32_t> remembered_;
};

// Merges shards. The maps are ordered, so that entries of equal weight have the same order in every answer.
class HealthBuilder {
 public:
  absl::Status AddShard(store::StoreReader& reader, const QueryContext& context) {
    const QueryRequest& request = context.request;
    ASSIGN_OR_RETURN(Selection selection, Selection::Make(reader, context));
    OutermostFrames outermost(reader);
    Culprits culprits;
    absl::Status scanned =
        reader.ScanSamples(request.range, selection.filter(), [&](const store::SampleColumns& columns) -> absl::Status {
          RETURN_IF_ERROR(CheckCancelled(request));
          if (!selection.Has(columns.type)) return absl::OkStatus();
          for (size_t i = 0; i < columns.times.size(); ++i) {
            if (i > 0) RETURN_IF_ERROR(CheckCancelledAt(request, i));
            if (!selection.Has(columns.processes[i], columns.threads[i], columns.times[i])) continue;
            const Ending ending = columns.endings[i];
            total_.Add(ending, columns.values[i], columns.counts[i]);
            if (!HasCulprit(ending)) continue;
            ASSIGN_OR_RETURN(uint32_t executable,
                             outermost.ExecutableOf(columns.day, columns.nodes[i], ending == Ending::kRuntimeLost));
            culprits[{executable, columns.processes[i]}].Add(ending, columns.values[i], columns.counts[i]);
          }
          if (culprits.size() > kCulpritsMax) {
            return Error(absl::StatusCode::kResourceExhausted,
                         fmt::format("stacks were cut short in more than {} pairs of executable and process: ask for a "
                                     "shorter time range or a narrower selector",
                                     kCulpritsMax));
          }
          return absl::OkStatus();
        });
    RETURN_IF_ERROR(scanned);
    return culprits.empty() ? absl::OkStatus() : Name(reader, request, culprits);
  }

  StackHealth Take(size_t executables_max) && {
    StackHealth health{.total = total_};
    for (auto& [key, found] : found_) {
      std::vector<std::pair<std::string, uint64_t>> programs(found.programs.begin(), found.programs.end());
      std::stable_sort(programs.begin(), programs.end(),
                       [](const auto& a, const auto& b) { return a.second > b.second; });
      programs.resize(std::min(programs.size(), StackHealth::kProgramsMax));
      for (auto& [program, count] : programs) found.executable.programs.push_back(std::move(program));
      health.executables.push_back(std::move(found.executable));
    }
    std::stable_sort(health.executables.begin(), health.executables.end(),
                     [](const StackHealth::Executable& a, const StackHealth::Executable& b) {
                       return std::tie(a.weights.count, a.weights.value) > std::tie(b.weights.count, b.weights.value);
                     });
    if (health.executables.size() > executables_max) {
      health.truncated_executables = health.executables.size() - executables_max;
      health.executables.resize(executables_max);
    }
    return health;
  }

 private:
  using Culprits = absl::flat_hash_map<std::pair<uint32_t, store::ProcessNo>, StackHealth::Weights>;
  struct Found {
    StackHealth::Executable executable;
    std::map<std::string, uint64_t> programs;  // samples by base name
  };

  absl::Status Name(store::StoreReader& reader, const QueryRequest& request, const Culprits& culprits) {
    ASSIGN_OR_RETURN(std::vector<store::ExecutableRow> executables, reader.Executables());
    store::ProcessSet wanted;
    for (const auto& [who, weights] : culprits) wanted.insert(who.second);
    ASSIGN_OR_RETURN(std::vector<store::ProcessRow> processes, reader.Processes(request.range, &wanted));
    absl::flat_hash_map<store::ProcessNo, std::string> programs;
    size_t looked_at = 0;
    for (const store::ProcessRow& row : processes) {
      RETURN_IF_ERROR(CheckCancelledAt(request, ++looked_at));
      programs.emplace(row.no, LabelValue(Label::kProcessExecutableName, row));
    }
    for (const auto& [who, weights] : culprits) {
      RETURN_IF_ERROR(CheckCancelledAt(request, ++looked_at));
      Found& found = FindOrAdd(who.first, executables);
      found.executable.weights.Add(weights);
      auto program = programs.find(who.second);
      if (program != programs.end() && !program->second.empty()) found.programs[program->second] += weights.count;
    }
    return absl::OkStatus();
  }

  // Executables with equal ids (or, without an id, with equal paths) are the same. The smallest base name names the
  // executable, so that the answer does not depend on the order of a hash table.
  Found& FindOrAdd(uint32_t number, const std::vector<store::ExecutableRow>& executables) {
    if (number == kNoUserFrameNo) return Named({1, ""}, std::string(StackHealth::kNoUserFrame), "");
    static const store::ExecutableRow kNone;
    const store::ExecutableRow& row = number < executables.size() ? executables[number] : kNone;
    if (!row.id.known() && row.path.empty()) return Named({0, ""}, std::string(StackHealth::kUnmapped), "");
    std::string name(BaseName(row.path));
    if (!row.id.known()) return Named({3, row.path}, std::move(name), "");
    std::string id = row.id.ToString();
    return Named({2, id}, name.empty() ? id : std::move(name), id);
  }
  Found& Named(const std::pair<int, std::string>& key, std::string name, std::string build_id) {
    auto [it, added] = found_.try_emplace(key);
    StackHealth::Executable& executable = it->second.executable;
    if (added || name < executable.name) executable.name = std::move(name);
    if (added) executable.build_id = std::move(build_id);
    return it->second;
  }

  StackHealth::Weights total_;
  std::map<std::pair<int, std::string>, Found> found_;  // key: the cases in FindOrAdd, and the id or path
};

}  // namespace

void StackHealth::Weights::Add(Ending ending, uint64_t v, uint64_t c) {
  const auto i = static_cast<size_t>(ending) < kEndingCount ? static_cast<size_t>(ending) : size_t{0};
  value += v;
  count += c;
  ending_values[i] += v;
  ending_counts[i] += c;
}

void StackHealth::Weights::Add(const Weights& other) {
  value += other.value;
  count += other.count;
  for (size_t i = 0; i < kEndingCount; ++i) {
    ending_values[i] += other.ending_values[i];
    ending_counts[i] += other.ending_counts[i];
  }
}

absl::StatusOr<StackHealth> MakeStackHealth(const QueryContext& context, size_t executables_max) {
  HealthBuilder builder;
  RETURN_IF_ERROR(ForEachShard(context, [&](store::StoreReader& reader) { return builder.AddShard(reader, context); }));
  return std::move(builder).Take(executables_max);
}

}  // namespace tributary
