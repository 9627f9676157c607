#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/alarm.h"
#include "base/clock.h"
#include "base/stream.h"
#include "intake/recording/frame_cache.h"
#include "intake/recording/replay_script.h"
#include "symbols/packed_table.h"

namespace tributary::intake {

struct ReplayOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 8000;
  uint32_t nodes = 1;
  double speed = 1;     // times as fast as it was recorded; infinity: as fast as the reducer accepts
  uint32_t repeat = 1;  // passes; 0: for ever
  std::string token;    // bearer token of every session
  int64_t backoff_min_ms = 250, backoff_max_ms = 15'000;
  size_t cache_bytes_max = 64u << 20;
  uint64_t seed = 0;  // of session ids and jitter; 0: random
  // Returns the symbol table that every node sends for a requested executable. Called on the loop. If this is null,
  // nodes do not answer NeedSymbols.
  std::function<PackedTable(const ExecutableId&)> symbols;
  uint64_t symbol_chunk_period_ms = 62;  // as in ClientOptions
};

struct ReplayTotals {
  uint64_t samples_sent = 0, samples_acked = 0;  // of all nodes; a batch that is sent again counts once
  uint64_t bytes_sent = 0;                       // on the wire, all frames
  uint32_t connected = 0, finished = 0, failed = 0;
  uint64_t reconnects = 0;
  uint64_t batches_built = 0;
};

class ReplayNode;

// Sends a recording as many nodes at once. Each node has its own session, with its own node id ("<recorded>-replay-7")
// and role replay. A node follows the protocol like any client (credit, acknowledgements, NeedDictionary, heartbeats,
// back-off), but holds no batch: batches that a reducer needs again are read from the file again. A replay cannot
// continue a generation in the middle, so a session that reconnects sends its generation from the beginning. The
// reducer ignores the batches that it has already.
//
// Frames are made once for all nodes and then only copied, so a thousand nodes cost little more than their sockets. All
// on the loop's thread.
class Replay {
 public:
  // Calls `done` when all nodes are finished or failed, or when a node fails before any node has ever connected. OK if
  // all finished. `done` must not destroy this object. All borrowed objects must outlive it.
  Replay(AlarmSource& alarms, Connector& connector, const Clock& clock, ReplayScript script, ReplayOptions options,
         std::function<void(absl::Status)> done);
  ~Replay();

  void Start();
  ReplayTotals totals() const;
  const ReplayScript& script() const { return script_; }

 private:
  friend class ReplayNode;

  uint64_t last_sequence() const;  // of the whole replay
  SampleCounts SamplesUpTo(uint64_t sequence) const;
  const ReplayScript::Step& StepOf(uint64_t sequence) const;
  uint64_t PassOf(uint64_t sequence) const { return (sequence - 1) / script_.steps().size(); }
  int64_t OffsetNs(uint64_t sequence) const;  // time of the batch, from the start
  absl::StatusOr<FrameCache::Bytes> FramesOf(uint64_t sequence, uint32_t generation);

  void OnReady(ReplayNode& node, uint32_t heartbeat_ms);
  void OnOver(ReplayNode& node, const absl::Status& why);
  void ConnectMore();
  void Advance();
  void Tick();
  void SendSymbols();

  AlarmSource& alarms_;
  Connector& connector_;
  const Clock& clock_;
  const ReplayScript script_;
  const ReplayOptions options_;
  const std::function<void(absl::Status)> done_;
  std::mt19937_64 random_;
  FrameCache cache_;
  std::vector<std::unique_ptr<ReplayNode>> nodes_;
  size_t next_to_connect_ = 0;
  uint32_t connecting_ = 0;  // nodes that connect for the first time
  bool ever_connected_ = false;
  MonotonicNs started_;
  UnixNs started_unix_;
  uint64_t due_ = 0;  // the last sequence that is due
  uint32_t tick_ms_ = 1000;
  ReplayTotals totals_;
  absl::Status first_failure_;
  std::unique_ptr<Alarm> due_alarm_, tick_alarm_, symbol_alarm_, done_alarm_;
};

}  // namespace tributary::intake
