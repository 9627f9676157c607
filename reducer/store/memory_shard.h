#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "profile/row_batch.h"
#include "reducer/store/session_totals.h"
#include "reducer/store/store.h"
#include "reducer/store/store_times.h"
#include "reducer/store/trie.h"

namespace tributary::store {

// The rows of one shard of a MemoryStore. A MemoryReader returns them. A MemoryWriter adds rows from batches, or a test
// adds rows directly.
struct MemoryShard {
  struct Sample {
    UnixNs time;
    ProcessNo process;
    ThreadNo thread;
    NodeNo node;
    uint64_t value = 0;
    uint32_t count = 1;
    TypeNo type{1};
    std::string node_id = "node-1";
    Ending ending = Ending::kComplete;
    StringId attributes;
    uint16_t cpu = 0;
    int64_t no = 0;    // order of commits, from 1; 0: a test added it directly, and its index in `samples` is its order
    uint64_t end = 0;  // Σ counts of the samples up to this one; 0 if `no` is 0
  };

  struct Event {
    ProcessEventKind kind = ProcessEventKind::kStart;
    UnixNs time;
    std::string node_id = "node-1", host_name = "host-1";
    Pid pid, parent;
    int64_t start_time_ns = 0;
    uint32_t uid = 0;
    std::string name, executable_path, container_id, cgroup_path;
    uint32_t events = 1, processes = 1;
    ProcessEnd end;
    int64_t no = 0;  // as in Sample
  };

  // The row of a source of samples. There is also a row for each session that has sent nothing itself, but that another
  // session has reported as ended.
  struct Session {
    std::string node_id, boot_id;
    int64_t boot_ns = 0;  // unix time; 0: unknown
    UnixNs last_seen;
    SessionTotals totals;
  };

  std::vector<NodeStatus> nodes;  // added by tests; readers also return the nodes that have sessions
  std::map<std::string, NodeInfo> machines;
  std::map<Source, Session> sessions;
  std::vector<ProcessRow> processes;
  std::vector<ThreadRow> threads;
  std::vector<ExecutableRow> executables = {ExecutableRow{}};
  // The default, the built-in types, is for tests that add samples directly. MemoryStore starts its shards without
  // types.
  std::map<TypeNo, SampleTypeInfo> types = {{TypeNo{1}, InfoOf(*FindSampleType(SampleType::kCpu))},
                                            {TypeNo{2}, InfoOf(*FindSampleType(SampleType::kOffCpu))}};
  std::map<TypeNo, std::string> type_machines;  // the machine that sent the type first
  std::vector<std::string> texts = {""};        // index: StringId
  std::map<Day, Trie> tries;
  std::map<std::pair<Day, std::string>, uint32_t> trie_shares;  // nodes that a machine (node id) has added to a trie
  std::vector<Sample> samples;
  std::vector<Event> events;
  std::vector<LossRecord> losses;           // index + 1: number
  int64_t last_sample = 0, last_event = 0;  // the last numbers given
  uint64_t samples_end = 0;                 // `end` of the last sample
  uint32_t last_process = 0, last_thread = 0;
  UnixNs closed_until{0};                    // earlier minutes are closed: their samples may expire
  UnixNs raw_expired_until{INT64_MIN};       // earlier samples count only in sums
  std::optional<absl::Status> error;         // returned by every call
  std::optional<absl::Status> commit_error;  // returned by commits

  static Day DayOf(UnixNs time) { return store::DayOf(time); }

  ExecutableNo AddExecutable(ExecutableId id, std::string path) {
    executables.push_back(ExecutableRow{id, std::move(path)});
    return ExecutableNo{static_cast<uint32_t>(executables.size() - 1)};
  }
  NodeNo AddNode(Day day, NodeNo parent, FrameRow frame) {
    Trie& trie = TrieOf(day);
    trie.parents.push_back(parent);
    trie.frames.push_back(static_cast<uint32_t>(trie.frame_rows.size()));
    trie.frame_rows.push_back(frame);
    return NodeNo{static_cast<uint32_t>(trie.parents.size() - 1)};
  }
  Trie& TrieOf(Day day) { return tries.try_emplace(day, EmptyTrie()).first->second; }
  absl::Status Check() const { return error.value_or(absl::OkStatus()); }
};

}  // namespace tributary::store
