#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "intake/wire/frame.h"
#include "test/simulator/durable_store.h"
#include "test/simulator/rules.h"
#include "test/simulator/world.h"

namespace tributary::sim {

// Checks every frame that either end writes. A batch must be durable when its acknowledgement is written.
// When a batch is sent, the unacknowledged bytes before it must be within the credit, their limit. Also changes frames,
// so that each end seems to be of a later release: adds frames of unknown types, and versions and features of a later
// release. Sets credits that make a sender wait.
class WireWatch {
 public:
  WireWatch(World& world, Break broken) : world_(world), broken_(broken), credit_(512u << world.Below(8)) {}

  // May change the frame, or add other frames before it.
  void OnFrame(uint64_t connection, bool to_server, const std::string& server, const DurableStore& store,
               std::string& bytes);

 private:
  struct Seen {
    SessionId session{};
    bool welcomed = false;
    uint64_t last_sequence = 0, acked = 0;
    std::map<uint64_t, size_t> unacked;  // bytes by sequence
    size_t unacked_bytes = 0, definitions_bytes = 0;
  };
  void OnHello(Seen& seen, intake::Frame frame, std::string& bytes);
  void OnBatch(Seen& seen, uint64_t sequence, size_t bytes);
  void OnWelcome(Seen& seen, const DurableStore& store, const intake::Frame& frame, std::string& bytes);
  uint64_t FeaturesFor(const DurableStore& store, uint64_t features);
  void OnAck(Seen& seen, const DurableStore& store, uint64_t sequence);
  void AddStranger(std::string& bytes);

  World& world_;
  const Break broken_;
  const uint32_t credit_;
  std::map<uint64_t, Seen> connections_;
};

}  // namespace tributary::sim
