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

// The types that nodes and reducers share. docs/data-model.md explains them. The dictionary that numbers them is in
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

// Returns the address to look up for a frame: a return address minus one, since a call may be a function's last
// instruction. Nodes use this function to find mappings and unwind rows; the BPF program does the same in
// bpf/unwind.bpf.h (`pc - is_return`). To find names, only the reducer's FrameSymbolizer uses it.
constexpr uint64_t LookupAddress(uint64_t address, bool is_caller) { return address - (is_caller && address != 0); }

constexpr size_t kFrameNameBytesMax = 512;  // of a name that the sender gives to a frame; the rest is cut off

// The code that a thread was in. For kinds with an address, (executable, address) identifies the code. A frame of a
// language runtime has two words instead: its code object and the position in it. A frame that was sent with its name
// needs neither.
struct Frame {
  FrameKind kind = FrameKind::kUnknown;
  // True if the address is a return address (LookupAddress). The same address can also occur in frames that were
  // interrupted at it.
  bool is_caller = false;
  ExecutableRef executable;
  uint64_t address = 0;   // or the code object
  uint32_t position = 0;  // in the code object; if the frame has a name: the line, 0: unknown
  StringRef name;

  friend bool operator==(const Frame&, const Frame&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const Frame& f) {
    // Hashes few words, because every sample hashes all its frames.
    return H::combine(std::move(h),
                      uint64_t{f.executable.value} << 32 | uint64_t{static_cast<uint8_t>(f.kind)} << 1 | f.is_caller,
                      f.address, uint64_t{f.position} << 32 | f.name.value);
  }
};

// A trie node. A stack is the path from the root (node 0) to the node, outermost caller first.
struct Node {
  NodeRef parent;
  FrameRef frame;

  friend bool operator==(const Node&, const Node&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const Node& n) {
    return H::combine(std::move(h), n.parent, n.frame);
  }
};

// One run of a program. exec keeps pid and start time, so the sequence number distinguishes the programs that one
// process runs. A key is unique within one boot, which the session identifies.
struct ProcessKey {
  Pid pid;
  int64_t start_time_ns = 0;  // of the thread group leader, CLOCK_BOOTTIME ns as the kernel counts it; 0: unknown
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
  StringRef comm;             // of the group leader when first seen; the process chose the bytes
  ExecutableRef executable;   // its main executable; 0 for kernel threads
  StringRef executable_path;  // as the process sees it (inside its mount namespace)
  StringRef container_id;     // "": in no container; else lower-case hex, as the runtime writes it
  StringRef cgroup_path;
  StringRef attributes;  // the process's own, for example OTEL_SERVICE_NAME; encoded by EncodeAttributes

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

// How the walk of a stack ended. Stored as data, to show the health of stacks.
enum class Ending : uint8_t {
  kUnknown = 0,           // the source did not report it
  kComplete = 1,          // the outermost frame is a thread's or process's start
  kKernelOnly = 2,        // a kernel thread, or no user stack exists (inside execve or exit)
  kTruncatedDepth = 3,    // deeper than the walker's limit
  kUnreadableMemory = 4,  // user memory paged out or invalid
  kNoMapping = 5,         // an address that no mapping covers
  kNoTable = 6,           // code whose unwind rows were not loaded in time
  kBadRow = 7,            // unwind information that cannot be followed
  kFramePointerLost = 8,  // code without unwind information, and its chain of frame pointers stops short of a start
  kNoProgress = 9,        // the caller's frame would not lie above its callee's
  kStaleMapping = 10,     // the walk used a mapping that was replaced in the meantime; the stack is cut before it
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
  // Attributes of this sample alone, encoded by EncodeAttributes: labels of pprof, or the span in which the sample was
  // taken (attributes.h: kTraceId). Samples that are stored as sums lose them.
  StringRef attributes;

  friend bool operator==(const Sample&, const Sample&) = default;
};

}  // namespace tributary
