#include "kernel-collector/processes/stack_resolver.h"

#include <algorithm>

namespace tributary {
namespace {

constexpr uint64_t kPageBytes = 4096;
// Nothing is mapped below vm.mmap_min_addr, nor above 2^56 on any architecture: a chain that leads there is broken, and
// waiting does not mend it.
constexpr uint64_t kLowestUserAddress = 65'536;

bool MayBeMapped(uint64_t address) { return address >= kLowestUserAddress && address >> 56 == 0; }

CodeFilePtr MakeKernelFile(const ExecutableId& id, std::string path) {
  auto executable = std::make_shared<CodeFile>();
  executable->id = id;
  executable->path = std::move(path);
  executable->state = CodeFile::State::kReady;
  return executable;
}

}  // namespace

StackResolver::StackResolver(KernelLayout kernel) { SetKernel(std::move(kernel)); }

void StackResolver::SetKernel(KernelLayout kernel) {
  kernel_ = std::move(kernel);
  kernel_executable_ = MakeKernelFile(kernel_.id, "[kernel]");
  module_executables_.clear();
  for (const KernelModule& module : kernel_.modules) {
    module_executables_.push_back(MakeKernelFile(module.id, "[" + module.name + "]"));
  }
}

ResolvedFrame StackResolver::KernelFrame(uint64_t address, bool is_caller) {
  // A call may be a function's last instruction: the address it returns to is then past the function, or past the text.
  uint64_t probe = is_caller ? address - 1 : address;
  if (probe >= kernel_.text_begin && probe < kernel_.text_end && kernel_.id.known()) {
    return {FrameKind::kKernel, is_caller, kernel_executable_.get(), address - kernel_.text_begin};
  }
  auto it = std::upper_bound(kernel_.modules.begin(), kernel_.modules.end(), probe,
                             [](uint64_t a, const KernelModule& m) { return a < m.base; });
  if (it != kernel_.modules.begin()) {
    const KernelModule& module = *--it;
    if (probe - module.base < module.size && module.id.known()) {
      size_t index = static_cast<size_t>(it - kernel_.modules.begin());
      return {FrameKind::kKernel, is_caller, module_executables_[index].get(), address - module.base};
    }
  }
  ++unknown_kernel_frames_;
  return {FrameKind::kUnknown, is_caller, nullptr, address};
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
    uint64_t probe = is_caller && address != 0 ? address - 1 : address;
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
  for (size_t i = stack.kernel.size(); i-- > 0;) out->frames.push_back(KernelFrame(stack.kernel[i], i != 0));
}

}  // namespace tributary
