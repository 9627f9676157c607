#include "kernel-collector/direct/set_requests.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tributary {

SetRequests::Made SetRequests::Next() {
  if (next_ == set_.samples.size()) return {};
  otlp::ProfilesBuilder builder(options_);
  builder_ = &builder;
  locations_.BeginRequest();
  resource_cache_.clear();
  thread_cache_.clear();
  own_cache_.clear();
  stack_cache_.clear();
  location_cache_.clear();
  const size_t begin = next_;
  while (next_ < set_.samples.size() && !builder.full()) Add(set_.samples[next_++]);
  Made made;
  made.samples = CountSamples(std::span(set_.samples).subspan(begin, next_ - begin));
  made.dropped_strings = builder.dropped_strings();
  made.request = builder.Finish();
  builder_ = nullptr;
  return made;
}

void SetRequests::Add(const Sample& sample) {
  otlp::ProfilesBuilder::SampleInfo info;
  info.resource = Resource(set_.definitions.threads[sample.thread.value].process);
  info.attributes = builder_->AddEnding(Thread(sample.thread), sample.ending);
  if (sample.attributes.value != 0) {
    auto [cached, added] = own_cache_.try_emplace({info.attributes, sample.attributes});
    if (added) {
      cached->second =
          otlp::AddAnnotations(info.attributes, set_.definitions.strings[sample.attributes.value], *builder_);
    }
    info.attributes = cached->second.attributes;
    info.link = cached->second.link;
  }
  info.stack = Stack(sample.node);
  info.type = builder_->AddType(set_.TypeOf(sample.type));
  info.time = set_.TimeOf(sample);
  info.value = sample.value;
  info.count = sample.count;
  builder_->AddSample(info);
}

otlp::ResourceIndex SetRequests::Resource(ProcessRef process) {
  static const Attributes kNone;
  const bool is_known = process.value != 0;
  const uint32_t index = is_known ? set_.resource_of[process.value] : UINT32_MAX;
  auto [cached, added] = resource_cache_.try_emplace(index);
  if (added) cached->second = builder_->AddResource(is_known ? set_.resources[index] : kNone);
  return cached->second;
}

otlp::AttributesIndex SetRequests::Thread(ThreadRef ref) {
  auto [cached, added] = thread_cache_.try_emplace(ref);
  if (!added) return cached->second;
  const tributary::Thread& thread = set_.definitions.threads[ref.value];
  const Process& process = set_.definitions.processes[thread.process.value];
  const std::string& path = set_.definitions.strings[process.executable_path.value];
  otlp::ThreadInfo info{.thread_name = set_.definitions.strings[thread.name.value],
                        .executable_name = path.substr(path.rfind('/') + 1),  // npos + 1 = 0
                        .executable_path = path};
  if (process.key.pid.value != 0) info.pid = process.key.pid;
  if (thread.tid.value != 0) info.tid = thread.tid;
  return cached->second = builder_->AddThread(info);
}

otlp::StackIndex SetRequests::Stack(NodeRef leaf) {
  auto [cached, added] = stack_cache_.try_emplace(leaf);
  if (!added) return cached->second;
  std::vector<otlp::LocationIndex> locations;
  for (NodeRef node = leaf; node.value != 0 && locations.size() < otlp::ProfilesBuilder::kStackFramesMax;
       node = set_.definitions.nodes[node.value].parent) {
    locations.push_back(Location(set_.definitions.nodes[node.value].frame));
  }
  return cached->second = builder_->AddStack(locations);
}

otlp::LocationIndex SetRequests::Location(FrameRef ref) {
  auto [cached, added] = location_cache_.try_emplace(ref);
  if (!added) return cached->second;
  const Frame& frame = set_.definitions.frames[ref.value];
  const Executable& executable = set_.definitions.executables[frame.executable.value];
  const std::string_view own_name = FrameSymbolizer::OwnName(set_.definitions.strings[frame.name.value]);
  auto [resolved, is_new] = resolved_.try_emplace(ref);
  if (is_new) {
    resolved->second =
        locations_.Resolve(frame, executable.id, set_.definitions.strings[executable.path.value], own_name);
  }
  return cached->second = locations_.Add(resolved->second, *builder_);
}

}  // namespace tributary
