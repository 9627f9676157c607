#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "profile/batch.h"
#include "profile/dictionary.h"

// The programs that the nodes of a made-up fleet run: a web server and a database, which share a library. All nodes
// have the same executables. So a wrong symbol table from one node changes the names of all nodes.

namespace tributary {

enum class MadeUpFile : uint8_t { kLibrary, kWeb, kDatabase };
constexpr uint8_t kMadeUpFileCount = 3;
constexpr uint64_t kFunctionsPerFile = 40, kFunctionBytes = 64;

ExecutableId IdOf(MadeUpFile file);
std::string_view PathOf(MadeUpFile file);
// Returns the encoded symbol table of one of the files: function 7 of the library has the name "libmade_f7". `prefix`
// precedes each name, and more functions than the real ones may be added. So a hostile node can send another table.
std::string TableOf(const ExecutableId& id, std::string_view prefix, uint64_t functions = kFunctionsPerFile);

// Makes the batches of one node. They depend only on the arguments of the constructor, so that two fleets with the same
// arguments send the same samples.
class MadeUpPrograms {
 public:
  static constexpr int kSamplesPerBatch = 20, kEventsPerBatch = 2;

  // Each batch covers `batch_ns`.
  MadeUpPrograms(uint32_t node, UnixNs begin, int64_t batch_ns);
  // Returns the next batch. Each batch has stacks that no earlier batch had. The first sample of every 25th node has a
  // stack of 900 frames.
  Batch Next();

 private:
  static constexpr int kDeepStack = 900;

  uint64_t Below(uint64_t n) { return random_() % n; }
  ThreadRef Intern(MadeUpFile file, int32_t pid);
  NodeRef Push(NodeRef parent, MadeUpFile file, uint64_t function, bool is_caller);
  Sample NextSample(MonotonicNs time, bool deep);
  void AddEvents(Batch& batch);

  const uint32_t node_;
  const int64_t batch_ns_;
  ClockPair now_;
  std::mt19937_64 random_;
  uint64_t batches_ = 0;
  std::shared_ptr<Dictionary> dictionary_ = std::make_shared<Dictionary>();
  Accounting accounting_;
};

}  // namespace tributary
