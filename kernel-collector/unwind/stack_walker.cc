#include "kernel-collector/unwind/stack_walker.h"

#include <algorithm>

#include "kernel-collector/unwind/code_pieces.h"
#include "kernel-collector/unwind/unwind_step.h"
#include "profile/model.h"

namespace tributary {
namespace {

// Returns true if the record's last frame, from which the walk continues, is a return address.
bool LastIsCaller(const SampleRecord& record) {
  const trib_sample& sample = *record.sample;
  if ((record.user().back() & TRIB_FRAME_INTERRUPTED) != 0) return false;
  return sample.user_frames > 1 || (sample.flags & TRIB_FLAG_IN_KERNEL) != 0;
}

}  // namespace

std::optional<uint64_t> StackWalker::RuleAt(uint64_t address, const FindMapping& find, const Unread& unread,
                                            Result* result) {
  const Mapping* mapping = find(address);
  if (mapping == nullptr) {
    result->outcome = Outcome::kWantsMapping;
    return std::nullopt;
  }
  const CodeFilePtr& file = mapping->executable;
  if (file == nullptr || file->state == CodeFile::State::kFailed) return TRIB_RULE_NONE;
  if (file->state != CodeFile::State::kReady) {
    if (file->state == CodeFile::State::kUnread) unread(file);
    result->outcome = Outcome::kWantsFile;
    return std::nullopt;
  }
  CodePiece piece = PieceAt(*mapping, *file, address);
  if (!piece.in_segment || !tables_.FirstPage(file)) return TRIB_RULE_NONE;
  std::optional<uint64_t> rule = tables_.Find(*file, address - piece.bias);
  if (rule) return rule;
  tables_.Request(file, address - piece.bias);
  result->outcome = Outcome::kWantsRows;
  return std::nullopt;
}

void StackWalker::Continue(const SampleRecord& record, const FindMapping& find, const Unread& unread, Result* result) {
  result->outcome = Outcome::kDone;
  result->stop = static_cast<trib_stop>(record.sample->stop);
  result->address = 0;
  result->frames.clear();
  if (record.resume == nullptr || record.user().empty()) return;
  const trib_resume& resume = *record.resume;
  StackCopy copy{resume.sp, record.stack, resume.start_stack, resume.thread_pointer};
  FrameRegisters registers{resume.pc, resume.sp, resume.fp, resume.second, LastIsCaller(record)};
  size_t frames_max = TRIB_USER_FRAMES_MAX - std::min<size_t>(record.user().size(), TRIB_USER_FRAMES_MAX);
  while (true) {
    result->address = LookupAddress(registers.pc, registers.is_caller);
    std::optional<uint64_t> rule = RuleAt(result->address, find, unread, result);
    if (!rule) return;
    StepResult step = StepByRule(*rule, copy, kThisArchitecture, &registers);
    if (!step.stopped && result->frames.size() == frames_max) step = {true, TRIB_STOP_DEPTH};
    if (step.stopped) {
      result->stop = step.stop;
      return;
    }
    result->frames.push_back(registers.is_caller ? registers.pc : registers.pc | TRIB_FRAME_INTERRUPTED);
  }
}

}  // namespace tributary
