#include "reducer/store/session_dictionary.h"

#include <algorithm>
#include <utility>

namespace tributary::store {
namespace {

constexpr size_t kDaysKept = 2;

}  // namespace

SessionDictionary::SessionDictionary(uint32_t generation) : generation_(generation) {
  strings_.emplace_back();
  executables_.emplace_back();
  frames_.emplace_back();
  nodes_.emplace_back();
  processes_.emplace_back();
  threads_.emplace_back();
  string_ids.resize(1);
  executable_ids.resize(1);
  process_ids.resize(1);
  newer_process_.resize(1);
  thread_ids.resize(1);
}

intake::DictionaryCounts SessionDictionary::counts() const {
  intake::DictionaryCounts counts;
  counts.strings = static_cast<uint32_t>(strings_.size());
  counts.executables = static_cast<uint32_t>(executables_.size());
  counts.frames = static_cast<uint32_t>(frames_.size());
  counts.nodes = static_cast<uint32_t>(nodes_.size());
  counts.processes = static_cast<uint32_t>(processes_.size());
  counts.threads = static_cast<uint32_t>(threads_.size());
  return counts;
}

bool SessionDictionary::Append(const intake::Definitions& definitions) {
  if (strings_.size() + definitions.strings.size() > limits_.strings_max ||
      executables_.size() + definitions.executables.size() > limits_.executables_max ||
      frames_.size() + definitions.frames.size() > limits_.frames_max ||
      nodes_.size() + definitions.nodes.size() > limits_.nodes_max ||
      processes_.size() + definitions.processes.size() > limits_.processes_max ||
      threads_.size() + definitions.threads.size() > limits_.threads_max) {
    return false;
  }
  for (const std::string& text : definitions.strings) {
    if (text.size() > limits_.string_bytes_max) return false;
    string_bytes_ += text.size();
    strings_.push_back(text);
  }
  for (const Executable& executable : definitions.executables) {
    if (executable.path.value >= strings_.size()) return false;
    executables_.push_back(executable);
  }
  for (const Frame& frame : definitions.frames) {
    if (frame.executable.value >= executables_.size()) return false;
    frames_.push_back(frame);
  }
  for (const Node& node : definitions.nodes) {
    if (node.parent.value >= nodes_.size() || node.frame.value >= frames_.size()) return false;
    nodes_.push_back(node);
  }
  for (const Process& process : definitions.processes) {
    if (!AppendProcess(process)) return false;
  }
  for (const Thread& thread : definitions.threads) {
    if (thread.process.value >= processes_.size() || thread.name.value >= strings_.size()) return false;
    threads_.push_back(thread);
  }
  string_ids.resize(strings_.size());
  executable_ids.resize(executables_.size());
  thread_ids.resize(threads_.size());
  return true;
}

bool SessionDictionary::AppendProcess(const Process& process) {
  for (StringRef ref : process.texts()) {
    if (ref.value >= strings_.size()) return false;
  }
  if (process.executable.value >= executables_.size()) return false;
  const uint32_t described_before = IndexProcess(process);
  StoreProcess id;
  if (described_before != 0) {
    const StoreProcess& before = process_ids[described_before];
    id.no = before.no;
    id.described_slot = before.slot != kNoSlot ? before.slot : before.described_slot;
  }
  processes_.push_back(process);
  process_ids.push_back(id);
  return true;
}

// Notes that the next number is a description of this process; the number of the one that it takes the place of, or 0.
// One that has moved to another container is described beside the old one: what ran there stays there.
uint32_t SessionDictionary::IndexProcess(const Process& process) {
  const auto number = static_cast<uint32_t>(newer_process_.size());
  newer_process_.push_back(0);
  auto [newest, added] = newest_process_.try_emplace(process.key, number);
  if (added) return 0;
  const uint32_t before = std::exchange(newest->second, number);
  const StringRef container = processes_[before].container_id;
  if (container.value != 0 && strings_[container.value] != strings_[process.container_id.value]) return 0;
  newer_process_[before] = number;
  return before;
}

void SessionDictionary::Truncate(const intake::DictionaryCounts& counts) {
  auto cut = [](auto& table, uint32_t size) { table.resize(std::min<size_t>(table.size(), size)); };
  cut(strings_, counts.strings);
  cut(executables_, counts.executables);
  cut(frames_, counts.frames);
  cut(nodes_, counts.nodes);
  cut(processes_, counts.processes);
  cut(threads_, counts.threads);
  string_bytes_ = 0;
  for (const std::string& text : strings_) string_bytes_ += text.size();
  IndexProcesses();
  ForgetStoreIds();
}

void SessionDictionary::IndexProcesses() {
  newest_process_.clear();
  newer_process_.assign(1, 0);
  for (uint32_t i = 1; i < processes_.size(); ++i) IndexProcess(processes_[i]);
}

std::unique_ptr<SessionDictionary> SessionDictionary::Derive(uint32_t generation, const Eviction& eviction) const {
  if (intake::CountsBefore(eviction) != counts()) return nullptr;
  const std::vector<uint32_t> strings = eviction.strings.NewIds(), executables = eviction.executables.NewIds(),
                              frames = eviction.frames.NewIds(), nodes = eviction.nodes.NewIds(),
                              processes = eviction.processes.NewIds();
  auto out = std::make_unique<SessionDictionary>(*this);
  out->generation_ = generation;
  eviction.strings.ApplyTo(out->strings_);
  eviction.executables.ApplyTo(out->executables_);
  eviction.frames.ApplyTo(out->frames_);
  eviction.nodes.ApplyTo(out->nodes_);
  eviction.processes.ApplyTo(out->processes_);
  eviction.threads.ApplyTo(out->threads_);
  eviction.strings.ApplyTo(out->string_ids);
  eviction.executables.ApplyTo(out->executable_ids);
  eviction.processes.ApplyTo(out->process_ids);
  eviction.threads.ApplyTo(out->thread_ids);
  for (DayIds& day : out->days_) {
    eviction.nodes.ApplyTo(day.nodes);
    eviction.frames.ApplyTo(day.frames);
  }
  bool ok = true;
  auto renumber = [&ok](auto& ref, const std::vector<uint32_t>& ids) {
    ok = ok && (ref.value == 0 || ids[ref.value] != 0);
    ref.value = ids[ref.value];
  };
  for (tributary::Executable& executable : out->executables_) renumber(executable.path, strings);
  for (Frame& frame : out->frames_) renumber(frame.executable, executables);
  for (Node& node : out->nodes_) {
    renumber(node.parent, nodes);
    renumber(node.frame, frames);
  }
  for (Process& process : out->processes_) {
    renumber(process.executable, executables);
    for (StringRef* text : process.mutable_texts()) {
      renumber(*text, strings);
    }
  }
  for (Thread& thread : out->threads_) {
    renumber(thread.process, processes);
    renumber(thread.name, strings);
  }
  if (!ok) return nullptr;
  out->string_bytes_ = 0;
  for (const std::string& text : out->strings_) out->string_bytes_ += text.size();
  out->IndexProcesses();
  return out;
}

void SessionDictionary::ForgetStoreIds() {
  boot_id = {};
  string_ids.assign(strings_.size(), StoreId{});
  executable_ids.assign(executables_.size(), StoreId{});
  // Processes and threads keep their numbers, which are never given to others, and are told of again.
  process_ids.resize(processes_.size());
  thread_ids.resize(threads_.size());
  for (StoreProcess& id : process_ids) id.slot = kNoSlot;
  for (StoreThread& id : thread_ids) id.slot = kNoSlot;
  days_.clear();
}

ProcessRef SessionDictionary::NewestProcess(ProcessRef ref) {
  for (uint32_t newer; (newer = newer_process_[ref.value]) != 0; ref.value = newer) {
    // Half as long a way the next time: a node may describe a process thousands of times.
    if (newer_process_[newer] != 0) newer = newer_process_[ref.value] = newer_process_[newer];
  }
  return ref;
}

bool SessionDictionary::Defines(const Sample& sample) const {
  return sample.thread.value < threads_.size() && sample.node.value < nodes_.size();
}

SessionDictionary::DayIds& SessionDictionary::IdsOfDay(Day day) {
  auto it = std::find_if(days_.begin(), days_.end(), [&](const DayIds& ids) { return ids.day == day; });
  if (it != days_.end()) {
    days_.splice(days_.begin(), days_, it);
  } else {
    days_.push_front(DayIds{day, {}, {}});
    if (days_.size() > kDaysKept) days_.pop_back();
  }
  DayIds& ids = days_.front();
  ids.nodes.resize(nodes_.size());
  ids.frames.resize(frames_.size());
  return ids;
}

size_t SessionDictionary::memory_bytes() const {
  size_t bytes = string_bytes_ + strings_.size() * sizeof(std::string) + executables_.size() * sizeof(Executable) +
                 frames_.size() * sizeof(Frame) + nodes_.size() * sizeof(Node) + processes_.size() * sizeof(Process) +
                 threads_.size() * sizeof(Thread);
  bytes += (string_ids.size() + executable_ids.size()) * sizeof(StoreId) + process_ids.size() * sizeof(StoreProcess) +
           thread_ids.size() * sizeof(StoreThread) + newest_process_.capacity() * (sizeof(ProcessKey) + 8) +
           newer_process_.size() * sizeof(uint32_t);
  for (const DayIds& ids : days_) bytes += (ids.nodes.size() + ids.frames.size()) * sizeof(uint32_t);
  return bytes;
}

}  // namespace tributary::store
