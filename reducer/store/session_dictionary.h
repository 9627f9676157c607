#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "profile/definitions.h"
#include "profile/eviction.h"
#include "profile/process_event.h"
#include "reducer/store/store.h"
#include "reducer/store/store_times.h"

namespace tributary::store {

// The definitions that a session has sent in its current dictionary, and the store ids that these definitions already
// have. If a collector starts a new dictionary, or drops old definitions from its dictionary, the dictionary gets a
// higher number, its generation. A definition gets its store id only when a sample needs it. The definition itself
// stays here too, because it needs another id in the next day's trie, or after retention has deleted its row.
// DictionaryLimits bounds the size. A node takes 8 bytes, and 4 more bytes for each day in use. Use it on the writer's
// thread.
class SessionDictionary {
 public:
  explicit SessionDictionary(uint32_t generation);
  // Returns a dictionary that has only the definitions that `eviction` keeps. These definitions get new numbers, and
  // keep their store ids. Returns nullptr if `eviction` was made for tables of other sizes, or if it drops a definition
  // that a kept definition refers to.
  std::unique_ptr<SessionDictionary> Derive(uint32_t generation, const Eviction& eviction) const;

  uint32_t generation() const { return generation_; }
  DictionaryCounts counts() const;

  // Returns false if a table or a string exceeds its limit, or if a definition refers to an undefined one. The caller
  // must then call Truncate.
  bool Append(const Definitions& definitions);
  // Removes all definitions beyond `counts`, and calls ForgetStoreIds. Call it after a transaction was rolled back.
  void Truncate(const DictionaryCounts& counts);
  // Removes all store ids, except the numbers of processes and threads.
  void ForgetStoreIds();
  // Removes the store ids of rows that retention may have deleted: rows that were last used before the day `before`, or
  // for strings before `strings_before`. A row that was used later still has its id.
  void ForgetDays(Day before, Day strings_before);
  // Removes old numbers of processes and threads, which the store will give to others. Processes and threads get new
  // numbers with their next sample.
  void ForgetNumbers(absl::FunctionRef<bool(uint32_t process)> is_old_process,
                     absl::FunctionRef<bool(uint32_t thread)> is_old_thread);
  // Removes the ids of nodes and frames in the day's trie.
  void ForgetTrie(Day day) {
    days_.remove_if([day](const DayIds& ids) { return ids.day == day; });
  }

  std::string_view string(StringRef ref) const { return tables_.strings[ref.value]; }
  const Executable& executable(ExecutableRef ref) const { return tables_.executables[ref.value]; }
  const Frame& frame(FrameRef ref) const { return tables_.frames[ref.value]; }
  Node node(NodeRef ref) const { return tables_.nodes[ref.value]; }
  const Process& process(ProcessRef ref) const { return tables_.processes[ref.value]; }
  // Returns the newest definition of the same process in the same container. A collector defines a process again if it
  // learns the process's attributes late.
  ProcessRef NewestProcess(ProcessRef ref);
  const Thread& thread(ThreadRef ref) const { return tables_.threads[ref.value]; }
  // Return true if all references of the sample or the event are defined.
  bool Defines(const Sample& sample) const;
  bool Defines(const ProcessEvent& event) const;

  // The store id of a definition (0: none yet), and the latest day on which its row was marked as used.
  struct StoreId {
    uint32_t no = 0;
    int32_t day = 0;
  };
  // The number of a process in the store (0: none yet), and the slot in which its description was last written.
  struct StoreProcess {
    uint32_t no = 0;
    Slot slot = kNoSlot;
    Slot described_slot = kNoSlot;  // if this description replaces an older one: `slot` of the older one
  };
  struct StoreThread {
    uint32_t no = 0, process = 0;
    Slot slot = kNoSlot;
  };
  std::vector<StoreId> string_ids, executable_ids;  // index: the definition's number in the session
  std::vector<StoreProcess> process_ids;
  std::vector<StoreThread> thread_ids;
  StoreId boot_id;  // store id of the string that contains the session's boot id

  // The ids of the session's nodes and frames in one day's trie. 0: no id yet. Node 0, the root, always has id 0.
  struct DayIds {
    Day day;
    std::vector<uint32_t> nodes, frames;
    uint64_t last_use = 0;  // number of the call of IdsOfDay
  };
  // Call it for each batch and each of its days. Keeps the ids of the two days used last: around midnight, samples of
  // two days arrive. Keeps the ids of up to four days while each of them is used at least once per kDayUnusedMax calls.
  // So batches that alternate between all days that a node may use do not look up their nodes again and again.
  DayIds& IdsOfDay(Day day);
  static constexpr uint64_t kDayUnusedMax = 1'000;  // a collector sends about as many batches in 80 minutes

  // Allocated memory (session_ledger.h) of the texts, and of all other data.
  size_t string_bytes() const { return string_bytes_; }
  size_t table_bytes() const;

 private:
  void Describe(const Process& process);
  void CountStringBytes();
  uint32_t IndexProcess(const Process& process);
  void IndexProcesses();

  uint32_t generation_;
  DictionaryLimits limits_;
  size_t string_bytes_ = 0;  // allocated
  Definitions tables_;       // including id 0 of each table
  absl::flat_hash_map<ProcessKey, uint32_t> newest_process_;
  std::vector<uint32_t> newer_process_;  // index: a process; value: the description that replaced it, or 0
  std::list<DayIds> days_;               // most recently used first
  uint64_t day_uses_ = 0;                // calls of IdsOfDay
};

}  // namespace tributary::store
