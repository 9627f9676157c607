#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "intake/client/delivery.h"
#include "intake/spool/spool.h"
#include "intake/testing/fake_spool_storage_testing.h"
#include "test/simulator/durable_store.h"
#include "test/simulator/network.h"
#include "test/simulator/rules.h"
#include "test/simulator/sim_pins.h"
#include "test/simulator/world.h"

namespace tributary::sim {

// A machine that is profiled. Its collector has a real spool and the real sending side. The sampled programs are
// simulated. Three parts outlive the collector: the counters of the kernel side, the collector's pinned data and the
// spool's disk.
class SimCollector {
 public:
  struct Options {
    std::string name;
    uint8_t number = 0;
    std::vector<std::string> reducers;
    DictionaryLimits dictionary;
    uint32_t stacks = 500;  // number of different stacks
    int64_t batch_ns = 500 * kNsPerMs;
    uint32_t samples_max = 40;  // per batch
    uint32_t events_max = 10;   // per batch
    size_t memory_bytes_max = 16'384;
    uint64_t window_samples_max = 2'000;
    int64_t failover_ms = 5'000;
    int64_t in_doubt_timeout_ms = 60'000;
    int64_t upgrade_wait_ms = 0;
    bool has_spool = true;
    intake::SpoolOptions spool;
    Break broken = Break::kNone;
  };
  SimCollector(World& world, Network& network, Options options);
  ~SimCollector();

  void Start();
  void Kill(bool power_lost);
  void Stop();  // an orderly stop: flushes first
  bool running() const { return life_ != nullptr; }
  // Returns true if the disk was killed in the middle of an operation. The process counts as killed at the same time,
  // and must do nothing more.
  bool DiedInDisk() const { return running() && storage_.dead(); }
  void CalmDown() { calm_ = true; }  // from now on: no samples, only accounting

  SimProcess* process();
  intake::FakeSpoolStorage& storage() { return storage_; }
  SimClock& clock() { return clock_; }
  const std::string& name() const { return options_.name; }
  uint64_t waiting_samples() const;
  bool connected() const;

  // The real numbers and samples. The reducers' data is compared with them.
  const SimPins& pins() const { return pins_; }
  const SampleCounts& captured() const { return captured_; }
  const std::map<uint64_t, WholeSample>& samples() const { return samples_; }  // all captured samples, by value
  const std::map<uint64_t, WholeEvent>& events() const { return events_; }     // all captured events, by EventId
  // The numbers that the collectors counted as lost themselves. The losses of killed collectors are missing.
  const Accounting& counted_lost() const { return counted_lost_; }

 private:
  struct Life;
  void Produce();
  void RenewDictionary(Life& life);
  Sample NextSample();
  ProcessEvent NextEvent();
  void NewProcess(ProcessEvent& event);
  void NameProcess(ProcessEvent& event);
  ThreadRef NextThread(Dictionary& dictionary, uint64_t program);

  World& world_;
  Network& network_;
  const Options options_;
  SimClock clock_;
  intake::FakeSpoolStorage storage_;
  SampleCounts captured_;
  SimPins pins_;
  std::map<uint64_t, WholeSample> samples_;
  std::map<uint64_t, WholeEvent> events_;
  uint64_t processes_ = 0;  // and sums
  Accounting counted_lost_;
  uint32_t lives_ = 0;
  bool calm_ = false;
  std::unique_ptr<Life> life_;
};

}  // namespace tributary::sim
