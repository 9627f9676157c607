#include "kernel-collector/processes/process_table.h"

#include "base/utf8.h"

namespace tributary {
namespace {

// The kernel reported the file's identity when it made the mapping. This is more reliable than the file behind the
// mapping now, because the file may have been written to since. If /proc shows the same mapping, the kernel's data
// stays.
bool IsPartOf(const MapsEntry& entry, const Mapping& known) {
  return known.executable != nullptr && known.start <= entry.start && entry.end <= known.end &&
         known.file_offset + (entry.start - known.start) == entry.file_offset &&
         known.executable->path == WithoutDeleted(entry.path);
}

// Returns whether the run is the process with this exact start time. Until then, the run may know its start time only
// in ticks, or not at all: the owner of a pid at the time of a sample or an event is the run that the sideband last
// showed.
bool LearnStart(ProcessRun& run, int64_t start_time_ns) {
  if (run.start_time_ns == 0 &&
      (run.start_ticks == 0 || run.start_ticks == static_cast<uint64_t>(start_time_ns / kNsPerTick))) {
    run.start_time_ns = start_time_ns;
  }
  return run.start_time_ns == start_time_ns;
}

}  // namespace

ProcessTable::ProcessTable(CodeFileTable& executables, Metrics& metrics)
    : executables_(executables),
      refused_(metrics.AddCounter("tributary_collector_processes_refused_total",
                                  "How often a process was not added to the table of processes, because the table was "
                                  "full; its samples are kept")),
      mappings_refused_(metrics.AddCounter("tributary_collector_mappings_refused_total",
                                           "Mappings that were ignored, because their process had too many mappings")) {
}

ProcessRunPtr ProcessTable::Find(Pid pid) const {
  auto it = runs_.find(pid);
  return it == runs_.end() ? nullptr : it->second;
}

ProcessRunPtr ProcessTable::ForEvent(Pid pid, int64_t start_time_ns) const {
  ProcessRunPtr run = Find(pid);
  return run != nullptr && LearnStart(*run, start_time_ns) ? run : nullptr;
}

ProcessRunPtr ProcessTable::Add(Pid pid) {
  auto run = std::make_shared<ProcessRun>();
  run->pid = pid;
  if (runs_.size() >= kRunsMax && !runs_.contains(pid)) {
    refused_.Add();
    return run;
  }
  runs_.insert_or_assign(pid, run);
  return run;
}

// Returns the name of memory that can contain generated code; nullptr if the path is of a file, or of code of the
// kernel.
const std::string* ProcessTable::MemoryName(std::string_view path) {
  constexpr std::string_view kMemfd = "/memfd:";
  std::string name;
  if (path.empty() || path == "//anon" || path == "/dev/zero" || path == "/anon_hugepage" ||
      path.starts_with("/SYSV")) {
    return &anonymous_;
  }
  if (path.starts_with(kMemfd)) {
    name = "[" + std::string(path.substr(1)) + "]";
  } else if (path.starts_with("[anon") || path == "[heap]" || path == "[stack]") {
    name = path;
  } else {
    return nullptr;
  }
  name = CutUtf8(name, kMemoryNameBytesMax);
  const auto known = memory_names_.find(name);
  if (known != memory_names_.end()) return &*known;
  if (memory_names_.size() >= kMemoryNamesMax) return &anonymous_;
  return &*memory_names_.insert(std::move(name)).first;
}

Mapping ProcessTable::MakeMapping(const FileKey& key, Pid pid, uint64_t start, uint64_t end, uint64_t offset,
                                  MonotonicNs learned, std::string_view path) {
  Mapping mapping{start, end, offset, learned, nullptr};
  if (path == "[vdso]") {
    // A 32-bit process has a different vdso than we do.
    if (start >> 32 != 0) {
      mapping.executable = executables_.vdso();
      mapping.file_offset = 0;
    }
  } else {
    mapping.executable = executables_.Intern(key, FileLocation{pid, start, end, std::string(WithoutDeleted(path))});
    mapping.memory = MemoryName(WithoutDeleted(path));
  }
  return mapping;
}

void ProcessTable::OnMmap(const MmapEvent& event) {
  if (!event.executable || event.length == 0 || event.start + event.length < event.start) return;
  ProcessRunPtr run = Find(event.pid);
  if (run == nullptr) run = Add(event.pid);
  // A scan that began after the event has already seen the mapping, or has seen that it is gone.
  if (run->scanned && event.time < run->last_scan) return;
  FileKey key{event.build_id, event.device_major, event.device_minor, event.inode};
  // The kernel's record has either a build-id or device and inode. Other fields of a record with a build-id must not
  // make keys differ.
  if (key.build_id.known()) key.device_major = key.device_minor = 0, key.inode = 0;
  Mapping mapping =
      MakeMapping(key, event.pid, event.start, event.start + event.length, event.file_offset, event.time, event.path);
  // The first file that an exec maps as code is the program itself; its interpreter comes after it.
  if (run->executable == nullptr && run->began.value != 0 && run->executable_path.empty() &&
      mapping.executable != nullptr && mapping.executable != executables_.vdso()) {
    run->executable = mapping.executable;
    run->executable_path = WithoutDeleted(event.path);
  }
  run->uncovered_pages.clear();
  if (run->last_seen < event.time) run->last_seen = event.time;
  ++run->mapping_changes;
  uint64_t start = mapping.start, end = mapping.end;
  switch (run->mappings.Insert(std::move(mapping))) {
    case MappingTable::Inserted::kAdded:
      break;
    case MappingTable::Inserted::kReplaced:
      run->NoteReplaced(start, end, event.time);
      changed_.push_back(run);
      break;
    case MappingTable::Inserted::kRefused:
      mappings_refused_.Add();
      break;
  }
}

void ProcessTable::OnFork(const ForkEvent& event) {
  if (event.pid == event.parent) return;  // a thread shares everything
  ProcessRunPtr parent = Find(event.parent);
  ProcessRunPtr child = Add(event.pid);
  child->parent = event.parent;
  child->began = event.time;
  child->last_seen = event.time;
  if (parent == nullptr) return;
  child->comm = parent->comm;
  child->executable = parent->executable;
  child->executable_path = parent->executable_path;
  child->mappings = parent->mappings;
  child->complete = parent->complete;
  child->stale = parent->stale;
  child->copied_from = parent;
  if (parent->code_objects != nullptr) child->code_objects = parent->code_objects->Fork();
  if (parent->environment == ProcessRun::Environment::kKnown) {
    child->environment = parent->environment;
    child->environment_attributes = parent->environment_attributes;
    child->attributes = parent->environment_attributes;
  } else {
    child->forked_from = parent;
  }
}

void ProcessTable::OnComm(const CommEvent& event) {
  ProcessRunPtr run = Find(event.pid);
  if (!event.exec) {
    if (run != nullptr && event.tid.value == event.pid.value && !run->sampled) run->comm = event.comm;
    return;
  }
  if (run != nullptr && run->scanned && event.time < run->last_scan) return;
  ProcessRunPtr next = Add(event.pid);
  next->comm = event.comm;
  next->began = event.time;
  next->last_seen = event.time;
  next->complete = true;  // an exec starts without mappings, and every new mapping is reported from here on
  if (run == nullptr) return;
  next->parent = run->parent;
  next->start_time_ns = run->start_time_ns;
  next->start_ticks = run->start_ticks;
  next->exec_sequence = run->exec_sequence + 1;
  next->cgroup_known = run->cgroup_known;
  next->cgroup_v2_id = run->cgroup_v2_id;
  next->cgroup_v1_id = run->cgroup_v1_id;
  next->cgroup_path = run->cgroup_path;
  next->container_id = run->container_id;
}

void ProcessTable::OnExit(const ExitEvent& event) {
  // Other threads may outlive the leader: their samples keep the run alive.
  if (event.tid.value != event.pid.value) return;
  ProcessRunPtr run = Find(event.pid);
  if (run == nullptr) return;
  run->exited = true;
  run->last_seen = event.time;
}

void ProcessTable::OnLost(const LostEvent&) {
  lost_ = true;
  for (auto& [pid, run] : runs_) run->stale = true;
}

ProcessRunPtr ProcessTable::ForSample(Pid pid, int64_t start_time_ns, MonotonicNs time) {
  ProcessRunPtr run = Find(pid);
  if (run != nullptr && LearnStart(*run, start_time_ns)) {
    if (run->last_seen < time) run->last_seen = time;
    return run;
  }
  // The pid had another owner. A sample of the earlier owner must not bring that owner back.
  bool older = run != nullptr && run->start_time_ns > start_time_ns;
  ProcessRunPtr found = older ? std::make_shared<ProcessRun>() : Add(pid);
  found->pid = pid;
  found->start_time_ns = start_time_ns;
  found->last_seen = time;
  found->exited = older;
  return found;
}

void ProcessTable::Merge(const ProcSnapshot& snapshot) {
  ProcessRunPtr run = Find(snapshot.pid);
  if (run == nullptr) run = Add(snapshot.pid);
  uint64_t ticks = run->start_time_ns != 0 ? static_cast<uint64_t>(run->start_time_ns / kNsPerTick) : run->start_ticks;
  if (ticks != 0 && ticks != snapshot.stat.start_ticks) return;
  if (run->began > snapshot.read_at) return;
  run->start_ticks = snapshot.stat.start_ticks;
  run->parent = snapshot.stat.parent;
  if (!run->sampled) run->comm = snapshot.stat.comm;
  run->executable_path = snapshot.executable_path;
  MappingTable::List list;
  run->executable = nullptr;
  bool followed = run->complete && !run->stale;
  for (const MapsEntry& entry : snapshot.code) {
    FileKey key{ExecutableId(), entry.device_major, entry.device_minor, entry.inode};
    const Mapping* known = followed ? run->mappings.Find(entry.start) : nullptr;
    if (known != nullptr && IsPartOf(entry, *known)) {
      list.push_back({entry.start, entry.end, entry.file_offset, snapshot.read_at, known->executable});
      list.back().memory = known->memory;
    } else {
      list.push_back(
          MakeMapping(key, snapshot.pid, entry.start, entry.end, entry.file_offset, snapshot.read_at, entry.path));
    }
    if (run->executable == nullptr && WithoutDeleted(entry.path) == snapshot.executable_path) {
      run->executable = list.back().executable;
    }
  }
  if (run->complete) changed_.push_back(run);
  if (run->stale) run->unsure_until = snapshot.read_at;
  for (const Mapping& mapping : run->mappings.Replace(list, snapshot.read_at)) {
    run->NoteReplaced(mapping.start, mapping.end, snapshot.read_at);
  }
  ++run->mapping_changes;
  run->scanned = true;
  run->last_scan = snapshot.read_at;
  run->complete = true;
  run->stale = false;
  run->interned_generation = 0;
  run->uncovered_pages.clear();
  if (run->last_seen < snapshot.read_at) run->last_seen = snapshot.read_at;
}

void ProcessTable::MergeList(const std::vector<Pid>& pids, MonotonicNs read_at) {
  absl::flat_hash_set<Pid> listed(pids.begin(), pids.end());
  for (auto& [pid, run] : runs_) {
    if (!listed.contains(pid) && run->last_seen < read_at) run->exited = true;
  }
}

void ProcessTable::DropExited(MonotonicNs now) {
  absl::erase_if(runs_, [&](const auto& entry) {
    bool drop = entry.second->exited && entry.second->last_seen.value + kGraceNs < now.value;
    if (drop && dropped_) dropped_(entry.first);
    return drop;
  });
}

}  // namespace tributary
