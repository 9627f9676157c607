#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "reducer/store/memory_store.h"
#include "test/simulator/rules.h"
#include "test/simulator/sim_receiver.h"
#include "test/simulator/world.h"

namespace tributary::sim {

// The export of a reducer: the real ExportLoop over the samples that the reducer has committed. It runs on the process
// of the reducer, and can be killed in the middle of a request or while it saves its position. The data of the store,
// and the receiver, outlive the process.
class SimExporter {
 public:
  static constexpr uint32_t kShards = 2;

  SimExporter(World& world, uint64_t seed, const std::string& name, Break broken);
  ~SimExporter();

  // A sample was committed. `id` selects its shard.
  void Add(uint64_t id);
  // `kill` is called after the exporter was killed, as the last action of an event: the whole process must end.
  void Start(SimProcess& process, const SimClock& clock, std::function<void()> kill);
  void Stop();
  // An orderly stop: sends what it can before.
  void Flush();

  SimReceiver& receiver() { return receiver_; }
  // Returns the problem, or "" if the receiver knows all samples and the exporter counted the repeated ones.
  std::string CheckLaw() const;
  uint64_t added() const { return added_; }
  uint64_t duplicates() const { return receiver_.duplicates() + receiver_.uncounted(); }

 private:
  struct Life;
  void Run();

  World& world_;
  const std::string name_;
  const Break broken_;
  SimReceiver receiver_;
  const size_t scan_rows_max_;  // a release has one number, but its requests may be smaller than those of another
  const std::shared_ptr<store::MemoryData> data_ = std::make_shared<store::MemoryData>();
  store::NodeNo leaves_[kShards];
  uint64_t added_ = 0;
  uint64_t repeated_ = 0;  // counted by earlier lives
  std::unique_ptr<Life> life_;
};

}  // namespace tributary::sim
