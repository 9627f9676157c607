#include "kernel-collector/runtimes/runtime_objects.h"

#include <algorithm>
#include <bit>
#include <string>
#include <tuple>
#include <utility>

#include "absl/hash/hash.h"
#include "base/status.h"
#include "kernel-collector/runtimes/runtime_kinds.h"

namespace tributary {
namespace {

constexpr std::string_view kFailureNames[] = {"changed", "malformed", "gone", "unreadable"};

std::optional<uint64_t> BiasOf(const ProcessRun& run, const RuntimeBinary& binary) {
  for (const Mapping& mapping : *run.mappings.snapshot()) {
    if (mapping.executable == nullptr || mapping.executable->runtime.get() != &binary) continue;
    const auto elf = FileOffsetToAddress(mapping.executable->segments, mapping.file_offset);
    if (elf) return mapping.start - *elf;
  }
  return std::nullopt;
}

// Returns the group of processes whose reads may occupy one thread together: the container. A process outside of
// containers has no group, because all programs of a host can have the same cgroup. If the cgroup is unknown, the
// process may be in a container.
std::string GroupOf(const ProcessRun& run) {
  if (!run.container_id.empty()) return run.container_id;
  return run.cgroup_path.empty() ? "unknown" : "";
}

// Counts the bytes that are read, and limits those of one object.
class CountedMemory : public ProcessMemory {
 public:
  explicit CountedMemory(std::unique_ptr<ProcessMemory> memory) : memory_(std::move(memory)) {}

  absl::Status Read(std::span<const Part> parts) override {
    for (const Part& part : parts) of_object_ += part.to.size();
    if (of_object_ > RuntimeBinary::kObjectBytesMax) {
      return Error(absl::StatusCode::kResourceExhausted, "read a code object: it is too large");
    }
    return memory_->Read(parts);
  }
  void BeginObject() { bytes_ += std::exchange(of_object_, 0); }
  size_t bytes() const { return bytes_ + of_object_; }

 private:
  std::unique_ptr<ProcessMemory> memory_;
  size_t bytes_ = 0, of_object_ = 0;
};

}  // namespace

struct RuntimeObjects::Item {
  RuntimeBinaryPtr binary;
  uint64_t bias = 0;
  CodeObject object;
};

// The objects of one process that wait for their read.
struct RuntimeObjects::Request {
  std::shared_ptr<CodeObjectTable> table;
  std::vector<Pid> pids;  // of the process, and then of its ancestors
  std::vector<std::weak_ptr<ProcessRun>> ancestors;
  std::string group;
  std::deque<Item> items;
};

struct RuntimeObjects::Job {
  struct Result {
    absl::StatusOr<std::shared_ptr<const RuntimeFunction>> function = absl::UnknownError("");
    size_t place = 0;  // index in the request's `pids` of the process whose memory had the object
  };
  uint64_t number = 0;  // in running_
  std::vector<Pid> pids;
  std::string group;
  std::vector<Item> items;
  std::vector<Result> results;  // of the first items; the others were not read
  size_t bytes = 0;
};

// Reads the objects of a job, on the executor's thread.
class RuntimeObjects::Reader {
 public:
  Reader(const Options& options, Job& job) : options_(options), job_(job), memories_(job.pids.size()) {}

  void Run() {
    for (const Item& item : job_.items) {
      if (job_.bytes > kJobBytesMax) return;
      job_.results.push_back(ReadOne(item));
      job_.bytes = 0;
      for (const auto& memory : memories_) job_.bytes += memory.counted == nullptr ? 0 : memory.counted->bytes();
    }
  }

 private:
  struct Memory {
    std::unique_ptr<CountedMemory> counted;
    absl::Status broken;  // no other object can be read from it either
  };

  Job::Result ReadOne(const Item& item) {
    Job::Result result;
    for (size_t place = 0; place < memories_.size(); ++place) {
      auto function = ReadFrom(place, item);
      // The status of the process itself is the reason. An ancestor only has the object if nothing has changed.
      if (place == 0 || function.ok()) result = {std::move(function), place};
      if (result.function.ok()) return result;
      const Failure failure = FailureOf(result.function.status());
      if (failure != Failure::kGone && failure != Failure::kChanged) return result;
    }
    return result;
  }

  absl::StatusOr<std::shared_ptr<const RuntimeFunction>> ReadFrom(size_t place, const Item& item) {
    Memory& memory = memories_[place];
    if (!memory.broken.ok()) return memory.broken;
    if (memory.counted == nullptr) {
      memory.counted = std::make_unique<CountedMemory>(options_.open_memory(job_.pids[place], job_.group));
    }
    memory.counted->BeginObject();
    auto function = item.binary->ReadFunction(*memory.counted, item.object, item.bias);
    if (function.ok() && *function == nullptr) return Error(absl::StatusCode::kInternal, "read a code object");
    if (function.ok()) return function;
    const Failure failure = FailureOf(function.status());
    if (failure == Failure::kGone || failure == Failure::kUnreadable) memory.broken = function.status();
    return function;
  }

  const Options& options_;
  Job& job_;
  std::vector<Memory> memories_;
};

RuntimeObjects::RuntimeObjects(Options options, Executor& executor, const Clock& clock, Metrics& metrics)
    : options_(std::move(options)),
      executor_(executor),
      clock_(clock),
      store_(std::make_shared<CodeObjectStore>(metrics)),
      tokens_(options_.bytes_per_second),
      tokens_at_(clock.Monotonic()),
      read_bytes_(metrics.AddCounter("tributary_collector_code_object_read_bytes_total",
                                     "Bytes that were read from processes for these code objects")),
      refused_(metrics.AddCounter("tributary_collector_code_objects_refused_total",
                                  "Code objects of samples that were not read, because too many other reads were "
                                  "waiting; their frames have no names in these samples")),
      evicted_(metrics.AddCounter("tributary_collector_code_object_tables_evicted_total",
                                  "How often the code objects of a process were removed from memory, because the "
                                  "tables were full; they are read again when they are sampled")) {
  for (size_t kind = 0; kind < counters_.size(); ++kind) {
    const auto name = std::find_if(RuntimeKinds().begin(), RuntimeKinds().end(),
                                   [&](const RuntimeKind& k) { return k.number == kind; });
    if (name == RuntimeKinds().end()) continue;
    counters_[kind].read = &metrics.AddCounter("tributary_collector_code_objects_read_total",
                                               "Code objects of language runtimes that were read from processes, to "
                                               "name their functions",
                                               {{"runtime", std::string(name->name)}});
    for (size_t i = 0; i < kFailureCount; ++i) {
      counters_[kind].failed[i] = &metrics.AddCounter(
          "tributary_collector_code_objects_unknown_total",
          "Code objects of language runtimes that could not be read, by reason; frames with them have no names",
          {{"runtime", std::string(name->name)}, {"reason", std::string(kFailureNames[i])}});
    }
  }
}

RuntimeObjects::Failure RuntimeObjects::FailureOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kDataLoss:
      return Failure::kChanged;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kResourceExhausted:
      return Failure::kMalformed;
    case absl::StatusCode::kNotFound:
      return Failure::kGone;
    default:
      return Failure::kUnreadable;
  }
}

void RuntimeObjects::Fail(CodeObjectTable& table, const RuntimeBinary& binary, const CodeObject& object,
                          Failure failure) {
  table.Fail(object, clock_.Monotonic());
  CountersOf(binary).failed[static_cast<size_t>(failure)]->Add();
}

RuntimeObjects::Found RuntimeObjects::Find(ProcessRun& run, const RuntimeBinaryPtr& binary, const CodeObject& object,
                                           MonotonicNs time, MayRead may_read) {
  CodeObjectTable* table = run.code_objects.get();
  if (table != nullptr) {
    table->used_at = std::max(table->used_at, time);
    if (const PooledFunction* function = table->Find(object); function != nullptr) return {.function = function};
    if (table->HasFailed(object, clock_.Monotonic())) return {};
  }
  if (options_.open_memory == nullptr || may_read == MayRead::kNo) return {};
  if (may_read == MayRead::kNotYet) return {.is_later = true};
  if (table == nullptr) {
    run.code_objects = MakeTable(run);
    table = run.code_objects.get();
    table->used_at = time;
  }
  if (!table->StartReading(object)) return {.is_later = true};
  if (IsFull(*table)) {
    table->EndReading(object);
    return {.is_refused = true};
  }
  const std::optional<uint64_t> bias = FindBias(run, binary);
  if (!bias) {
    table->EndReading(object);
    Fail(*table, *binary, object, Failure::kGone);
    return {};
  }
  Enqueue(run, binary, object, *bias);
  return {.is_later = true};
}

std::optional<uint64_t> RuntimeObjects::FindBias(const ProcessRun& run, const RuntimeBinaryPtr& binary) {
  const MonotonicNs now = clock_.Monotonic();
  auto& places = run.code_objects->places;
  for (const CodeObjectTable::RuntimePlace& place : places) {
    if (place.binary != binary || place.mapping_changes != run.mapping_changes) continue;
    if (place.bias || now.value - place.found_at.value < CodeObjectTable::kRetryNs) return place.bias;
  }
  const auto same =
      std::find_if(places.begin(), places.end() - 1, [&binary](const auto& place) { return place.binary == binary; });
  std::move_backward(places.begin(), same, same + 1);
  places.front() = {binary, run.mapping_changes, now, BiasOf(run, *binary)};
  return places.front().bias;
}

bool RuntimeObjects::IsFull(const CodeObjectTable& table) const {
  if (queued_ >= kQueueMax) return true;
  const auto waiting = by_table_.find(&table);
  return waiting != by_table_.end() && waiting->second->items.size() >= kProcessQueueMax;
}

void RuntimeObjects::Enqueue(ProcessRun& run, const RuntimeBinaryPtr& binary, const CodeObject& object, uint64_t bias) {
  std::shared_ptr<Request>& request = by_table_[run.code_objects.get()];
  if (request == nullptr) {
    request = std::make_shared<Request>();
    request->table = run.code_objects;
    request->pids.push_back(run.pid);
    request->group = GroupOf(run);
    std::shared_ptr<ProcessRun> ancestor = run.copied_from.lock();
    for (size_t i = 0; i < kAncestorsMax && ancestor != nullptr; ++i) {
      // Another container may have opted out of profiling.
      if (ancestor->container_id != run.container_id) break;
      // The pid may belong to another process now.
      if (!ancestor->exited) {
        request->pids.push_back(ancestor->pid);
        request->ancestors.push_back(ancestor);
      }
      ancestor = ancestor->copied_from.lock();
    }
    queue_.push_back(request);
  }
  request->items.push_back({binary, bias, object});
  ++queued_;
}

void RuntimeObjects::Tick() {
  const MonotonicNs now = clock_.Monotonic();
  const int64_t elapsed_ns = std::min(now.value - tokens_at_.value, 10 * kNsPerSecond);
  tokens_ = std::min(options_.bytes_per_second, tokens_ + elapsed_ns * options_.bytes_per_second / kNsPerSecond);
  tokens_at_ = now;
  while (!queue_.empty() && tokens_ > 0 && running_.size() < kJobsMax) {
    std::shared_ptr<Request> request = queue_.front();
    auto job = std::make_shared<Job>();
    job->number = ++last_job_;
    job->pids = request->pids;
    job->group = request->group;
    const auto count = static_cast<ptrdiff_t>(std::min(request->items.size(), kJobObjectsMax));
    job->items.assign(request->items.begin(), request->items.begin() + count);
    const bool taken = executor_.Submit([job, options = options_] { Reader(options, *job).Run(); },
                                        scope_.Wrap([this, job] { Finish(*job); }));
    if (!taken) return;
    running_.emplace(job->number, request);
    queued_ -= static_cast<size_t>(count);
    request->items.erase(request->items.begin(), request->items.begin() + count);
    queue_.pop_front();
    if (request->items.empty()) {
      by_table_.erase(request->table.get());
    } else {
      queue_.push_back(std::move(request));  // other processes take their turn
    }
  }
}

void RuntimeObjects::Finish(Job& job) {
  const std::shared_ptr<Request> request = std::move(running_.extract(job.number).mapped());
  tokens_ -= static_cast<int64_t>(job.bytes);
  read_bytes_.Add(job.bytes);
  CodeObjectTable& table = *request->table;
  FunctionPool& functions = store_->functions;
  for (size_t i = 0; i < job.items.size(); ++i) {
    const CodeObject& object = job.items[i].object;
    table.EndReading(object);
    if (i >= job.results.size()) continue;
    Job::Result& result = job.results[i];
    if (!result.function.ok()) {
      Fail(table, *job.items[i].binary, object, FailureOf(result.function.status()));
      continue;
    }
    CountersOf(*job.items[i].binary).read->Add();
    const FunctionPool::Number number = functions.Add(*std::move(result.function));
    if (result.place > 0) {
      const std::shared_ptr<ProcessRun> ancestor = request->ancestors[result.place - 1].lock();
      if (ancestor != nullptr) {
        if (ancestor->code_objects == nullptr) ancestor->code_objects = MakeTable(*ancestor);
        functions.Ref(number);
        ancestor->code_objects->Insert(object, number);
        ancestor->code_objects->Trim();
      }
    }
    table.Insert(object, number);
  }
  table.Trim();
  Evict();
}

std::shared_ptr<CodeObjectTable> RuntimeObjects::MakeTable(const ProcessRun& run) const {
  auto table = std::make_shared<CodeObjectTable>(store_);
  table->group = absl::HashOf(run.container_id);
  return table;
}

void RuntimeObjects::Evict() {
  const auto full = [this](size_t share) {
    return store_->entries > kEntriesMax / 8 * share || store_->functions.bytes() > kBytesMax / 8 * share;
  };
  if (!full(8)) return;
  struct Candidate {
    CodeObjectTable* table;
    size_t weight;
  };
  std::vector<Candidate> candidates;
  absl::flat_hash_map<uint64_t, size_t> groups;
  for (CodeObjectTable* table : store_->tables) {
    candidates.push_back({table, table->Weight()});
    groups[table->group] += candidates.back().weight;
  }
  const auto order = [&groups](const Candidate& c) {
    return std::tuple(-std::bit_width(groups[c.table->group]), -std::bit_width(c.weight), c.table->used_at.value);
  };
  std::sort(candidates.begin(), candidates.end(),
            [&order](const Candidate& a, const Candidate& b) { return order(a) < order(b); });
  for (const Candidate& candidate : candidates) {
    if (!full(7)) return;
    if (candidate.weight == 0) continue;
    candidate.table->Clear();
    evicted_.Add();
  }
}

}  // namespace tributary
