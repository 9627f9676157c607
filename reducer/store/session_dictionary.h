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

// What one session has defined in its current generation, and what of it has ids in the store already. Definitions are
// kept raw: an id is made when a sample first needs it (most definitions of a day are used again the next day, in
// another trie), and made again after retention has removed rows. Bounded by DictionaryLimits; memory: about 24 bytes a
// node and day in use. On the writer's thread.
class SessionDictionary {
 public:
  explicit SessionDictionary(uint32_t generation);
  // What `eviction` leaves of this, under new numbers, with the store ids known for it. nullptr: it is of tables of
  // other sizes, or drops what something kept refers to.
  std::unique_ptr<SessionDictionary> Derive(uint32_t generation, const Eviction& eviction) const;

  uint32_t generation() const { return generation_; }
  DictionaryCounts counts() const;

  // False: a table over its limit, or a reference to what is not defined; call Truncate then.
  bool Append(const Definitions& definitions);
  // Forgets what was defined beyond `counts`, and what is in the store: for a transaction that was rolled back.
  void Truncate(const DictionaryCounts& counts);
  void ForgetStoreIds();

  std::string_view string(StringRef ref) const { return tables_.strings[ref.value]; }
  const Executable& executable(ExecutableRef ref) const { return tables_.executables[ref.value]; }
  const Frame& frame(FrameRef ref) const { return tables_.frames[ref.value]; }
  Node node(NodeRef ref) const { return tables_.nodes[ref.value]; }
  const Process& process(ProcessRef ref) const { return tables_.processes[ref.value]; }
  // The newest definition of that process in that container: attributes may be learned late.
  ProcessRef NewestProcess(ProcessRef ref);
  const Thread& thread(ThreadRef ref) const { return tables_.threads[ref.value]; }
  // Whether a sample's references are defined.
  bool Defines(const Sample& sample) const;

  // A row's id in the store and the latest day it was marked as used on; no == 0: none yet.
  struct StoreId {
    uint32_t no = 0;
    int32_t day = 0;
  };
  // A number in the store and the slot it was told of for last; no == 0: none yet.
  struct StoreProcess {
    uint32_t no = 0;
    Slot slot = kNoSlot;
    Slot described_slot = kNoSlot;  // where the description that this one takes the place of was told last
  };
  struct StoreThread {
    uint32_t no = 0, process = 0;
    Slot slot = kNoSlot;
  };
  std::vector<StoreId> string_ids, executable_ids;  // index: the session's id
  std::vector<StoreProcess> process_ids;
  std::vector<StoreThread> thread_ids;
  StoreId boot_id;  // of the session's boot id as a string

  // Ids in one day's trie, 0 = none yet (the root maps to itself).
  struct DayIds {
    Day day;
    std::vector<uint32_t> nodes, frames;
  };
  // The two days used last are kept: around midnight samples come for both.
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
  Definitions tables_;  // id 0 of each included
  absl::flat_hash_map<ProcessKey, uint32_t> newest_process_;
  std::vector<uint32_t> newer_process_;  // index: a process; the description that has taken its place, or 0
  std::list<DayIds> days_;               // most recently used first
};

}  // namespace tributary::store
