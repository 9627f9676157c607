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
  double speed = 1;     // factor: 2 is twice as fast as recorded; infinity: as fast as the reducer accepts
  uint32_t repeat = 1;  // how many times the recording is sent; 0: without end
  std::string token;    // bearer token of every session
  int64_t backoff_min_ms = 250, backoff_max_ms = 15'000;
  size_t cache_bytes_max = 64u << 20;
  uint64_t seed = 0;  // of session ids and jitter; 0: random
  // Returns the symbol table that nodes send if a reducer requests the table of this executable. Called on the loop. If
  // null, nodes do not answer NeedSymbols.
  std::function<PackedTable(const ExecutableId&)> symbols;
  uint64_t symbol_chunk_period_ms = 62;  // as in ClientOptions
};

struct ReplayTotals {
  uint64_t samples_sent = 0, samples_acked = 0;  // of all nodes; a batch counts once, even if it is sent again
  uint64_t bytes_sent = 0;                       // of all frames
  uint32_t connected = 0, finished = 0, failed = 0;
  uint64_t reconnects = 0;
  uint64_t batches_built = 0;
};

class ReplayNode;

// Sends a recording in many sessions at the same time, one session for each simulated node. Each session has its own
// node id ("<recorded>-replay-7"), and the role replay. A node follows the protocol like any client (credit,
// acknowledgements, NeedDictionary, heartbeats, back-off), but does not store batches. If it must send a batch again,
// it reads the batch from the file again. After a reconnect, a node must send its current dictionary generation from
// the beginning. The reducer ignores the batches that it already has.
//
// Frames are made once for all nodes and then only copied, so a thousand nodes cost little more than their sockets. Use
// it only on the loop's thread.
class Replay {
 public:
  // Calls `done` when all nodes are finished or failed, or if a node fails before any node has connected. The status is
  // OK if all nodes finished. `done` must not destroy this object. All borrowed objects must outlive this object.
  Replay(AlarmSource& alarms, Connector& connector, const Clock& clock, ReplayScript script, ReplayOptions options,
         std::function<void(absl::Status)> done);
  ~Replay();

  void Start();
  ReplayTotals totals() const;
  const ReplayScript& script() const { return script_; }

 private:
  friend class ReplayNode;

  uint64_t last_sequence() const;  // of the whole replay, all passes
  SampleCounts SamplesUpTo(uint64_t sequence) const;
  const ReplayScript::Step& StepOf(uint64_t sequence) const;
  uint64_t PassOf(uint64_t sequence) const { return (sequence - 1) / script_.steps().size(); }
  int64_t OffsetNs(uint64_t sequence) const;  // when the batch is due, since the start
  absl::StatusOr<FrameCache::Bytes> FramesOf(uint64_t sequence, uint32_t generation, bool with_events);

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
  uint64_t due_ = 0;  // sequence number of the last batch that is due
  uint32_t tick_ms_ = 1000;
  ReplayTotals totals_;
  absl::Status first_failure_;
  std::unique_ptr<Alarm> due_alarm_, tick_alarm_, symbol_alarm_, done_alarm_;
};

}  // namespace tributary::intake
