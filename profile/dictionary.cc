#include "profile/dictionary.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "profile/definitions.h"
#include "profile/eviction.h"

namespace tributary {
namespace {

// splitmix64's finalizer (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

Dictionary::Dictionary(DictionaryLimits limits)
    : limits_(limits), frame_ids_(0, FrameHash{}, FrameEqual{this}), node_ids_(0, NodeHash{this}, NodeEqual{}) {
  // The program's address differs from run to run, so outsiders cannot predict which paths collide.
  static const char kSalt = 0;
  path_hashes_.push_back(static_cast<uint32_t>(Mix(reinterpret_cast<uintptr_t>(&kSalt))));
  strings_.emplace_back();
  string_ids_.emplace(absl::string_view(), 0);
  executables_.emplace_back();
  executable_ids_.emplace(ExecutableId(), 0);
  frames_.emplace_back();
  frame_ids_.insert(HashedFrame{0, static_cast<uint32_t>(Wanted(frames_[0]).hash)});
  nodes_.emplace_back();
  processes_.emplace_back();
  threads_.emplace_back();
  node_uses_.push_back(0);
  thread_uses_.push_back(0);
}

Dictionary::~Dictionary() = default;

Dictionary::Dictionary(const std::shared_ptr<const Dictionary>& from, Eviction eviction) : Dictionary(from->limits_) {
  now_ = from->now_;
  const NewIds new_ids(eviction);
  // Appends the kept definitions of a table, with their new references.
  auto append = [&](const std::vector<uint32_t>& ids, const auto& table, auto&& appended) {
    for (uint32_t i = 1; i < ids.size(); ++i) {
      if (ids[i] == 0) continue;
      auto definition = table[i];
      ForEachRef(definition, [&](auto& ref) { ref.value = new_ids.Of(ref); });
      TRIBUTARY_CHECK(Append(definition));
      appended(i);
    }
  };
  auto nothing = [](uint32_t) {};
  append(new_ids.strings, from->strings_, nothing);
  append(new_ids.executables, from->executables_, nothing);
  append(new_ids.frames, from->frames_, nothing);
  append(new_ids.nodes, from->nodes_, [&](uint32_t i) { node_uses_.back() = from->node_uses_[i]; });
  append(new_ids.processes, from->processes_, nothing);
  append(new_ids.threads, from->threads_, [&](uint32_t i) { thread_uses_.back() = from->thread_uses_[i]; });
  full_ = false;
  derivation_ = std::make_unique<const Derivation>(Derivation{from, std::move(eviction)});
}

DictionaryCounts Dictionary::counts() const {
  return {.strings = string_count(),
          .executables = executable_count(),
          .frames = frame_count(),
          .nodes = node_count(),
          .processes = process_count(),
          .threads = thread_count()};
}

bool Dictionary::HasRoom(size_t used, uint32_t max) {
  if (used + 1 >= max) full_ = true;
  return used < max;
}

StringRef Dictionary::InternString(std::string_view text) {
  text = text.substr(0, limits_.string_bytes_max);
  if (auto it = string_ids_.find(ToAbsl(text)); it != string_ids_.end()) return StringRef{it->second};
  if (!Append(text)) return StringRef{};
  return StringRef{string_count() - 1};
}

bool Dictionary::Append(std::string_view text) {
  if (text.size() > limits_.string_bytes_max || !HasRoom(strings_.size(), limits_.strings_max)) return false;
  uint32_t id = string_count();
  const std::string& kept = strings_.emplace_back(text);
  string_ids_.emplace(ToAbsl(kept), id);
  return true;
}

ExecutableRef Dictionary::InternExecutable(const ExecutableId& id, std::string_view path) {
  if (auto it = executable_ids_.find(id); it != executable_ids_.end()) return ExecutableRef{it->second};
  if (!Append(Executable{id, InternString(path)})) return ExecutableRef{};
  return ExecutableRef{executable_count() - 1};
}

bool Dictionary::Append(const Executable& executable) {
  if (executable.path.value >= string_count() || !HasRoom(executables_.size(), limits_.executables_max)) return false;
  executable_ids_.emplace(executable.id, executable_count());
  executables_.push_back(executable);
  return true;
}

FrameRef Dictionary::InternFrame(const Frame& frame) { return InternFrame(Wanted(frame)); }

FrameRef Dictionary::InternFrame(const WantedFrame& wanted) {
  if (auto it = frame_ids_.find(wanted); it != frame_ids_.end()) return FrameRef{it->id};
  if (!Append(*wanted.frame)) return FrameRef{};
  return FrameRef{frame_count() - 1};
}

bool Dictionary::Append(const Frame& frame) {
  if (!counts().Define(frame) || !HasRoom(frames_.size(), limits_.frames_max)) return false;
  const HashedFrame held{frame_count(), static_cast<uint32_t>(Wanted(frame).hash)};
  frames_.push_back(frame);
  frame_ids_.insert(held);
  return true;
}

NodeRef Dictionary::InternNode(Node node) {
  if (auto it = node_ids_.find(node); it != node_ids_.end()) return NodeRef{it->second};
  if (!Append(node)) return NodeRef{};
  return NodeRef{node_count() - 1};
}

NodeRef Dictionary::InternStack(std::span<const Frame> frames) {
  wanted_frames_.clear();
  for (const Frame& frame : frames) {
    wanted_frames_.push_back(Wanted(frame));
    frame_ids_.prefetch(wanted_frames_.back());
  }
  stack_frames_.clear();
  stack_hashes_.clear();
  uint32_t path = path_hashes_[0];
  for (const WantedFrame& wanted : wanted_frames_) {
    const FrameRef ref = InternFrame(wanted);
    const uint64_t hash = HashPath(path, ref);
    node_ids_.prefetch(HashedNode{{}, hash});
    stack_frames_.push_back(ref);
    stack_hashes_.push_back(hash);
    path = static_cast<uint32_t>(hash >> 32);
  }
  NodeRef node;
  for (size_t i = 0; i < stack_frames_.size(); ++i) {
    const Node next{node, stack_frames_[i]};
    auto it = node_ids_.find(HashedNode{next, stack_hashes_[i]});
    node = it != node_ids_.end() ? NodeRef{it->second} : InternNode(next);
  }
  return node;
}

uint64_t Dictionary::HashPath(uint32_t parent_hash, FrameRef frame) {
  return Mix(uint64_t{parent_hash} << 32 | frame.value);
}

bool Dictionary::Append(const Node& node) {
  if (node.parent.value >= node_count() || node.frame.value >= frame_count()) return false;
  if (!HasRoom(nodes_.size(), limits_.nodes_max)) return false;
  node_ids_.emplace(node, node_count());
  nodes_.push_back(node);
  node_uses_.push_back(now_);
  path_hashes_.push_back(static_cast<uint32_t>(HashNode(node) >> 32));
  rolling_hash_ = RollHash(rolling_hash_, node);
  return true;
}

uint64_t Dictionary::RollHash(uint64_t hash, Node node) {
  return Mix(hash ^ (uint64_t{node.parent.value} << 32 | node.frame.value));
}

ProcessRef Dictionary::InternProcess(const Process& process) {
  auto it = process_ids_.find(process.key);
  if (it != process_ids_.end() && processes_[it->second] == process) return ProcessRef{it->second};
  if (!Append(process)) return it != process_ids_.end() ? ProcessRef{it->second} : ProcessRef{};
  return ProcessRef{process_count() - 1};
}

ProcessRef Dictionary::NewestProcess(ProcessRef ref) const {
  auto it = process_ids_.find(processes_[ref.value].key);
  return it != process_ids_.end() ? ProcessRef{it->second} : ref;
}

bool Dictionary::Append(const Process& process) {
  if (!counts().Define(process) || !HasRoom(processes_.size(), limits_.processes_max)) return false;
  process_ids_.insert_or_assign(process.key, process_count());
  processes_.push_back(process);
  return true;
}

ThreadRef Dictionary::InternThread(const Thread& thread) {
  if (auto it = thread_ids_.find(thread); it != thread_ids_.end()) return ThreadRef{it->second};
  if (!Append(thread)) return ThreadRef{};
  return ThreadRef{thread_count() - 1};
}

bool Dictionary::Append(const Thread& thread) {
  if (!counts().Define(thread) || !HasRoom(threads_.size(), limits_.threads_max)) return false;
  thread_ids_.emplace(thread, thread_count());
  threads_.push_back(thread);
  thread_uses_.push_back(now_);
  return true;
}

bool Dictionary::Append(const Definitions& definitions) {
  bool ok = true;
  ForEachTable(
      [&](const auto& table) {
        for (const auto& definition : table) ok = ok && Append(definition);
      },
      definitions);
  return ok;
}

Definitions Dictionary::DefinedSince(const DictionaryCounts& before) const {
  Definitions made;
  auto copy = [](const auto& table, uint32_t first, auto& to) {
    if (first < table.size()) to.assign(table.begin() + first, table.end());
  };
  copy(strings_, before.strings, made.strings);
  copy(executables_, before.executables, made.executables);
  copy(frames_, before.frames, made.frames);
  copy(nodes_, before.nodes, made.nodes);
  copy(processes_, before.processes, made.processes);
  copy(threads_, before.threads, made.threads);
  return made;
}

}  // namespace tributary
