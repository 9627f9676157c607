#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "profile/model.h"
#include "profile/tables.h"

namespace tributary {

// A dictionary gives ids to everything that a session's samples refer to: strings, executables, frames, trie nodes,
// processes, threads. Each table has its own ids: 0, 1, 2, … in order of first use. The meaning of an id never changes.
// A definition refers only to earlier tables, or to smaller ids of its own table: a node's parent has a smaller id than
// the node. The collector interns definitions and sends them. The reducer gives them the same ids (SessionDictionary in
// reducer/store/). The readers of recordings and of the spool append the definitions to another Dictionary.
//
// To intern a known stack of 20 frames takes 0.64 µs, including the search for its mappings (collector_bench). A node
// needs 16 bytes and a slot in a hash table. `DictionaryLimits` limits the tables. If full() is true, the caller should
// start a new dictionary. Not thread-safe.
struct DictionaryLimits {
  uint32_t nodes_max = 131'072;
  uint32_t frames_max = 131'072;
  uint32_t strings_max = 65'536;
  uint32_t string_bytes_max = 4096;  // per string; InternString cuts longer strings
  uint32_t executables_max = 16'384;
  uint32_t processes_max = 32'768;
  uint32_t threads_max = 65'536;
  // Nodes of one stack. A Dictionary does not check it: Batcher cuts deeper stacks, and BatchDecoder refuses them.
  uint32_t stack_depth_max = 1024;

  DictionaryCounts max() const {
    return {.strings = strings_max,
            .executables = executables_max,
            .frames = frames_max,
            .nodes = nodes_max,
            .processes = processes_max,
            .threads = threads_max};
  }
};

struct Definitions;
struct Derivation;
struct Eviction;

class Dictionary {
 public:
  explicit Dictionary(DictionaryLimits limits = {});
  // Copies the definitions of `from` that `eviction` keeps, with new ids.
  Dictionary(const std::shared_ptr<const Dictionary>& from, Eviction eviction);
  ~Dictionary();
  Dictionary(const Dictionary&) = delete;
  Dictionary& operator=(const Dictionary&) = delete;

  // The Intern functions return the id of an equal definition. If there is none, they add the definition and return its
  // new id. If the table is full, they return id 0, and full() becomes true. The caller must then keep the sample with
  // less detail instead of dropping it.
  StringRef InternString(std::string_view text);
  ExecutableRef InternExecutable(const ExecutableId& id, std::string_view path);  // compares only `id`
  FrameRef InternFrame(const Frame& frame);
  NodeRef InternNode(Node node);
  // Interns a whole stack, outermost frame first. Returns the node of its innermost frame. Prefetches the hash slots of
  // all frames before it looks up the first frame. This is faster if the tables are not in the processor's caches.
  NodeRef InternStack(std::span<const Frame> frames);
  ThreadRef InternThread(const Thread& thread);
  // Compares the key first. If a process with this key is defined, but another field has changed (for example, its
  // container is now known), adds a new definition with a new id. If the table is full, returns the id of the earlier
  // definition.
  ProcessRef InternProcess(const Process& process);

  // An eviction drops the nodes and threads that were not used for the longest time. SetNow sets the current time, in a
  // unit that the caller chooses. A new definition counts as used now. Use records that a sample uses a leaf or a
  // thread now. The use of a node also counts for all its parents.
  void SetNow(uint32_t now) { now_ = now; }
  void Use(NodeRef leaf) { node_uses_[leaf.value] = now_; }
  void Use(ThreadRef thread) { thread_uses_[thread.value] = now_; }
  const std::vector<uint32_t>& node_uses() const { return node_uses_; }
  const std::vector<uint32_t>& thread_uses() const { return thread_uses_; }

  // The Append functions are for definitions that a collector interned before. They add a definition with the next id.
  // They return false and add nothing if the table is full, if a string is too long, or if the definition refers to an
  // undefined id.
  bool Append(std::string_view text);
  bool Append(const Executable& executable);
  bool Append(const Frame& frame);
  bool Append(const Node& node);
  bool Append(const Process& process);
  bool Append(const Thread& thread);
  // Appends all definitions in order. Returns false at the first definition that cannot be appended. The definitions
  // before it stay.
  bool Append(const Definitions& definitions);

  std::string_view string(StringRef ref) const { return strings_[ref.value]; }
  const Executable& executable(ExecutableRef ref) const { return executables_[ref.value]; }
  const Frame& frame(FrameRef ref) const { return frames_[ref.value]; }
  Node node(NodeRef ref) const { return nodes_[ref.value]; }
  const Process& process(ProcessRef ref) const { return processes_[ref.value]; }
  const Thread& thread(ThreadRef ref) const { return threads_[ref.value]; }
  ProcessRef NewestProcess(ProcessRef ref) const;  // the newest definition of the same process

  // The number of definitions in each table, including id 0. This number is also the next id of the table.
  uint32_t string_count() const { return static_cast<uint32_t>(strings_.size()); }
  uint32_t executable_count() const { return static_cast<uint32_t>(executables_.size()); }
  uint32_t frame_count() const { return static_cast<uint32_t>(frames_.size()); }
  uint32_t node_count() const { return static_cast<uint32_t>(nodes_.size()); }
  uint32_t process_count() const { return static_cast<uint32_t>(processes_.size()); }
  uint32_t thread_count() const { return static_cast<uint32_t>(threads_.size()); }
  DictionaryCounts counts() const;
  // Returns the definitions that were added after counts() was `before`.
  Definitions DefinedSince(const DictionaryCounts& before) const;

  // Returns true if at least one table is full.
  bool full() const { return full_; }
  const DictionaryLimits& limits() const { return limits_; }
  // The dictionary and the eviction from which this dictionary was made. nullptr if it started empty.
  const Derivation* derivation() const { return derivation_.get(); }

  // Returns a hash over all nodes defined so far, in order. Each batch contains it, so that the receiver notices if its
  // dictionary differs from the sender's dictionary.
  uint64_t rolling_hash() const { return rolling_hash_; }
  // Returns the rolling hash `hash` with `node` added to it. The rolling hash without nodes is 0. For a receiver that
  // does not have a Dictionary object.
  static uint64_t RollHash(uint64_t hash, Node node);

 private:
  struct HashedNode {
    Node node;
    uint64_t hash;
  };
  struct NodeHash {
    using is_transparent = void;
    const Dictionary* owner;
    size_t operator()(const Node& node) const { return owner->HashNode(node); }
    size_t operator()(const HashedNode& node) const { return node.hash; }
  };
  struct NodeEqual {
    using is_transparent = void;
    bool operator()(const Node& a, const Node& b) const { return a == b; }
    bool operator()(const Node& a, const HashedNode& b) const { return a == b.node; }
    bool operator()(const HashedNode& a, const Node& b) const { return a.node == b; }
  };
  // A slot of the hash table contains the frame's id and half of its hash. Frames are compared only if these halves are
  // equal, which is rare for different frames.
  struct HashedFrame {
    uint32_t id, half_hash;
  };
  struct WantedFrame {
    const Frame* frame;
    uint64_t hash;
  };
  static constexpr uint64_t SpreadHalf(uint32_t half_hash) { return uint64_t{half_hash} * 0x9e3779b97f4a7c15; }
  struct FrameHash {
    using is_transparent = void;
    size_t operator()(const HashedFrame& held) const { return SpreadHalf(held.half_hash); }
    size_t operator()(const WantedFrame& wanted) const { return SpreadHalf(static_cast<uint32_t>(wanted.hash)); }
  };
  struct FrameEqual {
    using is_transparent = void;
    const Dictionary* owner;
    bool operator()(const HashedFrame& a, const HashedFrame& b) const {
      return a.half_hash == b.half_hash && owner->frames_[a.id] == owner->frames_[b.id];
    }
    bool operator()(const HashedFrame& held, const WantedFrame& wanted) const {
      return held.half_hash == static_cast<uint32_t>(wanted.hash) && owner->frames_[held.id] == *wanted.frame;
    }
    bool operator()(const WantedFrame& wanted, const HashedFrame& held) const { return (*this)(held, wanted); }
  };
  static WantedFrame Wanted(const Frame& frame) { return {&frame, absl::HashOf(frame)}; }
  FrameRef InternFrame(const WantedFrame& wanted);

  // The upper half of the result is the hash of the path.
  static uint64_t HashPath(uint32_t parent_hash, FrameRef frame);
  uint64_t HashNode(Node node) const { return HashPath(path_hashes_[node.parent.value], node.frame); }

  bool HasRoom(size_t used, uint32_t max);

  DictionaryLimits limits_;
  bool full_ = false;
  uint32_t now_ = 0;
  uint64_t rolling_hash_ = 0;
  std::unique_ptr<const Derivation> derivation_;
  std::deque<std::string> strings_;  // a deque, because the keys of string_ids_ point into it
  std::vector<Executable> executables_;
  std::vector<Frame> frames_;
  std::vector<Node> nodes_;
  std::vector<Process> processes_;
  std::vector<Thread> threads_;
  std::vector<uint32_t> node_uses_, thread_uses_;
  // One hash per node, which depends only on the frames of its path. So the hash of a child does not depend on its
  // parent's id.
  std::vector<uint32_t> path_hashes_;
  absl::flat_hash_map<absl::string_view, uint32_t> string_ids_;
  absl::flat_hash_map<ExecutableId, uint32_t> executable_ids_;
  absl::flat_hash_set<HashedFrame, FrameHash, FrameEqual> frame_ids_;
  absl::flat_hash_map<Node, uint32_t, NodeHash, NodeEqual> node_ids_;
  absl::flat_hash_map<ProcessKey, uint32_t> process_ids_;  // the newest definition of the process with this key
  absl::flat_hash_map<Thread, uint32_t> thread_ids_;
  std::vector<FrameRef> stack_frames_;  // scratch buffers of InternStack
  std::vector<uint64_t> stack_hashes_;
  std::vector<WantedFrame> wanted_frames_;
};

}  // namespace tributary
