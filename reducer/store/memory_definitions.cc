#include <algorithm>
#include <utility>

#include "reducer/store/memory_writer.h"

// The rows of a MemoryShard that samples refer to: types, nodes of tries, executables, texts, threads and processes.

namespace tributary::store {

TypeNo MemoryWriter::FindType(const SampleTypeInfo& info, const std::string& node_id) {
  if (info == kUndefinedType) return TypeNo{};
  size_t all = 0, of_machine = 0;
  for (const auto& [no, known] : shard_.types) {
    if (known == info) return no;
    if (no.value <= kBuiltInTypesMax) continue;
    ++all;
    if (shard_.type_machines[no] == node_id) ++of_machine;
  }
  TypeNo no;
  for (const SampleTypeRow& row : kSampleTypes) {
    if (InfoOf(row) == info) no = TypeNo{static_cast<uint32_t>(row.type)};
  }
  if (no.value == 0) {
    if (all >= kSampleTypesOfShardMax || of_machine >= kSampleTypesOfMachineMax) return TypeNo{};
    const uint32_t last = shard_.types.empty() ? 0 : shard_.types.rbegin()->first.value;
    no = TypeNo{std::max(last, kBuiltInTypesMax) + 1};
  }
  shard_.types.emplace(no, info);
  shard_.type_machines[no] = node_id;
  return no;
}

MappedNode MemoryWriter::MapNode(const Session& session, SessionDictionary& dictionary, NodeRef ref, Day day) {
  std::vector<FrameRef> frames;
  for (NodeRef at = ref; at.value != 0; at = dictionary.node(at).parent) frames.push_back(dictionary.node(at).frame);
  NodeNo node;
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    const Frame& raw = dictionary.frame(*frame);
    FrameRow row;
    if (frame->value != 0) {
      row = {raw.kind, raw.is_caller, MapExecutable(dictionary, raw.executable), raw.address, raw.position, {}};
      if (raw.name.value != 0) row.name = MapString(dictionary.string(raw.name));
    }
    const NodeKey key{day, node, row.kind, row.is_caller, row.executable, row.address, row.position, row.name};
    auto found = nodes_.find(key);
    if (found == nodes_.end()) {
      const size_t used = shard_.TrieOf(day).parents.size();
      uint32_t& added = shard_.trie_shares[{day, session.node_id}];
      const TrieLimits limits{options_.nodes_per_day_max, options_.machine_nodes_per_day_min};
      if (used >= limits.nodes_max) return {node, TrieCut::kFull};
      if (added >= TrieShare(limits, used)) return {node, TrieCut::kShare};
      ++added;
      found = nodes_.emplace(key, shard_.AddNode(day, node, row)).first;
    }
    node = found->second;
  }
  return {node};
}

ExecutableNo MemoryWriter::MapExecutable(SessionDictionary& dictionary, ExecutableRef ref) {
  const Executable& executable = dictionary.executable(ref);
  if (!executable.id.known()) return ExecutableNo{};
  const auto [found, added] = executables_.try_emplace(executable.id);
  if (added) found->second = shard_.AddExecutable(executable.id, std::string(dictionary.string(executable.path)));
  return found->second;
}

StringId MemoryWriter::MapString(std::string_view text) {
  const auto [found, added] = strings_.try_emplace(std::string(text), static_cast<uint32_t>(shard_.texts.size()));
  if (added) shard_.texts.emplace_back(text);
  return found->second;
}

SessionDictionary::StoreThread MemoryWriter::MapThread(const Session& session, SessionDictionary& dictionary,
                                                       ThreadRef ref, Slot slot) {
  SessionDictionary::StoreThread& known = dictionary.thread_ids[ref.value];
  if (ref.value == 0 || known.slot == slot) return known;
  const Thread& thread = dictionary.thread(ref);
  const bool is_new = known.no == 0;
  const ProcessNo process = MapProcess(session, dictionary, thread.process, slot);
  known = {is_new ? ++shard_.last_thread : known.no, process.value, slot};
  std::erase_if(shard_.threads, [&](const ThreadRow& row) { return row.no.value == known.no; });
  shard_.threads.push_back({ThreadNo{known.no}, process, thread.tid, std::string(dictionary.string(thread.name))});
  return known;
}

ProcessNo MemoryWriter::MapProcess(const Session& session, SessionDictionary& dictionary, ProcessRef ref, Slot slot) {
  if (ref.value == 0) return ProcessNo{};
  ref = dictionary.NewestProcess(ref);
  SessionDictionary::StoreProcess& known = dictionary.process_ids[ref.value];
  if (known.slot == slot) return ProcessNo{known.no};
  if (known.no == 0) known.no = ++shard_.last_process;
  const Process& process = dictionary.process(ref);
  auto text = [&](StringRef string) { return std::string(dictionary.string(string)); };
  const ProcessNo no{known.no};
  auto row = std::find_if(shard_.processes.begin(), shard_.processes.end(),
                          [&](const ProcessRow& other) { return other.no == no; });
  if (row == shard_.processes.end()) row = shard_.processes.insert(row, ProcessRow{.as_of = StartOf(slot)});
  *row = {.no = no,
          .node_id = session.node_id,
          .host_name = shard_.machines[session.node_id].host_name,
          .pid = process.key.pid,
          .parent = process.parent,
          .start_time_ns = process.key.start_time_ns,
          .exec_sequence = process.key.exec_sequence,
          .comm = text(process.comm),
          .executable_path = text(process.executable_path),
          .container_id = text(process.container_id),
          .cgroup_path = text(process.cgroup_path),
          .attributes = text(process.attributes),
          .executable = MapExecutable(dictionary, process.executable),
          .as_of = std::max(row->as_of, StartOf(slot))};
  known.slot = slot;
  return no;
}

}  // namespace tributary::store
