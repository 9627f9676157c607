#include "kernel-collector/runtimes/stack_mixer.h"

#include <algorithm>

#include "kernel-collector/runtimes/segment_pairs.h"

namespace tributary {
namespace {

const RuntimeBinaryPtr* RuntimeOf(const ResolvedFrame& frame) {
  if (frame.kind != FrameKind::kNative || frame.executable == nullptr) return nullptr;
  return frame.executable->runtime == nullptr ? nullptr : &frame.executable->runtime;
}

size_t CountUserFrames(const ResolvedStack& stack) {
  size_t count = stack.frames.size();
  while (count > 0 && stack.frames[count - 1].kind == FrameKind::kKernel) --count;
  return count;
}

}  // namespace

StackMixer::StackMixer(RuntimeSlots& slots, RuntimeObjects& objects, Metrics& metrics)
    : slots_(slots),
      objects_(objects),
      foreign_chains_(metrics.AddCounter("tributary_collector_runtime_chains_ignored_total",
                                         "Lists of frames of a language runtime in samples that were ignored, because "
                                         "the collector did not know the runtime any more")) {}

size_t StackMixer::Mix(const Sample& sample, ProcessRun& run, ResolvedStack* stack) {
  unnamed_ = refused_ = ignored_chains_ = 0;
  const size_t user_frames = CountUserFrames(*stack);
  const bool has_runtime =
      std::any_of(stack->frames.begin(), stack->frames.begin() + static_cast<ptrdiff_t>(user_frames),
                  [](const ResolvedFrame& frame) { return RuntimeOf(frame) != nullptr; });
  if (user_frames == 0 || (!has_runtime && sample.chains.empty())) return 0;
  part_count_ = 0;
  inserted_.clear();
  FindLoops(*stack, user_frames);
  AddChains(sample.chains);
  bool is_lost = false;
  for (size_t i = 0; i < part_count_; ++i) is_lost |= Place(parts_[i], *stack, user_frames);
  Build(sample, run, user_frames, stack);
  KeepNativeWithoutNames(stack);
  for (size_t i = 0; i < part_count_ && sample.executable != nullptr; ++i) {
    if (!parts_[i].loops.empty()) slots_.Expect(*sample.executable, parts_[i].binary);
  }
  is_lost |= unnamed_ > 0;
  if (is_lost && stack->ending == Ending::kComplete) stack->ending = Ending::kRuntimeLost;
  return unnamed_;
}

void StackMixer::CountSample() {
  if (ignored_chains_ > 0) foreign_chains_.Add(ignored_chains_);
  if (refused_ > 0) objects_.CountRefused(refused_);
}

StackMixer::Part& StackMixer::PartOf(const RuntimeBinaryPtr& binary) {
  for (size_t i = 0; i < part_count_; ++i) {
    if (parts_[i].binary == binary) return parts_[i];
  }
  if (part_count_ == parts_.size()) parts_.emplace_back();
  Part& part = parts_[part_count_++];
  part.binary = binary;
  part.loops.clear();
  part.has_chain = false;
  part.is_complete = true;
  part.frames.clear();
  part.segments.clear();
  part.innermost = SIZE_MAX;
  part.has_name = false;
  return part;
}

void StackMixer::FindLoops(const ResolvedStack& stack, size_t user_frames) {
  for (size_t i = user_frames; i-- > 0;) {
    const ResolvedFrame& frame = stack.frames[i];
    const RuntimeBinaryPtr* binary = RuntimeOf(frame);
    if (binary == nullptr || !(*binary)->IsLoop(LookupAddress(frame.address, frame.is_caller))) continue;
    PartOf(*binary).loops.push_back(i);
  }
}

// A process may have several chains of one runtime: one for each subinterpreter that the thread runs. The innermost
// comes first.
void StackMixer::AddChains(std::span<const uint64_t> words) {
  RuntimeChains chains(words);
  while (const std::optional<RuntimeChain> chain = chains.Next()) {
    const RuntimeBinaryPtr* binary = slots_.Find(chain->runtime);
    if (binary == nullptr) {
      ++ignored_chains_;
      continue;
    }
    Part& part = PartOf(*binary);
    part.has_chain = true;
    part.is_complete &= chain->end == TRIB_CHAIN_COMPLETE;
    size_t first = part.frames.size();
    for (size_t i = 0; i < chain->size(); ++i) {
      const RuntimeFrame frame = chain->At(i);
      if (frame.code != 0) part.frames.push_back(frame);
      if (!frame.is_entry && i + 1 < chain->size()) continue;
      part.segments.emplace_back(first, part.frames.size());
      first = part.frames.size();
    }
  }
}

bool StackMixer::Place(Part& part, const ResolvedStack& stack, size_t user_frames) {
  const bool stack_is_complete = stack.ending == Ending::kComplete;
  const PairInput input{.loops = part.loops.size(),
                        .segments = part.segments.size(),
                        .stack_is_complete = stack_is_complete,
                        .chain_is_complete = part.is_complete,
                        .innermost_is_leaf = !part.loops.empty() && part.loops.front() + 1 == user_frames};
  const SegmentPairs pairs = PairSegments(input);
  const auto insert = [&](size_t before, const SegmentPairs::Range& range) {
    if (range.count == 0) return;
    const size_t first = part.segments[range.first].first;
    const size_t last = part.segments[range.first + range.count - 1].second;
    if (first == last) return;  // the loop has just ended its last frame
    inserted_.push_back({before, &part, first, last});
    if (part.innermost == SIZE_MAX && before > 0) part.innermost = before - 1;
  };
  for (size_t loop = 0; loop < part.loops.size(); ++loop) {
    insert(part.loops[loop] + 1, pairs.of_loop[loop]);
  }
  // Of an incomplete stack, the outermost frames are missing: so are the loops of these segments.
  size_t outside = stack_is_complete && !part.loops.empty() ? part.loops.back() : 0;
  if (stack_is_complete && part.loops.empty()) {
    // No loop was recognised. The interpreter's innermost frame is the nearest known place.
    for (size_t i = user_frames; i-- > 0 && outside == 0;) {
      const RuntimeBinaryPtr* binary = RuntimeOf(stack.frames[i]);
      if (binary != nullptr && *binary == part.binary) outside = i + 1;
    }
  }
  insert(outside, pairs.outside);
  return (!part.loops.empty() && !part.has_chain) || !part.is_complete || LoopsWithoutSegment(input) > 0 ||
         part.segments.size() > part.loops.size();
}

void StackMixer::Build(const Sample& sample, ProcessRun& run, size_t user_frames, ResolvedStack* stack) {
  // The outer frames of one place come first. Of one part, the insertions are ordered from the innermost to the
  // outermost place, so the reverse order keeps the order of the chain.
  std::reverse(inserted_.begin(), inserted_.end());
  std::stable_sort(inserted_.begin(), inserted_.end(),
                   [](const Inserted& a, const Inserted& b) { return a.before < b.before; });
  mixed_.clear();
  std::swap(mixed_, stack->frames);
  size_t outermost_frames = 0, next = 0;
  for (size_t i = 0; i <= mixed_.size(); ++i) {
    for (; next < inserted_.size() && inserted_[next].before == i; ++next) {
      const Inserted& inserted = inserted_[next];
      for (size_t k = inserted.last; k-- > inserted.first;) {
        AddFrame(sample, run, *inserted.part, inserted.part->frames[k], stack);
      }
    }
    if (i == stack->outermost_frames) outermost_frames = stack->frames.size();
    if (i == mixed_.size()) break;
    ResolvedFrame frame = mixed_[i];
    if (i < user_frames && IsInterpreter(frame, i)) frame.kind = FrameKind::kInterpreter;
    stack->frames.push_back(frame);
  }
  stack->outermost_frames = outermost_frames;
}

// Frames of the kind kInterpreter are hidden, because the language frames say more. Frames without any name do not.
void StackMixer::KeepNativeWithoutNames(ResolvedStack* stack) const {
  if (unnamed_ == 0) return;
  for (ResolvedFrame& frame : stack->frames) {
    if (frame.kind != FrameKind::kInterpreter) continue;
    for (size_t k = 0; k < part_count_; ++k) {
      if (parts_[k].binary == frame.executable->runtime && !parts_[k].has_name) frame.kind = FrameKind::kNative;
    }
  }
}

bool StackMixer::IsInterpreter(const ResolvedFrame& frame, size_t index) const {
  const RuntimeBinaryPtr* binary = RuntimeOf(frame);
  if (binary == nullptr) return false;
  if (!(*binary)->is_only_interpreter && !(*binary)->IsLoop(LookupAddress(frame.address, frame.is_caller)))
    return false;
  for (size_t i = 0; i < part_count_; ++i) {
    const Part& part = parts_[i];
    if (part.binary == *binary) return part.innermost != SIZE_MAX && index <= part.innermost;
  }
  return false;
}

void StackMixer::AddFrame(const Sample& sample, ProcessRun& run, Part& part, const RuntimeFrame& frame,
                          ResolvedStack* stack) {
  const RuntimeObjects::Found found =
      objects_.Find(run, part.binary, CodeObject{frame.code, frame.check}, sample.time, sample.may_read);
  stack->wants_executable |= found.is_later;
  refused_ += found.is_refused ? 1 : 0;
  if (found.function != nullptr && found.function->function->is_hidden) return;
  ResolvedFrame resolved{.kind = part.binary->kind};
  if (found.function == nullptr) {
    ++unnamed_;
  } else {
    part.has_name = true;
    resolved.executable = found.function->source.get();
    resolved.name = found.function->function->name;
    resolved.position = found.function->function->LineAt(frame.position);
  }
  stack->frames.push_back(resolved);
}

}  // namespace tributary
