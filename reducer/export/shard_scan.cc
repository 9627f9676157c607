#include "reducer/export/shard_scan.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "base/status.h"
#include "reducer/metadata/labels.h"
#include "reducer/store/trie.h"

namespace tributary {
namespace {

constexpr size_t kOwnBytesMax = 32u << 20;  // of samples' own attributes, in one scan of more than one chunk

}  // namespace

absl::StatusOr<std::unique_ptr<ShardScan>> ShardScan::Read(store::StoreReader& reader, const store::Cursor& cursor,
                                                           size_t samples_max) {
  for (bool is_cut = false;; is_cut = true) {
    auto scan = std::make_unique<ShardScan>();
    scan->is_cut_ = is_cut;
    RETURN_IF_ERROR(scan->Collect(reader, cursor, samples_max));
    RETURN_IF_ERROR(scan->LoadOwn(reader));
    if (scan->own_bytes_ > kOwnBytesMax && scan->chunks_.size() > 1) {
      samples_max = scan->row_count_ / 2;
      continue;
    }
    if (scan->row_count_ > 0) {
      RETURN_IF_ERROR(scan->LoadTries(reader));
      RETURN_IF_ERROR(scan->LoadDefinitions(reader));
      RETURN_IF_ERROR(scan->FindExecutables(reader));
    }
    return scan;
  }
}

absl::Status ShardScan::Collect(store::StoreReader& reader, const store::Cursor& cursor, size_t samples_max) {
  const auto add = [this](const store::SampleColumns& columns, const store::Cursor& begin) {
    if (columns.times.empty()) return absl::OkStatus();
    chunks_.push_back(Chunk{std::string(columns.node_id), columns, begin});
    row_count_ += columns.times.size();
    return absl::OkStatus();
  };
  ASSIGN_OR_RETURN(committed_, reader.ScanCommitted(cursor, samples_max, add));
  return absl::OkStatus();
}

// Returns the position of a row, or the position behind the scan if `chunk` is the number of chunks.
store::Cursor ShardScan::CursorAt(size_t chunk, size_t row) const {
  if (chunk == chunks_.size()) return committed_.next;
  store::Cursor cursor = chunks_[chunk].begin;
  cursor.rows += row;
  if (cursor.samples) {
    const std::vector<uint32_t>& counts = chunks_[chunk].columns.counts;
    *cursor.samples += std::accumulate(counts.begin(), counts.begin() + static_cast<ptrdiff_t>(row), uint64_t{0});
  }
  return cursor;
}

// Loads the part of each day's trie that the samples refer to, and writes its node numbers into the samples' columns.
absl::Status ShardScan::LoadTries(store::StoreReader& reader) {
  std::map<store::Day, std::vector<store::NodeNo>> leaves;
  for (const Chunk& chunk : chunks_) {
    std::vector<store::NodeNo>& of_day = leaves[chunk.columns.day];
    of_day.insert(of_day.end(), chunk.columns.nodes.begin(), chunk.columns.nodes.end());
  }
  std::map<store::Day, std::vector<store::NodeNo>> numbers;
  for (const auto& [day, of_day] : leaves) {
    absl::StatusOr<store::TriePart> part = reader.LoadTriePart(day, of_day);
    if (!part.ok() && part.status().code() != absl::StatusCode::kNotFound) return part.status();
    numbers[day] = part.ok() ? std::move(part->nodes) : std::vector<store::NodeNo>(of_day.size());
    tries_[day] = part.ok() ? std::move(part->trie) : store::EmptyTrie();
  }
  std::map<store::Day, size_t> taken;
  for (Chunk& chunk : chunks_) {
    const std::vector<store::NodeNo>& of_day = numbers[chunk.columns.day];
    size_t& next = taken[chunk.columns.day];
    for (store::NodeNo& node : chunk.columns.nodes) node = of_day[next++];
  }
  return absl::OkStatus();
}

absl::Status ShardScan::LoadDefinitions(store::StoreReader& reader) {
  store::TimeRange& range = range_;
  range = {chunks_[0].columns.times[0], chunks_[0].columns.times[0]};
  store::ProcessSet wanted;
  for (const Chunk& chunk : chunks_) {
    for (UnixNs time : chunk.columns.times) {
      range.from = std::min(range.from, time);
      range.to = std::max(range.to, UnixNs{time.value + 1});
    }
    wanted.insert(chunk.columns.processes.begin(), chunk.columns.processes.end());
  }
  ASSIGN_OR_RETURN(std::vector<store::ProcessRow> processes, reader.Processes(range, &wanted));
  processes_.reserve(processes.size());
  for (store::ProcessRow& row : processes) processes_.emplace(row.no, std::move(row));
  ASSIGN_OR_RETURN(std::vector<store::ThreadRow> threads, reader.Threads(range, wanted));
  threads_.reserve(threads.size());
  for (store::ThreadRow& row : threads) threads_.emplace(row.no, std::move(row));
  ASSIGN_OR_RETURN(executable_rows_, reader.Executables());
  ASSIGN_OR_RETURN(types_, reader.SampleTypes());
  return absl::OkStatus();
}

absl::Status ShardScan::LoadOwn(store::StoreReader& reader) {
  for (const Chunk& chunk : chunks_) {
    for (store::StringId id : chunk.columns.attributes) {
      auto [it, added] = own_.try_emplace(id);
      if (!added || id.value == 0) continue;
      ASSIGN_OR_RETURN(it->second, reader.Text(id));
      own_bytes_ += it->second.size();
      if (own_bytes_ > kOwnBytesMax && chunks_.size() > 1) return absl::OkStatus();
    }
  }
  return absl::OkStatus();
}

// Also reads the names that frames came with.
absl::Status ShardScan::FindExecutables(store::StoreReader& reader) {
  std::set<ExecutableId> found;
  for (const auto& [day, trie] : tries_) {
    for (const store::FrameRow& row : trie.frame_rows) {
      if (row.name.value != 0) frame_names_.try_emplace(row.name);
      const uint32_t executable = row.executable.value;
      if (executable < executable_rows_.size() && executable_rows_[executable].id.known()) {
        found.insert(executable_rows_[executable].id);
      }
    }
  }
  executables_.assign(found.begin(), found.end());
  for (auto& [id, name] : frame_names_) {
    ASSIGN_OR_RETURN(const std::string_view text, reader.Text(id));
    name = FrameSymbolizer::OwnName(text);
  }
  return absl::OkStatus();
}

RequestMaker::RequestMaker(const ShardScan& scan, SymbolLookup symbols, const ResourceJoiner* joiner,
                           otlp::ProfilesBuilder::Options options)
    : scan_(scan), locations_(std::move(symbols)), options_(std::move(options)) {
  if (joiner != nullptr) resources_.emplace(*joiner, scan.range());
}

RequestMaker::Made RequestMaker::Next(const std::optional<store::Cursor>& end) {
  if (chunk_ == scan_.chunks_.size()) return {};
  builder_ = std::make_unique<otlp::ProfilesBuilder>(options_);
  // The next request has about as many entries. A table that grows is copied each time.
  const auto empty = [](auto& cache) {
    const size_t size = cache.size();
    cache.clear();
    cache.reserve(size);
  };
  empty(resource_cache_);
  empty(resource_indices_);
  empty(thread_cache_);
  empty(own_cache_);
  empty(stack_cache_);
  empty(location_cache_);
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
    AddRow(chunk, row_);
    ++made.rows;
    if (++row_ == chunk.columns.times.size()) {
      row_ = 0;
      ++chunk_;
    }
  }
  made.samples = builder_->sample_count();
  made.dropped_strings = builder_->dropped_strings();
  made.request = builder_->Finish();
  made.next = scan_.CursorAt(chunk_, row_);
  return made;
}

void RequestMaker::AddRow(const ShardScan::Chunk& chunk, size_t row) {
  const store::SampleColumns& columns = chunk.columns;
  otlp::ProfilesBuilder::SampleInfo sample;
  sample.resource = ResourceOf(chunk, columns.processes[row], columns.times[row]);
  sample.attributes = builder_->AddEnding(Thread(columns.processes[row], columns.threads[row]), columns.endings[row]);
  if (!columns.attributes.empty() && columns.attributes[row].value != 0) {
    const otlp::Annotations annotations = AddOwn(sample.attributes, columns.attributes[row]);
    sample.attributes = annotations.attributes;
    sample.link = annotations.link;
  }
  sample.stack = Stack(columns.day, columns.nodes[row]);
  sample.type = Type(columns.type);
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

otlp::TypeIndex RequestMaker::Type(store::TypeNo no) {
  const auto type = scan_.types_.find(no);
  return builder_->AddType(type != scan_.types_.end() ? type->second : SampleTypeInfo{"unknown", "unknown"});
}

otlp::ResourceIndex RequestMaker::ResourceOf(const ShardScan::Chunk& chunk, store::ProcessNo no, UnixNs time) {
  auto cached = resource_cache_.find(no);
  if (cached == resource_cache_.end()) {
    auto process = scan_.processes_.find(no);
    if (process == scan_.processes_.end()) return builder_->AddResource({{"host.id", chunk.node_id}});
    cached = resource_cache_.emplace(no, Join(process->second)).first;
  }
  Joined& joined = cached->second;
  const size_t i = joined.states == nullptr ? 0 : ResourceIndexAt(*joined.states, time);
  otlp::ResourceIndex& index = joined.indices[i];
  if (index.value < 0) {
    const Resource& resource = *(*joined.states)[i].resource;
    auto [known, added] = resource_indices_.try_emplace(&resource);
    if (added) known->second = builder_->AddResource(resource.attributes);
    index = known->second;
  }
  return index;
}

RequestMaker::Joined RequestMaker::Join(const store::ProcessRow& process) {
  Joined joined;
  if (resources_) {
    joined.states = resources_->Of(process);
    joined.indices.resize(joined.states->size(), otlp::ResourceIndex(-1));
  } else {
    joined.indices = {builder_->AddResource({{"container.id", LabelValue(Label::kContainerId, process)},
                                             {"host.name", LabelValue(Label::kHostName, process)},
                                             {"host.id", LabelValue(Label::kHostId, process)}})};
  }
  return joined;
}

otlp::AttributesIndex RequestMaker::Thread(store::ProcessNo process_no, store::ThreadNo thread_no) {
  auto [cached, added] = thread_cache_.try_emplace({process_no, thread_no});
  if (!added) return cached->second;
  otlp::ThreadInfo info;
  if (auto it = scan_.processes_.find(process_no); it != scan_.processes_.end()) {
    info.executable_name = LabelValue(Label::kProcessExecutableName, it->second);
    info.executable_path = LabelValue(Label::kProcessExecutablePath, it->second);
    info.pid = it->second.pid;
  }
  if (auto it = scan_.threads_.find(thread_no); it != scan_.threads_.end()) {
    info.thread_name = LabelValue(Label::kThreadName, it->second);
    info.tid = it->second.tid;
  }
  return cached->second = builder_->AddThread(info);
}

otlp::StackIndex RequestMaker::Stack(store::Day day, store::NodeNo leaf) {
  auto [cached, added] = stack_cache_.try_emplace({day, leaf});
  if (!added) return cached->second;
  const store::Trie& trie = scan_.tries_.at(day);
  std::vector<otlp::LocationIndex> locations;
  for (store::NodeNo node = leaf; node.value != 0 && locations.size() < otlp::ProfilesBuilder::kStackFramesMax;
       node = trie.parents[node.value]) {
    locations.push_back(Location(trie, trie.frames[node.value]));
  }
  return cached->second = builder_->AddStack(locations);
}

otlp::LocationIndex RequestMaker::Location(const store::Trie& trie, uint32_t frame) {
  auto [cached, added] = location_cache_.try_emplace({&trie, frame});
  if (!added) return cached->second;
  const store::FrameRow row = trie.frame_rows[frame];
  static const store::ExecutableRow kNoFile;
  const bool has_file = row.executable.value < scan_.executable_rows_.size();
  const store::ExecutableRow& executable = has_file ? scan_.executable_rows_[row.executable.value] : kNoFile;
  const auto named = scan_.frame_names_.find(row.name);
  const std::string_view own_name = named != scan_.frame_names_.end() ? named->second : std::string_view();
  return cached->second = locations_.Add(row, executable.id, executable.path, own_name, *builder_);
}

}  // namespace tributary
