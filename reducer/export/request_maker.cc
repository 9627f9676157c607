#include "reducer/export/request_maker.h"

#include <algorithm>
#include <string>

#include "reducer/metadata/labels.h"

namespace tributary {
namespace {

constexpr size_t kEncodedBytesMax =
    8u << 20;  // some 30,000 resources; with their attributes they take about 4 times this

}  // namespace

RequestMaker::RequestMaker(const ShardScan& scan, SymbolLookup symbols, const ResourceJoiner* joiner,
                           JoinedProcesses joined, otlp::ProfilesBuilder::Options options)
    : scan_(scan),
      locations_(std::move(symbols)),
      options_(std::move(options)),
      joined_before_(std::move(joined)),
      joined_(scan.processes_.size()) {
  if (joiner != nullptr) resource_cache_.emplace(*joiner, scan.range());
  for (const auto& [no, trie] : scan.tries_) {
    Day& day = days_[no];
    day.trie = &trie;
    day.resolved.resize(trie.frame_rows.size());
  }
}

RequestMaker::Made RequestMaker::Next(const std::optional<store::Cursor>& end) {
  if (chunk_ == scan_.chunks_.size()) return {};
  BeginRequest();
  Made made;
  made.begin = scan_.CursorAt(chunk_, row_);
  const auto is_full = [&] {
    if (!end) return builder_->full();
    store::Cursor at = scan_.chunks_[chunk_].begin;
    at.rows += row_;
    return builder_->bytes() >= options_.bytes_hard || !at.IsBefore(*end);
  };
  while (chunk_ < scan_.chunks_.size() && !is_full()) {
    const ShardScan::Chunk& chunk = scan_.chunks_[chunk_];
    BeginChunk(chunk);
    while (row_ < chunk.columns.times.size() && !is_full()) {
      AddRow(chunk, row_++);
      ++made.rows;
    }
    if (row_ == chunk.columns.times.size()) {
      row_ = 0;
      ++chunk_;
    }
  }
  made.samples = builder_->sample_count();
  made.dropped_strings = builder_->dropped_strings();
  made.request = std::make_unique<otlp::BuiltRequest>(builder_->FinishBuilt());
  made.next = scan_.CursorAt(chunk_, row_);
  return made;
}

void RequestMaker::BeginRequest() {
  builder_ = builder_ == nullptr ? std::make_unique<otlp::ProfilesBuilder>(options_)
                                 : std::make_unique<otlp::ProfilesBuilder>(options_, builder_->ReleaseTable());
  locations_.BeginRequest();
  resources_.assign(encoded_.size(), kNotAdded);
  threads_.assign(scan_.threads_.size(), kNotAdded);
  own_cache_.clear();
  for (auto& [no, day] : days_) {
    day.stacks.assign(day.trie->parents.size(), kNotAdded);
    day.locations.assign(day.trie->frame_rows.size(), kNotAdded);
  }
}

void RequestMaker::BeginChunk(const ShardScan::Chunk& chunk) {
  day_ = &days_.at(chunk.columns.day);
  const auto type = scan_.types_.find(chunk.columns.type);
  type_ = builder_->AddType(type != scan_.types_.end() ? type->second : SampleTypeInfo{"unknown", "unknown"});
}

void RequestMaker::AddRow(const ShardScan::Chunk& chunk, size_t row) {
  const store::SampleColumns& columns = chunk.columns;
  const uint32_t thread = chunk.threads[row];
  const uint32_t process = scan_.threads_[thread].process;
  otlp::ProfilesBuilder::SampleInfo sample;
  sample.resource = scan_.processes_[process] ? ResourceOf(process, columns.times[row])
                                              : builder_->AddResource({{"host.id", chunk.node_id}});
  sample.attributes = builder_->AddEnding(Thread(thread), columns.endings[row]);
  if (!columns.attributes.empty() && columns.attributes[row].value != 0) {
    const otlp::Annotations annotations = AddOwn(sample.attributes, columns.attributes[row]);
    sample.attributes = annotations.attributes;
    sample.link = annotations.link;
  }
  sample.stack = Stack(columns.nodes[row]);
  sample.type = type_;
  sample.time = columns.times[row];
  sample.value = columns.values[row];
  sample.count = columns.counts[row];
  builder_->AddSample(sample);
}

otlp::Annotations RequestMaker::AddOwn(otlp::AttributesIndex others, store::StringId own) {
  auto [cached, added] = own_cache_.try_emplace({others, own});
  if (added) cached->second = otlp::AddAnnotations(others, scan_.own_.at(own), *builder_);
  return cached->second;
}

otlp::ResourceIndex RequestMaker::ResourceOf(uint32_t process, UnixNs time) {
  Joined& joined = joined_[process];
  if (joined.state_count == 0) Join(process);
  uint32_t state = joined.first_state;
  const uint32_t last = joined.first_state + joined.state_count - 1;
  while (state < last && states_[state + 1].from.value <= time.value) ++state;
  int32_t& index = resources_[states_[state].encoded];
  if (index == kNotAdded) index = builder_->AddEncodedResource(encoded_[states_[state].encoded]).value;
  return otlp::ResourceIndex(index);
}

void RequestMaker::Join(uint32_t process) {
  if (encoded_bytes_ > kEncodedBytesMax) ForgetResources();
  const store::ProcessRow& row = *scan_.processes_[process];
  joined_[process].first_state = static_cast<uint32_t>(states_.size());
  if (resource_cache_) {
    const bool is_joined = process < joined_before_.size() && joined_before_[process] != nullptr;
    const std::shared_ptr<const ResourceStates> states = is_joined ? joined_before_[process] : resource_cache_->Of(row);
    for (const ResourceState& state : *states) {
      states_.push_back({.from = state.from, .encoded = Encode(state.resource)});
    }
  } else {
    auto resource = std::make_shared<Resource>();
    resource->attributes = {{"container.id", LabelValue(Label::kContainerId, row)},
                            {"host.name", LabelValue(Label::kHostName, row)},
                            {"host.id", LabelValue(Label::kHostId, row)}};
    states_.push_back({.from = kTimeBegin, .encoded = Encode(std::move(resource))});
  }
  joined_[process].state_count = static_cast<uint32_t>(states_.size()) - joined_[process].first_state;
}

// Returns the index of the resource in encoded_. The map keeps the resource, so that its address stays its own.
uint32_t RequestMaker::Encode(std::shared_ptr<const Resource> resource) {
  const Attributes& attributes = resource->attributes;
  const auto [it, added] = encoded_indices_.try_emplace(std::move(resource), static_cast<uint32_t>(encoded_.size()));
  if (added) {
    encoded_.push_back(otlp::ProfilesBuilder::EncodeResource(attributes));
    encoded_bytes_ += encoded_.back().bytes.size();
    resources_.push_back(kNotAdded);
  }
  return it->second;
}

// Processes may have so many resources, such as one each, that not all are kept.
void RequestMaker::ForgetResources() {
  encoded_.clear();
  encoded_bytes_ = 0;
  encoded_indices_.clear();
  states_.clear();
  joined_.assign(joined_.size(), {});
  resources_.clear();
}

otlp::AttributesIndex RequestMaker::Thread(uint32_t index) {
  int32_t& added = threads_[index];
  if (added != kNotAdded) return otlp::AttributesIndex(added);
  const ShardScan::Thread& thread = scan_.threads_[index];
  otlp::ThreadInfo info;
  std::string executable_name, executable_path, thread_name;
  if (const auto& process = scan_.processes_[thread.process]) {
    info.executable_name = executable_name = LabelValue(Label::kProcessExecutableName, *process);
    info.executable_path = executable_path = LabelValue(Label::kProcessExecutablePath, *process);
    info.pid = process->pid;
  }
  if (thread.row) {
    info.thread_name = thread_name = LabelValue(Label::kThreadName, *thread.row);
    info.tid = thread.row->tid;
  }
  added = builder_->AddThread(info).value;
  return otlp::AttributesIndex(added);
}

otlp::StackIndex RequestMaker::Stack(store::NodeNo leaf) {
  int32_t& added = day_->stacks[leaf.value];
  if (added != kNotAdded) return otlp::StackIndex(added);
  const store::Trie& trie = *day_->trie;
  auto kind_of = [&trie](store::NodeNo node) { return trie.frame_rows[trie.frames[node.value]].kind; };
  bool folds = false;
  for (store::NodeNo node = leaf; options_.fold_interpreters && node.value != 0; node = trie.parents[node.value]) {
    folds |= RowOf(kind_of(node)).is_interpreted;
  }
  stack_.clear();
  for (store::NodeNo node = leaf; node.value != 0 && stack_.size() < otlp::ProfilesBuilder::kStackFramesMax;
       node = trie.parents[node.value]) {
    if (folds && kind_of(node) == FrameKind::kInterpreter) continue;
    stack_.push_back(Location(trie.frames[node.value]));
  }
  added = builder_->AddStack(stack_).value;
  return otlp::StackIndex(added);
}

otlp::LocationIndex RequestMaker::Location(uint32_t frame) {
  int32_t& added = day_->locations[frame];
  if (added != kNotAdded) return otlp::LocationIndex(added);
  std::optional<otlp::FrameLocations::Resolved>& resolved = day_->resolved[frame];
  if (!resolved) {
    const store::FrameRow row = day_->trie->frame_rows[frame];
    static const store::ExecutableRow kNoFile;
    const bool has_file = row.executable.value < scan_.executable_rows_.size();
    const store::ExecutableRow& executable = has_file ? scan_.executable_rows_[row.executable.value] : kNoFile;
    const auto named = scan_.frame_names_.find(row.name);
    const std::string_view own_name = named != scan_.frame_names_.end() ? named->second : std::string_view();
    resolved = locations_.Resolve(row, executable.id, executable.path, own_name);
  }
  added = locations_.Add(*resolved, *builder_).value;
  return otlp::LocationIndex(added);
}

}  // namespace tributary
