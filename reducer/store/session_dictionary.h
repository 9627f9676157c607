#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "profile/definitions.h"
#include "profile/eviction.h"
#include "reducer/store/store.h"
#include "reducer/store/store_times.h"

namespace tributary::store {

// Holds the definitions of one session's current generation, and the store ids that these definitions already have.
// Definitions are kept raw. An id is made when a sample first needs it, because most definitions of a day are used
// again the next day, in another trie. An id is made again after retention has removed rows. DictionaryLimits limit the
// size. Memory: about 24 bytes per node and day in use. Use it on the writer's thread.
class SessionDictionary {
 public:
  explicit SessionDictionary(uint32_t generation);
  // Returns a dictionary with the definitions that `eviction` keeps, under new numbers, and with their known store ids.
  // Returns nullptr if `eviction` is for tables of other sizes, or if it drops a definition that a kept definition
  // refers to.
  std::unique_ptr<SessionDictionary> Derive(uint32_t generation, const Eviction& eviction) const;

  uint32_t generation() const { return generation_; }
  DictionaryCounts counts() const;

  // Returns false if a table would exceed its limit, or if a definition refers to an undefined one. The caller must
  // then call Truncate.
  bool Append(const Definitions& definitions);
  // Forgets all definitions beyond `counts`, and all store ids. For a transaction that was rolled back.
  void Truncate(const DictionaryCounts& counts);
  void ForgetStoreIds();

  std::string_view string(StringRef ref) const { return tables_.strings[ref.value]; }
  const Executable& executable(ExecutableRef ref) const { return tables_.executables[ref.value]; }
  const Frame& frame(FrameRef ref) const { return tables_.frames[ref.value]; }
  Node node(NodeRef ref) const { return tables_.nodes[ref.value]; }
  const Process& process(ProcessRef ref) const { return tables_.processes[ref.value]; }
  // Returns the newest definition of the same process in the same container, because attributes may be learned late.
  ProcessRef NewestProcess(ProcessRef ref);
  const Thread& thread(ThreadRef ref) const { return tables_.threads[ref.value]; }
  // Returns true if all references of the sample are defined.
  bool Defines(const Sample& sample) const;

  // A row's id in the store, and the latest day on which the row was marked as used. no == 0: no id yet.
  struct StoreId {
    uint32_t no = 0;
    int32_t day = 0;
  };
  // A number in the store, and the slot in which the row was last written. no == 0: no number yet.
  struct StoreProcess {
    uint32_t no = 0;
    Slot slot = kNoSlot;
    Slot described_slot = kNoSlot;  // the slot in which the description that this one replaces was last written
  };
  struct StoreThread {
    uint32_t no = 0, process = 0;
    Slot slot = kNoSlot;
  };
  std::vector<StoreId> string_ids, executable_ids;  // index: the session's id
  std::vector<StoreProcess> process_ids;
  std::vector<StoreThread> thread_ids;
  StoreId boot_id;  // of the string that is the session's boot id

  // Ids in one day's trie. 0: no id yet (the root maps to itself).
  struct DayIds {
    Day day;
    std::vector<uint32_t> nodes, frames;
  };
  // Keeps the two days used last, because around midnight samples of both days arrive.
  DayIds& IdsOfDay(Day day);

  size_t memory_bytes() const;

 private:
  void Describe(const Process& process);
  void CountStringBytes();
  uint32_t IndexProcess(const Process& process);
  void IndexProcesses();

  uint32_t generation_;
  DictionaryLimits limits_;
  size_t string_bytes_ = 0;
  Definitions tables_;  // including id 0 of each table
  absl::flat_hash_map<ProcessKey, uint32_t> newest_process_;
  std::vector<uint32_t> newer_process_;  // index: a process; value: the description that replaced it, or 0
  std::list<DayIds> days_;               // most recently used first
};

}  // namespace tributary::store
