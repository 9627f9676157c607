#pragma once

#include <list>
#include <memory>
#include <optional>
#include <string>

#include "base/metrics.h"
#include "intake/wire/frame.h"
#include "reducer/ingest/shard_core.h"
#include "test/simulator/durable_store.h"
#include "test/simulator/network.h"
#include "test/simulator/sim_exporter.h"
#include "test/simulator/sim_writer.h"
#include "test/simulator/world.h"

namespace tributary::sim {

// A machine that runs a reducer with real sessions, a real shard and a simulated writer. After a crash it starts again
// with the data that it had committed. It may be of an earlier release at first.
class SimReducer {
 public:
  struct Options {
    std::string name;
    SimWriter::Options writer;
    size_t sessions_remembered_max = 100;
    uint64_t export_seed = 0;
    bool earlier_release = false;  // cannot store process events, until a restart upgrades it
  };
  SimReducer(World& world, Network& network, Options options);
  ~SimReducer();

  void Start();
  void Kill(bool power_lost);
  bool running() const { return life_ != nullptr; }
  // The next start is of this release, which stores process events.
  void Upgrade() { store_.takes_events = true; }
  SimProcess* process();
  SimWriter* writer();

  const std::string& name() const { return options_.name; }
  SimClock& clock() { return clock_; }
  const DurableStore& store() const { return store_; }
  SimExporter& exporter() { return exporter_; }

 private:
  // A connection that has not sent a complete Hello.
  struct Waiting {
    std::unique_ptr<Stream> stream;
    intake::FrameDecoder decoder{64u << 10};
    std::unique_ptr<Alarm> deadline;
  };
  // All objects that are destroyed with the process.
  struct Life;

  void Accept(std::unique_ptr<Stream> stream);
  void OnData(Waiting& waiting, std::string_view bytes);
  void Drop(Waiting& waiting);
  void KillInExport();

  World& world_;
  Network& network_;
  const Options options_;
  SimClock clock_;
  DurableStore store_;
  SimExporter exporter_;
  std::unique_ptr<Life> life_;
};

}  // namespace tributary::sim
