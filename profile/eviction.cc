#include "profile/eviction.h"

#include <algorithm>
#include <utility>

#include "base/status.h"

namespace tributary {
namespace {

bool OverHalf(uint32_t used, uint32_t max) { return used > max / 2; }

// Marks all ids except the `drop` ids that were used longest ago. Of ids with equal age, the higher ones are dropped
// first.
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

// Decides which definitions stay. Starts at nodes and threads and keeps everything that a kept definition refers to.
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
      KeepRefs(thread);
      Keep(of_.NewestProcess(thread.process));
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

  // Keeps a definition and everything that it refers to.
  void Keep(StringRef ref) { strings_[ref.value] = true; }
  void Keep(ExecutableRef ref) {
    executables_[ref.value] = true;
    KeepRefs(of_.executable(ref));
  }
  void Keep(FrameRef ref) {
    frames_[ref.value] = true;
    KeepRefs(of_.frame(ref));
  }
  void Keep(ProcessRef ref) {
    processes_[ref.value] = true;
    KeepRefs(of_.process(ref));
  }
  void KeepRefs(const auto& definition) {
    ForEachRef(definition, [this](auto ref) { Keep(ref); });
  }

  const Dictionary& of_;
  std::vector<bool> strings_, executables_, frames_, processes_;
};

}  // namespace

std::shared_ptr<Dictionary> EvictedFrom(const std::shared_ptr<const Dictionary>& from, const Eviction& eviction) {
  const Dictionary& d = *from;
  if (eviction.before() != d.counts()) return nullptr;
  const NewIds new_ids(eviction);
  bool ok = true;
  auto check = [&](const std::vector<uint32_t>& ids, auto&& definition_of) {
    for (uint32_t i = 1; ok && i < ids.size(); ++i) {
      if (ids[i] == 0) continue;
      const auto& definition = definition_of(i);
      ForEachRef(definition, [&](auto ref) { ok = ok && new_ids.Keep(ref); });
    }
  };
  check(new_ids.executables, [&](uint32_t i) -> const auto& { return d.executable(ExecutableRef{i}); });
  check(new_ids.frames, [&](uint32_t i) -> const auto& { return d.frame(FrameRef{i}); });
  check(new_ids.nodes, [&](uint32_t i) { return d.node(NodeRef{i}); });
  check(new_ids.processes, [&](uint32_t i) -> const auto& { return d.process(ProcessRef{i}); });
  check(new_ids.threads, [&](uint32_t i) -> const auto& { return d.thread(ThreadRef{i}); });
  return ok ? std::make_shared<Dictionary>(from, eviction) : nullptr;
}

NewIds::NewIds(const Eviction& eviction) {
  ForEachTable([](std::vector<uint32_t>& ids, const KeptIds& kept) { ids = kept.NewIds(); }, *this, eviction);
}

DictionaryCounts Eviction::before() const {
  DictionaryCounts counts;
  ForEachTable([](uint32_t& count, const KeptIds& kept) { count = kept.before(); }, counts, *this);
  return counts;
}

DictionaryCounts Eviction::after() const {
  DictionaryCounts counts;
  ForEachTable([](uint32_t& count, const KeptIds& kept) { count = kept.after(); }, counts, *this);
  return counts;
}

uint64_t Eviction::ids_before() const {
  uint64_t sum = 0;
  ForEachTable([&](const KeptIds& kept) { sum += kept.before(); }, *this);
  return sum;
}

uint64_t Eviction::ids_after() const {
  uint64_t sum = 0;
  ForEachTable([&](const KeptIds& kept) { sum += kept.after(); }, *this);
  return sum;
}

std::shared_ptr<Dictionary> EvictOldest(const std::shared_ptr<const Dictionary>& full) {
  return std::make_shared<Dictionary>(full, Marks(*full).Mark());
}

}  // namespace tributary
