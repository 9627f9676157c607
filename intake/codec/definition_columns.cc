#include "intake/codec/definition_columns.h"

#include "base/varint.h"

namespace tributary::intake {
namespace {

// An upper bound for the bytes of a frame in its columns.
constexpr size_t kFrameBytesMax = 26;
// An upper bound for the bytes of a string's number.
constexpr size_t kAttributesRefBytesMax = 5;

}  // namespace

void DefinitionColumns::PutEviction(const Eviction& eviction) {
  ForEachTable(
      [this](const KeptIds& ids) {
        AppendVarint(evicted_, ids.before());
        for (uint32_t run : ids.runs()) AppendVarint(evicted_, run);
      },
      eviction);
}

bool DefinitionColumns::Fill() {
  const Dictionary& d = dictionary_;
  return FillTable(d.string_count(), &after_.strings, [this](uint32_t i) { AddString(i); }) &&
         FillTable(d.executable_count(), &after_.executables, [this](uint32_t i) { AddExecutable(i); }) &&
         FillTable(d.frame_count(), &after_.frames, [](uint32_t) {}) && FillNodes() &&
         FillTable(d.process_count(), &after_.processes, [this](uint32_t i) { AddProcess(i); }) &&
         FillTable(d.thread_count(), &after_.threads, [this](uint32_t i) { AddThread(i); });
}

// Chains are not split over messages: the end of a chain is needed to encode its frames. The longest chain that a
// dictionary's limits allow takes under 3 MiB.
bool DefinitionColumns::FillNodes() {
  for (uint32_t& next = after_.nodes; next < dictionary_.node_count(); ++next) {
    if (bytes() >= kBytesMax && StartsChain(next)) return false;
    AddNode(next);
  }
  return true;
}

bool DefinitionColumns::StartsChain(uint32_t node) const {
  return node == before_.nodes || dictionary_.node(NodeRef{node}).parent.value != node - 1;
}

size_t DefinitionColumns::bytes() const {
  return evicted_.size() + string_lengths_.size() + string_bytes_.size() + executables_.size() + frame_kinds_.size() +
         frame_executables_.size() + frame_addresses_.size() + chain_attach_.size() + 5 * leaves_.size() +
         node_frames_.size() + node_frame_ids_.size() + kFrameBytesMax * (after_.frames - next_frame_) +
         processes_.size() + kAttributesRefBytesMax * (after_.processes - before_.processes) + threads_.size() +
         frame_positions_.bytes() + frame_names_.bytes();
}

void DefinitionColumns::Write(ColumnWriter& to) {
  AddFramesUpTo(after_.frames);
  std::string before, lengths;
  if (before_ != DictionaryCounts()) {
    ForEachTable([&](uint32_t count) { AppendVarint(before, count); }, before_);
  }
  for (uint32_t first = before_.nodes; uint32_t leaf : leaves_) {
    AppendVarint(lengths, leaf + 1 - first);
    first = leaf + 1;
  }
  to.Put(DefinitionColumn::kBefore, before);
  to.Put(DefinitionColumn::kEvicted, evicted_);
  to.Put(DefinitionColumn::kStringLengths, string_lengths_);
  to.Put(DefinitionColumn::kStringBytes, string_bytes_);
  to.Put(DefinitionColumn::kExecutables, executables_);
  to.Put(DefinitionColumn::kFrameKinds, frame_kinds_);
  to.Put(DefinitionColumn::kFrameExecutables, frame_executables_);
  to.Put(DefinitionColumn::kFrameAddresses, frame_addresses_);
  to.Put(DefinitionColumn::kChainAttach, chain_attach_);
  to.Put(DefinitionColumn::kChainLengths, lengths);
  to.Put(DefinitionColumn::kNodeFrames, node_frames_);
  to.Put(DefinitionColumn::kProcesses, processes_);
  to.Put(DefinitionColumn::kThreads, threads_);
  to.Put(DefinitionColumn::kNodeFrameIds, node_frame_ids_);
  to.Put(DefinitionColumn::kProcessAttributes, std::move(process_attributes_).Take());
  to.Put(DefinitionColumn::kFramePositions, std::move(frame_positions_).Take());
  to.Put(DefinitionColumn::kFrameNames, std::move(frame_names_).Take());
}

void DefinitionColumns::AddString(uint32_t i) {
  const std::string_view text = dictionary_.string(StringRef{i});
  AppendVarint(string_lengths_, text.size());
  string_bytes_.append(text);
}

void DefinitionColumns::AddExecutable(uint32_t i) {
  const Executable& executable = dictionary_.executable(ExecutableRef{i});
  AppendVarint(executables_, static_cast<uint64_t>(executable.id.kind()));
  AppendVarint(executables_, executable.id.bytes().size());
  executables_.append(executable.id.view());
  AppendVarint(executables_, executable.path.value);
}

void DefinitionColumns::AddFrame(const FrameContext& context) {
  const tributary::Frame& frame = dictionary_.frame(FrameRef{next_frame_++});
  const FramePlace& base = context.base();
  const uint32_t executable = frame.executable.value;
  const bool same = base.executable != 0 && base.executable == executable;
  const uint8_t expected = same ? base.kind : static_cast<uint8_t>(FrameKind::kNative);
  AppendVarint(frame_kinds_,
               static_cast<uint64_t>(KindOf(frame) ^ expected) << 1 | (frame.is_caller == context.is_leaf ? 1 : 0));
  AppendVarint(frame_executables_, same ? 0 : uint64_t{executable} + 1);
  AppendSignedVarint(frame_addresses_,
                     static_cast<int64_t>(frame.address - last_addresses_.BaseOf(context, executable)));
  last_addresses_.Set(executable, frame.address);
  frame_positions_.Add(frame.position);
  frame_names_.Add(frame.name.value);
}

void DefinitionColumns::AddFramesUpTo(uint32_t end) {
  while (next_frame_ < end) AddFrame({});
}

void DefinitionColumns::AddNode(uint32_t i) {
  const Node node = dictionary_.node(NodeRef{i});
  if (StartsChain(i)) {
    AppendVarint(chain_attach_, i - node.parent.value);
    leaves_.push_back(i);
  } else {
    leaves_.back() = i;
  }
  const FrameRef parent = dictionary_.node(node.parent).frame;
  const uint32_t rank = node.frame.value != 0 ? followers_.RankOf(parent, node.frame) : Followers::kMax;
  if (node.frame.value == next_frame_) {
    AppendVarint(node_frames_, kFrameNew);
    const FrameRef guessed{followers_.At(parent, 0)};
    AddFrame({.guessed = PlaceOf(guessed),
              .parent = PlaceOf(parent),
              .is_leaf = i + 1 == dictionary_.node_count() || StartsChain(i + 1)});
  } else if (rank < Followers::kMax) {
    AppendVarint(node_frames_, kFrameFollower + rank);
  } else {
    AppendVarint(node_frames_, kFrameById);
    AppendVarint(node_frame_ids_, after_.frames - 1 - node.frame.value);
    AddFramesUpTo(node.frame.value + 1);
  }
  followers_.Learn(parent, node.frame);
}

void DefinitionColumns::AddProcess(uint32_t i) {
  const Process& process = dictionary_.process(ProcessRef{i});
  process_coder_.Write(process, processes_);
  process_attributes_.Add(process.attributes.value);
}

void DefinitionColumns::AddThread(uint32_t i) {
  const Thread& thread = dictionary_.thread(ThreadRef{i});
  const bool is_new = thread.process.value >= before_.processes;
  thread_coder_.Write(thread, is_new ? &dictionary_.process(thread.process) : nullptr, threads_);
}

}  // namespace tributary::intake
