#include "profile/eviction.h"

#include <algorithm>
#include <utility>

#include "base/status.h"

namespace tributary {
namespace {

bool OverHalf(uint32_t used, uint32_t max) { return used > max / 2; }

// Marks all but the `drop` ids that were used longest ago; of equally old ones the higher go first.
std::vector<bool> MarkNewest(const std::vector<uint32_t>& used, size_t drop) {
  std::vector<bool> kept(used.size(), true);
  std::vector<uint64_t> by_age;
  by_age.reserve(used.size());
  for (uint32_t id = 1; id < used.size(); ++id) by_age.push_back(uint64_t{used[id]} << 32 | (UINT32_MAX - id));
  drop = std::min(drop, by_age.size());
  std::nth_element(by_age.begin(), by_age.begin() + static_cast<ptrdiff_t>(drop), by_age.end());
  for (size_t i = 0; i < drop; ++i) kept[UINT32_MAX - static_cast<uint32_t>(by_age[i])] = false;
  return kept;
}

// Which definitions stay, found from the samples' side down: what a kept definition refers to is kept.
class Marks {
 public:
  explicit Marks(const Dictionary& of)
      : of_(of),
        strings_(of.string_count()),
        executables_(of.executable_count()),
        frames_(of.frame_count()),
        processes_(of.process_count()) {}

  Eviction Mark() {
    const DictionaryLimits& max = of_.limits();
    const bool shared =
        OverHalf(of_.string_count(), max.strings_max) || OverHalf(of_.executable_count(), max.executables_max);
    const bool nodes =
        shared || OverHalf(of_.node_count(), max.nodes_max) || OverHalf(of_.frame_count(), max.frames_max);
    const bool threads =
        shared || OverHalf(of_.thread_count(), max.threads_max) || OverHalf(of_.process_count(), max.processes_max);
    const std::vector<bool> kept_nodes = MarkNewest(SubtreeUses(), nodes ? of_.node_count() / 4 : 0);
    const std::vector<bool> kept_threads = MarkNewest(of_.thread_uses(), threads ? of_.thread_count() / 4 : 0);
    for (uint32_t i = 1; i < kept_nodes.size(); ++i) {
      if (kept_nodes[i]) Keep(of_.node(NodeRef{i}).frame);
    }
    for (uint32_t i = 1; i < kept_threads.size(); ++i) {
      if (!kept_threads[i]) continue;
      const Thread& thread = of_.thread(ThreadRef{i});
      Keep(thread.process);
      Keep(of_.NewestProcess(thread.process));
      Keep(thread.name);
    }
    return {KeptIds::FromMarks(strings_),   KeptIds::FromMarks(executables_), KeptIds::FromMarks(frames_),
            KeptIds::FromMarks(kept_nodes), KeptIds::FromMarks(processes_),   KeptIds::FromMarks(kept_threads)};
  }

 private:
  std::vector<uint32_t> SubtreeUses() const {
    std::vector<uint32_t> uses = of_.node_uses();
    for (auto i = static_cast<uint32_t>(uses.size()); i-- > 1;) {
      uint32_t& parent = uses[of_.node(NodeRef{i}).parent.value];
      parent = std::max(parent, uses[i]);
    }
    return uses;
  }

  void Keep(StringRef ref) { strings_[ref.value] = true; }
  void Keep(ExecutableRef ref) {
    executables_[ref.value] = true;
    Keep(of_.executable(ref).path);
  }
  void Keep(FrameRef ref) {
    frames_[ref.value] = true;
    Keep(of_.frame(ref).executable);
  }
  void Keep(ProcessRef ref) {
    processes_[ref.value] = true;
    const Process& process = of_.process(ref);
    for (StringRef text : process.texts()) Keep(text);
    Keep(process.executable);
  }

  const Dictionary& of_;
  std::vector<bool> strings_, executables_, frames_, processes_;
};

// Whether all that is kept of a table refers to what is kept of the others.
template <typename Refs>
bool Holds(const KeptIds& table, Refs&& refs) {
  const std::vector<uint32_t> ids = table.NewIds();
  for (uint32_t i = 1; i < ids.size(); ++i) {
    if (ids[i] != 0 && !refs(i)) return false;
  }
  return true;
}

}  // namespace

std::shared_ptr<Dictionary> EvictedFrom(const std::shared_ptr<const Dictionary>& from, const Eviction& eviction) {
  const Dictionary& d = *from;
  if (eviction.strings.before() != d.string_count() || eviction.executables.before() != d.executable_count() ||
      eviction.frames.before() != d.frame_count() || eviction.nodes.before() != d.node_count() ||
      eviction.processes.before() != d.process_count() || eviction.threads.before() != d.thread_count()) {
    return nullptr;
  }
  const std::vector<uint32_t> strings = eviction.strings.NewIds(), executables = eviction.executables.NewIds(),
                              frames = eviction.frames.NewIds(), nodes = eviction.nodes.NewIds(),
                              processes = eviction.processes.NewIds();
  auto kept = [](auto ref, const std::vector<uint32_t>& ids) { return ref.value == 0 || ids[ref.value] != 0; };
  const bool ok =
      Holds(eviction.executables, [&](uint32_t i) { return kept(d.executable(ExecutableRef{i}).path, strings); }) &&
      Holds(eviction.frames, [&](uint32_t i) { return kept(d.frame(FrameRef{i}).executable, executables); }) &&
      Holds(eviction.nodes,
            [&](uint32_t i) {
              const Node node = d.node(NodeRef{i});
              return kept(node.parent, nodes) && kept(node.frame, frames);
            }) &&
      Holds(eviction.processes,
            [&](uint32_t i) {
              const Process& p = d.process(ProcessRef{i});
              const auto texts = p.texts();
              return kept(p.executable, executables) &&
                     std::all_of(texts.begin(), texts.end(), [&](StringRef text) { return kept(text, strings); });
            }) &&
      Holds(eviction.threads, [&](uint32_t i) {
        const Thread& thread = d.thread(ThreadRef{i});
        return kept(thread.process, processes) && kept(thread.name, strings);
      });
  return ok ? std::make_shared<Dictionary>(from, eviction) : nullptr;
}

uint64_t Eviction::ids_before() const {
  return uint64_t{strings.before()} + executables.before() + frames.before() + nodes.before() + processes.before() +
         threads.before();
}

uint64_t Eviction::ids_after() const {
  return uint64_t{strings.after()} + executables.after() + frames.after() + nodes.after() + processes.after() +
         threads.after();
}

std::shared_ptr<Dictionary> EvictOldest(const std::shared_ptr<const Dictionary>& full) {
  return std::make_shared<Dictionary>(full, Marks(*full).Mark());
}

}  // namespace tributary
