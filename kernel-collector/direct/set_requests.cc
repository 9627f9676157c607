#include "kernel-collector/direct/set_requests.h"

#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace tributary {

SetRequests::Made SetRequests::Next() {
  Made made;
  otlp::ProfilesBuilder builder(options_);
  builder_ = &builder;
  locations_.BeginRequest();
  ForgetIndices();
  while (!sets_.empty() && !builder.full()) {
    AddSet(made);
    if (next_ < set().samples.size()) break;
    sets_ = sets_.subspan(1);
    next_ = 0;
    resolved_.clear();
    ForgetIndices();
  }
  builder_ = nullptr;
  if (builder.sample_count() == 0) return made;
  made.dropped_strings = builder.dropped_strings();
  made.request = builder.Finish();
  return made;
}

// Adds samples of the current set, until the request is full.
void SetRequests::AddSet(Made& made) {
  const std::span<const Sample> samples(set().samples);
  const size_t begin = next_;
  while (next_ < samples.size() && !builder_->full()) Add(samples[next_++]);
  made.samples += CountSamples(samples.subspan(begin, next_ - begin));
}

void SetRequests::ForgetIndices() {
  resource_cache_.clear();
  thread_cache_.clear();
  own_cache_.clear();
  stack_cache_.clear();
  location_cache_.clear();
}

void SetRequests::Add(const Sample& sample) {
  otlp::ProfilesBuilder::SampleInfo info;
  info.resource = Resource(set().definitions.threads[sample.thread.value].process);
  info.attributes = builder_->AddEnding(Thread(sample.thread), sample.ending);
  if (sample.attributes.value != 0) {
    auto [cached, added] = own_cache_.try_emplace({info.attributes, sample.attributes});
    if (added) {
      cached->second =
          otlp::AddAnnotations(info.attributes, set().definitions.strings[sample.attributes.value], *builder_);
    }
    info.attributes = cached->second.attributes;
    info.link = cached->second.link;
  }
  info.stack = Stack(sample.node);
  info.type = builder_->AddType(set().TypeOf(sample.type));
  info.time = set().TimeOf(sample);
  info.value = sample.value;
  info.count = sample.count;
  builder_->AddSample(info);
}

otlp::ResourceIndex SetRequests::Resource(ProcessRef process) {
  static const Attributes kNone;
  const bool is_known = process.value != 0;
  const uint32_t index = is_known ? set().resource_of[process.value] : UINT32_MAX;
  auto [cached, added] = resource_cache_.try_emplace(index);
  if (added) cached->second = builder_->AddResource(is_known ? set().resources[index] : kNone);
  return cached->second;
}

otlp::AttributesIndex SetRequests::Thread(ThreadRef ref) {
  auto [cached, added] = thread_cache_.try_emplace(ref);
  if (!added) return cached->second;
  const tributary::Thread& thread = set().definitions.threads[ref.value];
  const Process& process = set().definitions.processes[thread.process.value];
  const std::string_view path = set().definitions.strings[process.executable_path.value];
  otlp::ThreadInfo info{.thread_name = set().definitions.strings[thread.name.value],
                        .executable_name = path.substr(path.rfind('/') + 1),  // npos + 1 = 0
                        .executable_path = path};
  if (process.key.pid.value != 0) info.pid = process.key.pid;
  if (thread.tid.value != 0) info.tid = thread.tid;
  return cached->second = builder_->AddThread(info);
}

otlp::StackIndex SetRequests::Stack(NodeRef leaf) {
  auto [cached, added] = stack_cache_.try_emplace(leaf);
  if (!added) return cached->second;
  const Definitions& of = set().definitions;
  auto kind_of = [&of](NodeRef node) { return of.frames[of.nodes[node.value].frame.value].kind; };
  bool folds = false;
  for (NodeRef node = leaf; options_.fold_interpreters && node.value != 0; node = of.nodes[node.value].parent) {
    folds |= RowOf(kind_of(node)).is_interpreted;
  }
  std::vector<otlp::LocationIndex> locations;
  for (NodeRef node = leaf; node.value != 0 && locations.size() < otlp::ProfilesBuilder::kStackFramesMax;
       node = of.nodes[node.value].parent) {
    if (folds && kind_of(node) == FrameKind::kInterpreter) continue;
    locations.push_back(Location(of.nodes[node.value].frame));
  }
  return cached->second = builder_->AddStack(locations);
}

otlp::LocationIndex SetRequests::Location(FrameRef ref) {
  auto [cached, added] = location_cache_.try_emplace(ref);
  if (!added) return cached->second;
  const Frame& frame = set().definitions.frames[ref.value];
  const Executable& executable = set().definitions.executables[frame.executable.value];
  const std::string_view own_name = FrameSymbolizer::OwnName(set().definitions.strings[frame.name.value]);
  auto [resolved, is_new] = resolved_.try_emplace(ref);
  if (is_new) {
    resolved->second =
        locations_.Resolve(frame, executable.id, set().definitions.strings[executable.path.value], own_name);
  }
  cached->second = locations_.Add(resolved->second, *builder_);
  on_named_();  // also if the frame is known: its names are read again, from the pages of its table
  return cached->second;
}

}  // namespace tributary
