#include "kernel-collector/processes/stack_resolver.h"

namespace tributary {
namespace {

constexpr uint64_t kPageBytes = 4096;
// Nothing is mapped below vm.mmap_min_addr, nor above 2^56 on any architecture: a chain that leads there is broken, and
// waiting does not mend it.
constexpr uint64_t kLowestUserAddress = 65'536;

bool MayBeMapped(uint64_t address) { return address >= kLowestUserAddress && address >> 56 == 0; }

}  // namespace

void StackResolver::AddKernelFrames(const RawStack& stack, ResolvedStack* out) {
  for (size_t i = stack.kernel.size(); i-- > 0;) {
    // Generated code follows no call: what would return to its begin has yet to get there. A retpoline's last
    // instruction finds its target where others find a return address.
    const bool is_caller = i != 0 && !kernel_.BeginsGeneratedCode(stack.kernel[i], stack.time);
    const uint64_t probe = LookupAddress(stack.kernel[i], is_caller);
    const KernelCode::Place place = kernel_.Find(probe, stack.time);
    out->wants_executable |= place.wait;
    if (!place.is_cause) {
      out->frames.push_back({FrameKind::kKernel, is_caller, place.file, place.offset + (stack.kernel[i] - probe)});
      continue;
    }
    // Said once, however many frames it is true of.
    const ResolvedFrame cause{FrameKind::kKernel, false, place.file, 0};
    if (out->frames.empty() || out->frames.back().executable != place.file) out->frames.push_back(cause);
  }
}

void StackResolver::Resolve(const RawStack& stack, const ProcessRun& run, const MappingTable::List* snapshot,
                            const std::function<void(const CodeFilePtr&)>& unread, ResolvedStack* out) {
  out->frames.clear();
  out->uncovered_pages.clear();
  out->wants_executable = false;
  bool in_kernel = (stack.flags & TRIB_FLAG_IN_KERNEL) != 0;
  for (size_t i = stack.user.size(); i-- > 0;) {
    // Interrupted in the kernel, the first user address is where the system call returns to.
    bool is_caller = (i != 0 || in_kernel) && (stack.user[i] & TRIB_FRAME_INTERRUPTED) == 0;
    uint64_t address = stack.user[i] & ~TRIB_FRAME_INTERRUPTED;
    uint64_t probe = LookupAddress(address, is_caller);
    ResolvedFrame frame{FrameKind::kUnknown, is_caller, nullptr, address};
    const Mapping* mapping = snapshot != nullptr ? MappingTable::Find(*snapshot, probe) : nullptr;
    if (mapping == nullptr) mapping = run.mappings.Find(probe);
    // Better no file than a wrong one.
    if (run.IsUnsure(probe, stack.time)) {
      out->frames.push_back(frame);
      continue;
    }
    if (mapping == nullptr) {
      if (MayBeMapped(probe) && run.uncovered_pages.size() < ProcessRun::kUncoveredPagesMax &&
          !run.uncovered_pages.contains(probe / kPageBytes)) {
        out->uncovered_pages.push_back(probe / kPageBytes);
      }
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
    out->frames.push_back(frame);
  }
  AddKernelFrames(stack, out);
}

}  // namespace tributary
