#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/types.h"
#include "profile/accounting.h"
#include "profile/executable_id.h"
#include "profile/frame_kinds.h"
#include "profile/sample_types.h"

// The nouns both sides share. docs/data-model.md explains them; the dictionary that numbers them is
// profile/dictionary.h.

namespace tributary {

// Dense ids of one Dictionary, from 0. Id 0 always means "none": the empty string, the unknown executable, no process,
// the trie's root.
using StringRef = Strong<struct StringRefTag, uint32_t>;
using ExecutableRef = Strong<struct ExecutableRefTag, uint32_t>;
using FrameRef = Strong<struct FrameRefTag, uint32_t>;
using NodeRef = Strong<struct NodeRefTag, uint32_t>;
using ProcessRef = Strong<struct ProcessRefTag, uint32_t>;
using ThreadRef = Strong<struct ThreadRefTag, uint32_t>;

struct Executable {
  ExecutableId id;
  StringRef path;  // as first seen on that node: a hint for people, never an identity

  friend bool operator==(const Executable&, const Executable&) = default;
};

// Returns the address to look up for a frame: a return address less one, since a call may be a function's last
// instruction. Nodes find mappings and unwind rows by it, the kernel side in bpf/unwind.bpf.h (`pc - is_return`); names
// are found by it in FrameSymbolizer alone.
constexpr uint64_t LookupAddress(uint64_t address, bool is_caller) { return address - (is_caller && address != 0); }

constexpr size_t kFrameNameBytesMax = 512;  // of a name that a frame came with; the rest is cut off

// Code that a thread was in. Of kinds with an address (executable, address) says where; a runtime's frame has two words
// instead, its code object and the position in it; one that came with its name needs neither.
struct Frame {
  FrameKind kind = FrameKind::kUnknown;
  // The address is one that a call returns to (LookupAddress). The same address can be met as both.
  bool is_caller = false;
  ExecutableRef executable;
  uint64_t address = 0;   // or the code object
  uint32_t position = 0;  // in the code object; of a frame with a name: the line, 0 = not known
  StringRef name;

  friend bool operator==(const Frame&, const Frame&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const Frame& f) {
    // Few words: a sample hashes all its frames.
    return H::combine(std::move(h),
                      uint64_t{f.executable.value} << 32 | uint64_t{static_cast<uint8_t>(f.kind)} << 1 | f.is_caller,
                      f.address, uint64_t{f.position} << 32 | f.name.value);
  }
};

// A trie node: a stack is the path from the root (node 0) to it, outermost caller first.
struct Node {
  NodeRef parent;
  FrameRef frame;

  friend bool operator==(const Node&, const Node&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const Node& n) {
    return H::combine(std::move(h), n.parent, n.frame);
  }
};

// One program run: exec keeps pid and start time, hence the sequence. The boot id is the session's.
struct ProcessKey {
  Pid pid;
  int64_t start_time_ns = 0;  // of the thread group leader, CLOCK_BOOTTIME ns as the kernel counts it; 0 = unknown
  uint32_t exec_sequence = 0;

  friend auto operator<=>(const ProcessKey&, const ProcessKey&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const ProcessKey& k) {
    return H::combine(std::move(h), k.pid, k.start_time_ns, k.exec_sequence);
  }
};

struct Process {
  ProcessKey key;
  Pid parent;
  StringRef comm;             // of the group leader when first seen; bytes as the process chose them
  ExecutableRef executable;   // its main executable; 0 for kernel threads
  StringRef executable_path;  // as the process sees it (inside its mount namespace)
  StringRef container_id;     // "" = in no container; else lower-case hex, as the runtime names it
  StringRef cgroup_path;
  StringRef attributes;  // what it says of itself, OTEL_SERVICE_NAME for one; as EncodeAttributes writes them

  friend bool operator==(const Process&, const Process&) = default;
};

struct Thread {
  ProcessRef process;
  Tid tid;
  StringRef name;

  friend bool operator==(const Thread&, const Thread&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const Thread& t) {
    return H::combine(std::move(h), t.process, t.tid, t.name);
  }
};

// How the walk of a stack ended. Stack health is data.
enum class Ending : uint8_t {
  kUnknown = 0,           // nobody said
  kComplete = 1,          // the outermost frame is a thread's or process's start
  kKernelOnly = 2,        // a kernel thread, or no user stack exists (inside execve or exit)
  kTruncatedDepth = 3,    // deeper than the walker's limit
  kUnreadableMemory = 4,  // user memory paged out or invalid
  kNoMapping = 5,         // an address that no mapping covers
  kNoTable = 6,           // code whose unwind rows were not loaded in time
  kBadRow = 7,            // unwind information that cannot be followed
  kFramePointerLost = 8,  // code without unwind information, and its chain of frame pointers stops short of a start
  kNoProgress = 9,        // the caller's frame would not lie above its callee's
  kStaleMapping = 10,     // the walk used a mapping that had been replaced by then: cut before it
};
constexpr uint8_t kEndingCount = 11;
std::string_view EndingName(Ending ending);

struct Sample {
  MonotonicNs time;
  ThreadRef thread;
  NodeRef node;  // the leaf
  SampleType type = SampleType::kCpu;
  Ending ending = Ending::kUnknown;
  uint16_t cpu = 0;
  uint32_t count = 1;
  uint64_t value = 0;  // in its type's unit
  // Of this sample alone, as EncodeAttributes writes them: labels of pprof, or the span that it was taken in
  // (attributes.h: kTraceId). Sums do not keep them.
  StringRef attributes;

  friend bool operator==(const Sample&, const Sample&) = default;
};

}  // namespace tributary
