#include "kernel-collector/processes/stack_resolver.h"

namespace tributary {
namespace {

using Unread = std::function<void(const CodeFilePtr&)>;

constexpr uint64_t kPageBytes = 4096;
// Nothing is mapped below vm.mmap_min_addr, nor above 2^56 on any architecture. A chain that leads there is broken, and
// waiting does not repair it.
constexpr uint64_t kLowestUserAddress = 65'536;

bool MayBeMapped(uint64_t address) { return address >= kLowestUserAddress && address >> 56 == 0; }

// Returns whether the runtime knew the address.
bool AddRuntimeFrames(const Runtime& runtime, const Runtime::Query& query, ResolvedStack* out) {
  const size_t before = out->frames.size();
  const Runtime::Found found = runtime.Find(query, &out->frames);
  if (out->frames.size() > before + Runtime::kFramesMax) out->frames.resize(before + Runtime::kFramesMax);
  out->wants_executable |= found == Runtime::Found::kLater;
  return found == Runtime::Found::kFrames;
}

// Returns true if the mapping may contain code that the process has generated: it has no file, or its file is no
// executable.
bool MayBeGenerated(const Mapping& mapping) {
  if (mapping.executable == nullptr) return mapping.memory != nullptr;
  return mapping.executable->state == CodeFile::State::kFailed;
}

// Appends the frames of an address for which MayBeGenerated is true. Returns false if the address stays unknown.
bool AddGeneratedFrames(RuntimeMaker* generated_code, const Runtime::Query& query, const Mapping& mapping,
                        ProcessRun& run, ResolvedStack* out) {
  if (generated_code != nullptr) {
    if (run.generated_code == nullptr) run.generated_code = generated_code->Make(run);
    if (AddRuntimeFrames(*run.generated_code, query, out)) return true;
  }
  if (mapping.memory == nullptr) return false;
  out->frames.push_back({.kind = FrameKind::kJit, .name = *mapping.memory});
  return true;
}

// Appends the frame of a user-stack address: one frame, or several if a runtime reports several.
void AddUserFrames(RuntimeMaker* generated_code, uint64_t address, bool is_caller, MonotonicNs time, ProcessRun& run,
                   const MappingTable::List* snapshot, const Unread& unread, ResolvedStack* out) {
  const uint64_t probe = LookupAddress(address, is_caller);
  ResolvedFrame frame{.is_caller = is_caller, .address = address};
  const Mapping* mapping = snapshot != nullptr ? MappingTable::Find(*snapshot, probe) : nullptr;
  if (mapping == nullptr) mapping = run.mappings.Find(probe);
  // No file is better than a wrong file.
  if (run.IsUnsure(probe, time)) {
    out->frames.push_back(frame);
    return;
  }
  if (mapping == nullptr) {
    if (MayBeMapped(probe) && run.uncovered_pages.size() < ProcessRun::kUncoveredPagesMax &&
        !run.uncovered_pages.contains(probe / kPageBytes)) {
      out->uncovered_pages.push_back(probe / kPageBytes);
    }
  } else if (mapping->runtime != nullptr && AddRuntimeFrames(*mapping->runtime, {probe, is_caller, time}, out)) {
    return;
  } else if (mapping->executable != nullptr) {
    CodeFile& executable = *mapping->executable;
    if (executable.state == CodeFile::State::kUnread) unread(mapping->executable);
    if (executable.state != CodeFile::State::kReady && executable.state != CodeFile::State::kFailed) {
      out->wants_executable = true;
    }
    auto elf = FileOffsetToAddress(executable.segments, probe - mapping->start + mapping->file_offset);
    if (elf && executable.id.known()) {
      frame = {FrameKind::kNative, is_caller, &executable, *elf + (address - probe)};
    }
  }
  if (mapping != nullptr && frame.kind == FrameKind::kUnknown && MayBeGenerated(*mapping) &&
      AddGeneratedFrames(generated_code, {probe, is_caller, time}, *mapping, run, out)) {
    return;
  }
  out->frames.push_back(frame);
}

}  // namespace

void StackResolver::AddKernelFrames(const RawStack& stack, ResolvedStack* out) {
  for (size_t i = stack.kernel.size(); i-- > 0;) {
    // Generated code never directly follows a call. So an address at its begin is not a return address: the code has
    // yet to run. A retpoline's last instruction finds its target at the place of a return address.
    const bool is_caller = i != 0 && !kernel_.BeginsGeneratedCode(stack.kernel[i], stack.time);
    const uint64_t probe = LookupAddress(stack.kernel[i], is_caller);
    const KernelCode::Place place = kernel_.Find(probe, stack.time);
    out->wants_executable |= place.wait;
    if (!place.is_cause) {
      out->frames.push_back({FrameKind::kKernel, is_caller, place.file, place.offset + (stack.kernel[i] - probe)});
      continue;
    }
    // The cause is added once for any number of successive frames.
    const ResolvedFrame cause{FrameKind::kKernel, false, place.file, 0};
    if (out->frames.empty() || out->frames.back().executable != place.file) out->frames.push_back(cause);
  }
}

void StackResolver::Resolve(const RawStack& stack, ProcessRun& run, const MappingTable::List* snapshot,
                            const Unread& unread, ResolvedStack* out) {
  out->frames.clear();
  out->outermost_frames = 0;
  out->uncovered_pages.clear();
  out->wants_executable = false;
  const bool in_kernel = (stack.flags & TRIB_FLAG_IN_KERNEL) != 0;
  for (size_t i = stack.user.size(); i-- > 0;) {
    // If the sample interrupted the kernel, the system call returns to the first user address.
    const bool is_caller = (i != 0 || in_kernel) && (stack.user[i] & TRIB_FRAME_INTERRUPTED) == 0;
    AddUserFrames(stack.may_read_names ? generated_code_ : nullptr, stack.user[i] & ~TRIB_FRAME_INTERRUPTED, is_caller,
                  stack.time, run, snapshot, unread, out);
    if (out->outermost_frames == 0) out->outermost_frames = out->frames.size();
  }
  AddKernelFrames(stack, out);
}

}  // namespace tributary
