#include "reducer/store/session_dictionary.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "reducer/store/age_rules.h"
#include "reducer/store/session_ledger.h"

namespace tributary::store {
namespace {

constexpr size_t kDaysAlwaysKept = 2;
constexpr size_t kDaysMax = kDaysAtOnce;

// Reserves an eighth more than `size`. With doubling, a thousand sessions would take twice the memory that they use.
template <typename T>
void MakeRoom(std::vector<T>& table, size_t size) {
  if (size > table.capacity()) table.reserve(size + size / 8);
}

}  // namespace

SessionDictionary::SessionDictionary(uint32_t generation) : generation_(generation) {
  ForEachTable([](auto& table) { table.emplace_back(); }, tables_);
  string_ids.resize(1);
  executable_ids.resize(1);
  process_ids.resize(1);
  newer_process_.resize(1);
  thread_ids.resize(1);
}

DictionaryCounts SessionDictionary::counts() const {
  DictionaryCounts counts;
  ForEachTable([](uint32_t& count, const auto& table) { count = static_cast<uint32_t>(table.size()); }, counts,
               tables_);
  return counts;
}

bool SessionDictionary::Append(const Definitions& definitions) {
  DictionaryCounts have = counts(), after = have;
  after += definitions;
  if (!limits_.max().Covers(after)) return false;
  for (const std::string& text : definitions.strings) {
    if (text.size() > limits_.string_bytes_max) return false;
  }
  bool ok = true;
  ForEachTable(
      [&](const auto& more, auto& table, uint32_t& count) {
        MakeRoom(table, table.size() + more.size());
        for (const auto& definition : more) {
          ok = ok && have.Define(definition);
          if (!ok) return;
          if constexpr (std::is_same_v<decltype(definition), const Process&>) Describe(definition);
          table.push_back(definition);
          ++count;
        }
      },
      definitions, tables_, have);
  if (!ok) return false;
  for (size_t i = tables_.strings.size() - definitions.strings.size(); i < tables_.strings.size(); ++i) {
    string_bytes_ += AllocatedBytes(tables_.strings[i]);
  }
  MakeRoom(string_ids, have.strings);
  MakeRoom(thread_ids, have.threads);
  string_ids.resize(have.strings);
  executable_ids.resize(have.executables);
  thread_ids.resize(have.threads);
  return true;
}

// Adds the store id of the process that comes next.
void SessionDictionary::Describe(const Process& process) {
  const uint32_t described_before = IndexProcess(process);
  StoreProcess id;
  if (described_before != 0) {
    const StoreProcess& before = process_ids[described_before];
    id.no = before.no;
    id.described_slot = before.slot != kNoSlot ? before.slot : before.described_slot;
  }
  process_ids.push_back(id);
}

// Registers the next number as a description of this process. Returns the number of the description that it replaces,
// or 0. If the process has moved to another container, the old description stays: samples from the old container stay
// there.
uint32_t SessionDictionary::IndexProcess(const Process& process) {
  const auto number = static_cast<uint32_t>(newer_process_.size());
  newer_process_.push_back(0);
  auto [newest, added] = newest_process_.try_emplace(process.key, number);
  if (added) return 0;
  const uint32_t before = std::exchange(newest->second, number);
  const StringRef container = tables_.processes[before].container_id;
  if (container.value != 0 && tables_.strings[container.value] != tables_.strings[process.container_id.value]) return 0;
  newer_process_[before] = number;
  return before;
}

void SessionDictionary::Truncate(const DictionaryCounts& counts) {
  ForEachTable([](auto& table, uint32_t count) { table.resize(std::min<size_t>(table.size(), count)); }, tables_,
               counts);
  CountStringBytes();
  IndexProcesses();
  ForgetStoreIds();
}

void SessionDictionary::CountStringBytes() {
  string_bytes_ = 0;
  for (const std::string& text : tables_.strings) string_bytes_ += AllocatedBytes(text);
}

void SessionDictionary::IndexProcesses() {
  newest_process_.clear();
  newer_process_.assign(1, 0);
  for (uint32_t i = 1; i < tables_.processes.size(); ++i) IndexProcess(tables_.processes[i]);
}

std::unique_ptr<SessionDictionary> SessionDictionary::Derive(uint32_t generation, const Eviction& eviction) const {
  if (eviction.before() != counts()) return nullptr;
  auto out = std::make_unique<SessionDictionary>(*this);
  out->generation_ = generation;
  ForEachTable([](const KeptIds& kept, auto& table) { kept.ApplyTo(table); }, eviction, out->tables_);
  eviction.strings.ApplyTo(out->string_ids);
  eviction.executables.ApplyTo(out->executable_ids);
  eviction.processes.ApplyTo(out->process_ids);
  eviction.threads.ApplyTo(out->thread_ids);
  for (DayIds& day : out->days_) {
    eviction.nodes.ApplyTo(day.nodes);
    eviction.frames.ApplyTo(day.frames);
  }
  const NewIds new_ids(eviction);
  bool ok = true;
  auto renumber = [&](auto& ref) {
    ok = ok && new_ids.Keep(ref);
    ref.value = new_ids.Of(ref);
  };
  ForEachTable(
      [&](auto& table) {
        for (auto& definition : table) ForEachRef(definition, renumber);
      },
      out->tables_);
  if (!ok) return nullptr;
  out->CountStringBytes();
  out->IndexProcesses();
  return out;
}

void SessionDictionary::ForgetStoreIds() {
  boot_id = {};
  string_ids.assign(tables_.strings.size(), StoreId{});
  executable_ids.assign(tables_.executables.size(), StoreId{});
  // Processes and threads keep their numbers, which are not given to others meanwhile. Their rows are written again.
  process_ids.resize(tables_.processes.size());
  thread_ids.resize(tables_.threads.size());
  for (StoreProcess& id : process_ids) id.slot = kNoSlot;
  for (StoreThread& id : thread_ids) id.slot = kNoSlot;
  days_.clear();
}

// The day in a StoreId may be earlier than the day in its row, but never later. So no id of a deleted row stays.
void SessionDictionary::ForgetDays(Day before, Day strings_before) {
  const auto forget_id = [](StoreId& id, Day first_kept) {
    if (id.day < first_kept.value) id = {};
  };
  const auto forget_slot = [before](Slot& slot) {
    if (slot != kNoSlot && DayOf(slot) < before) slot = kNoSlot;
  };
  forget_id(boot_id, strings_before);
  for (StoreId& id : string_ids) forget_id(id, strings_before);
  for (StoreId& id : executable_ids) forget_id(id, before);
  for (StoreProcess& id : process_ids) {
    forget_slot(id.slot);
    forget_slot(id.described_slot);
  }
  for (StoreThread& id : thread_ids) forget_slot(id.slot);
  days_.remove_if([before](const DayIds& ids) { return ids.day < before; });
}

void SessionDictionary::ForgetNumbers(absl::FunctionRef<bool(uint32_t process)> is_old_process,
                                      absl::FunctionRef<bool(uint32_t thread)> is_old_thread) {
  const auto has_old_process = [&](uint32_t no) { return no != 0 && is_old_process(no); };
  for (StoreProcess& id : process_ids) {
    if (has_old_process(id.no)) id = {};
  }
  for (StoreThread& id : thread_ids) {
    if (has_old_process(id.process) || (id.no != 0 && is_old_thread(id.no))) id = {};
  }
}

ProcessRef SessionDictionary::NewestProcess(ProcessRef ref) {
  for (uint32_t newer; (newer = newer_process_[ref.value]) != 0; ref.value = newer) {
    // Halves the path for the next call: a node may describe a process thousands of times.
    if (newer_process_[newer] != 0) newer = newer_process_[ref.value] = newer_process_[newer];
  }
  return ref;
}

bool SessionDictionary::Defines(const Sample& sample) const {
  return sample.thread.value < tables_.threads.size() && sample.node.value < tables_.nodes.size() &&
         sample.attributes.value < tables_.strings.size();
}

bool SessionDictionary::Defines(const ProcessEvent& event) const {
  const size_t strings = tables_.strings.size();
  return event.name.value < strings && event.executable_path.value < strings && event.container_id.value < strings &&
         event.cgroup_path.value < strings;
}

SessionDictionary::DayIds& SessionDictionary::IdsOfDay(Day day) {
  auto it = std::find_if(days_.begin(), days_.end(), [&](const DayIds& ids) { return ids.day == day; });
  if (it != days_.end()) {
    days_.splice(days_.begin(), days_, it);
  } else {
    days_.push_front(DayIds{day, {}, {}});
  }
  DayIds& ids = days_.front();
  ids.last_use = ++day_uses_;
  while (days_.size() > kDaysMax ||
         (days_.size() > kDaysAlwaysKept && day_uses_ - days_.back().last_use > kDayUnusedMax)) {
    days_.pop_back();
  }
  MakeRoom(ids.nodes, tables_.nodes.size());
  MakeRoom(ids.frames, tables_.frames.size());
  ids.nodes.resize(tables_.nodes.size());
  ids.frames.resize(tables_.frames.size());
  return ids;
}

size_t SessionDictionary::table_bytes() const {
  const auto allocated = [](const auto& table) { return table.capacity() * sizeof(table[0]); };
  size_t bytes = sizeof(*this) + allocated(string_ids) + allocated(executable_ids) + allocated(process_ids) +
                 allocated(thread_ids) + allocated(newer_process_) +
                 newest_process_.capacity() * (sizeof(decltype(newest_process_)::value_type) + 1);
  ForEachTable([&](const auto& table) { bytes += allocated(table); }, tables_);
  for (const DayIds& ids : days_) bytes += sizeof(ids) + allocated(ids.nodes) + allocated(ids.frames);
  return bytes;
}

}  // namespace tributary::store
