#include "intake/spool/spool_writer.h"

#include <algorithm>

#include "intake/codec/event_columns.h"
#include "intake/spool/spool_segment.h"

namespace tributary::intake {

std::optional<std::string> SegmentWriter::Encode(const Batch& batch) {
  Prepare(batch.dictionary);
  const Dictionary& from = *batch.dictionary;
  Batch out;
  out.sequence = batches_ + 1;
  out.clock = batch.clock;
  out.closes = batch.closes;
  out.sample_types = batch.sample_types;
  out.dictionary = dictionary_;
  out.samples = batch.samples;
  for (Sample& sample : out.samples) {
    sample.thread = Map(from, sample.thread);
    sample.node = Map(from, sample.node);
    sample.attributes = Map(from, sample.attributes);
  }
  out.events = batch.events;
  for (ProcessEvent& event : out.events) ForEachString(event, [&](StringRef& ref) { ref = Map(from, ref); });
  // An empty segment can hold all definitions that a batch can refer to, because both dictionaries have the same
  // limits.
  if (dictionary_->full() && batches_ > 0) return std::nullopt;
  const std::vector<std::string> frames = encoder_.Encode(out);
  out.accounting = batch.accounting;  // only the record's prefix contains it
  return EncodeRecord(segment_, ++batches_, out, frames);
}

void SegmentWriter::Prepare(const std::shared_ptr<const Dictionary>& source) {
  if (memo_.source.lock() != source) {
    memo_ = Memo();
    memo_.source = source;
  }
  ForEachTable([](std::vector<uint32_t>& ids, uint32_t count) { ids.resize(count); }, memo_, source->counts());
}

StringRef SegmentWriter::Map(const Dictionary& from, StringRef ref) {
  uint32_t& known = memo_.strings[ref.value];
  if (known == 0 && ref.value != 0) known = dictionary_->InternString(from.string(ref)).value;
  return StringRef{known};
}

ExecutableRef SegmentWriter::Map(const Dictionary& from, ExecutableRef ref) {
  uint32_t& known = memo_.executables[ref.value];
  if (known == 0 && ref.value != 0) {
    const Executable& executable = from.executable(ref);
    known = dictionary_->InternExecutable(executable.id, from.string(executable.path)).value;
  }
  return ExecutableRef{known};
}

FrameRef SegmentWriter::Map(const Dictionary& from, FrameRef ref) {
  uint32_t& known = memo_.frames[ref.value];
  if (known == 0 && ref.value != 0) {
    tributary::Frame frame = from.frame(ref);
    ForEachRef(frame, [&](auto& executable_or_text) { executable_or_text = Map(from, executable_or_text); });
    known = dictionary_->InternFrame(frame).value;
  }
  return FrameRef{known};
}

NodeRef SegmentWriter::Map(const Dictionary& from, NodeRef ref) {
  path_.clear();
  for (; ref.value != 0 && memo_.nodes[ref.value] == 0; ref = from.node(ref).parent) path_.push_back(ref);
  NodeRef mapped{memo_.nodes[ref.value]};
  for (auto node = path_.rbegin(); node != path_.rend(); ++node) {
    mapped = dictionary_->InternNode(Node{mapped, Map(from, from.node(*node).frame)});
    memo_.nodes[node->value] = mapped.value;
  }
  return mapped;
}

ProcessRef SegmentWriter::Map(const Dictionary& from, ProcessRef ref) {
  uint32_t& known = memo_.processes[ref.value];
  if (known == 0 && ref.value != 0) {
    Process process = from.process(ref);
    ForEachRef(process, [&](auto& text_or_executable) { text_or_executable = Map(from, text_or_executable); });
    known = dictionary_->InternProcess(process).value;
  }
  return ProcessRef{known};
}

ThreadRef SegmentWriter::Map(const Dictionary& from, ThreadRef ref) {
  uint32_t& known = memo_.threads[ref.value];
  if (known == 0 && ref.value != 0) {
    Thread thread = from.thread(ref);
    ForEachRef(thread, [&](auto& to) { to = Map(from, to); });
    known = dictionary_->InternThread(thread).value;
  }
  return ThreadRef{known};
}

}  // namespace tributary::intake
