#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/metrics.h"
#include "kernel-collector/probes/runtime_chain.h"
#include "kernel-collector/processes/process_table.h"
#include "kernel-collector/processes/runtime_binary.h"
#include "kernel-collector/processes/stack_resolver.h"
#include "kernel-collector/runtimes/runtime_objects.h"
#include "kernel-collector/runtimes/runtime_slots.h"

namespace tributary {

// Puts the frames of language runtimes between the native frames of a stack. An interpreter's loop is a native function
// that runs functions of its language, and calls itself for some of them. So each native frame of the loop runs one
// segment of the chain that the BPF program has read from the runtime. The segment's frames follow the loop's frame:
//
//   native  main · loop · call · loop · memcpy      chain  [a · b]  [c]
//   mixed   main · loop · a · b · call · loop · c · memcpy
//
// Native frames of the interpreter's file outside the innermost language frame get the kind kInterpreter, if a language
// frame has a name. If the file also has an application's own code, only the frames of the loop get it. No frame is
// lost, and the order of the native frames and of the chain's frames never changes. Loop thread only. Costs nothing for
// stacks without a runtime.
class StackMixer {
 public:
  StackMixer(RuntimeSlots& slots, RuntimeObjects& objects, Metrics& metrics);

  struct Sample {
    std::span<const uint64_t> chains;  // SampleRecord::chains
    MonotonicNs time;
    const trib_executable_key* executable = nullptr;  // of the process, in a record with a stack copy; else null
    MayRead may_read = MayRead::kNo;
  };
  // Adds the frames of the chains to `stack`, whose ending must be set. Changes the ending kComplete to kRuntimeLost if
  // language frames or their names are missing, or if their places are not known. Sets wants_executable if a code
  // object is being read. If the record has a stack copy, its process was new to the BPF program: the runtimes of the
  // stack are expected in the executable's next processes. Returns the number of frames without a name.
  size_t Mix(const Sample& sample, ProcessRun& run, ResolvedStack* stack);
  // Counts what the last call of Mix has left out. Call it once for each sample: Mix may be called several times.
  void CountSample();

 private:
  // The frames of one runtime in the stack.
  struct Part {
    RuntimeBinaryPtr binary;
    std::vector<size_t> loops;  // indices of native frames, the innermost first
    bool has_chain = false, is_complete = true;
    std::vector<RuntimeFrame> frames;                 // the innermost first
    std::vector<std::pair<size_t, size_t>> segments;  // [first, last) of `frames`, the innermost first
    bool has_name = false;                            // of one of its frames
    size_t innermost = SIZE_MAX;                      // index of the native frame that runs the innermost segment
  };
  struct Inserted {
    size_t before = 0;  // index of a native frame
    Part* part = nullptr;
    size_t first = 0, last = 0;  // of its frames
  };

  Part& PartOf(const RuntimeBinaryPtr& binary);
  void FindLoops(const ResolvedStack& stack, size_t user_frames);
  void AddChains(std::span<const uint64_t> chains);
  // Finds the places of the part's segments. Returns whether frames are missing, or their places are not known.
  bool Place(Part& part, const ResolvedStack& stack, size_t user_frames);
  void Build(const Sample& sample, ProcessRun& run, size_t user_frames, ResolvedStack* stack);
  void AddFrame(const Sample& sample, ProcessRun& run, Part& part, const RuntimeFrame& frame, ResolvedStack* stack);
  void KeepNativeWithoutNames(ResolvedStack* stack) const;
  // `frame` is native, at `index` of the native stack.
  bool IsInterpreter(const ResolvedFrame& frame, size_t index) const;
  void AddFrame(const Sample& sample, ProcessRun& run, const Part& part, const RuntimeFrame& frame,
                ResolvedStack* stack);

  RuntimeSlots& slots_;
  RuntimeObjects& objects_;
  // Of the current stack; kept, so that most calls allocate nothing.
  std::vector<Part> parts_;
  size_t part_count_ = 0;
  std::vector<Inserted> inserted_;
  std::vector<ResolvedFrame> mixed_;
  size_t unnamed_ = 0, refused_ = 0, ignored_chains_ = 0;
  Counter& foreign_chains_;
};

}  // namespace tributary
