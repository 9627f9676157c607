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

// The types that nodes and reducers share (docs/data-model.md). The dictionary that gives them ids is in
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
  StringRef path;  // first path on that node: for people, not an identity

  friend bool operator==(const Executable&, const Executable&) = default;
};

// Returns the address to look up for a frame. For a return address this is the address minus one, because a call may be
// the last instruction of a function. kernel-collector uses this function to find mappings and unwind rows. The BPF
// program computes the same address in bpf/unwind.bpf.h (`pc - is_return`). When names are looked up, only
// FrameSymbolizer calls this function.
constexpr uint64_t LookupAddress(uint64_t address, bool is_caller) { return address - (is_caller && address != 0); }

constexpr size_t kFrameNameBytesMax = 512;  // limit of a name that the sender gives to a frame; longer names are cut

// The code that a thread was running. For kinds with an address, (executable, address) identifies the code. A frame of
// a language runtime has a code object and a position in it instead. A frame that was sent with its name needs neither.
struct Frame {
  FrameKind kind = FrameKind::kUnknown;
  // True if the address is a return address (see LookupAddress). The same address can also occur in frames that were
  // interrupted there, with is_caller = false.
  bool is_caller = false;
  ExecutableRef executable;
  uint64_t address = 0;   // or the id of the code object
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

// Identifies one run of a program in a process. An exec does not change pid and start time, so exec_sequence
// distinguishes the programs that one process runs. A key is unique within one boot of a machine.
struct ProcessKey {
  Pid pid;
  int64_t start_time_ns = 0;  // of the thread group leader, ns of the kernel's CLOCK_BOOTTIME; 0: unknown
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
  StringRef comm;             // of the thread group leader when first seen; may be any bytes
  ExecutableRef executable;   // its main executable; 0 for kernel threads
  StringRef executable_path;  // as the process sees it (inside its mount namespace)
  StringRef container_id;     // as the runtime writes it; "": in no container
  StringRef cgroup_path;
  StringRef attributes;  // the process's own, such as its service.name; encoded by EncodeAttributes

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

// How the walk of a stack ended. The store contains it, to show how many stacks are complete.
enum class Ending : uint8_t {
  kUnknown = 0,           // the sender did not report it
  kComplete = 1,          // the outermost frame is the start of a thread or a process
  kKernelOnly = 2,        // there is no user stack: a kernel thread, or inside execve or exit
  kTruncatedDepth = 3,    // the stack is deeper than the walker's limit
  kUnreadableMemory = 4,  // user memory was paged out, or is invalid
  kNoMapping = 5,         // no mapping covers the caller's address
  kNoTable = 6,           // the code's unwind rows were not loaded in time
  kBadRow = 7,            // the unwind information cannot be followed
  kFramePointerLost = 8,  // no unwind information, and the chain of frame pointers ends before a start function
  kNoProgress = 9,        // the caller's frame would not lie above its callee's
  kStaleMapping = 10,     // a frame is in a mapping that was replaced before the sample; its callers are left out
  kCutByQuota = 11,       // the store had no room for the innermost frames; only the store sets it
  kRuntimeLost = 12,      // the native stack is complete, but frames of a language runtime are missing
};
constexpr uint8_t kEndingCount = 13;
std::string_view EndingName(Ending ending);

struct Sample {
  MonotonicNs time;
  ThreadRef thread;
  NodeRef node;  // the leaf
  SampleType type = SampleType::kCpu;
  Ending ending = Ending::kUnknown;
  uint16_t cpu = 0;
  uint32_t count = 1;
  uint64_t value = 0;  // in the unit of `type`
  // Attributes of this sample alone, encoded by EncodeAttributes: labels of pprof, or the span in which the sample was
  // taken (attributes.h: kTraceId). Sums of samples do not have them.
  StringRef attributes;

  friend bool operator==(const Sample&, const Sample&) = default;
};

}  // namespace tributary
