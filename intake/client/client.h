#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/alarm.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/stream.h"
#include "intake/client/send_window.h"
#include "intake/metadata/metadata_feed.h"
#include "intake/wire/frame.h"
#include "intake/wire/messages.h"
#include "profile/batch.h"
#include "symbols/packed_table.h"

namespace tributary::intake {

// The sending end of one session with one reducer: keeps a connection, says Hello, asks its feeder for batches while it
// has credit, keeps each (as samples) until it is acknowledged as durable, and starts over after a disconnect with
// exponential back-off and jitter. Re-sent batches have the same sequence number and the same samples, so a duplicate
// changes nothing. On the loop's thread.
struct ClientOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 8000;
  Role role = Role::kNode;
  SessionInfo session;
  std::function<std::string()> token;  // asked for each connection; null = none
  int64_t backoff_min_ms = 250;
  int64_t backoff_max_ms = 15'000;
  uint64_t window_samples_max = 262'144;  // taken and not yet durable: 10 MiB; one batch may always be
  uint64_t seed = 0;                      // of the jitter; 0 = random
  int64_t connect_timeout_ms = 10'000;    // until Welcome
  int64_t symbol_chunk_period_ms = 62;    // a chunk of 64 KiB each: 1 MiB/s
  MetadataFeed* metadata = nullptr;       // told on every connection, from its beginning; outlives the client
};

class Client {
 public:
  // Must not destroy the client.
  struct Callbacks {
    // The next batch for this session; none now: Wake when there is.
    std::function<std::optional<Outgoing>(uint64_t sequence)> next;
    std::function<void(const SendWindow::Entry&)> acked;  // durable
    // Samples that the reducer refuses for ever: already in this session's accounting.
    std::function<void(const SampleCounts& samples)> rejected;
    std::function<void(const ExecutableId&)> need_symbols;
    std::function<void()> changed;  // ready() may have changed
  };

  Client(AlarmSource& alarms, Connector& connector, ClientOptions options, const Clock& clock, Metrics& metrics,
         Callbacks callbacks);
  ~Client();

  // Goes on with a session that an earlier process began, before Start.
  void Continue(uint64_t last_sequence, const Accounting& totals);
  void Start();
  // Closes the connection; the session may go on later, by Start.
  void Stop();
  void Wake();

  // What Hello says of the session, from the next connection on.
  void SetSampleRate(uint32_t hz);

  // Queues a table for upload (chunks of 64 KiB between batches, 1 MiB/s at most), or says there is none; of what the
  // reducer has already only the rest is sent. Tables not asked for on this connection are dropped, as are those not
  // yet sent when it breaks: the reducer asks again.
  void SendSymbols(const ExecutableId& id, PackedTable table);
  void SendNoSymbols(const ExecutableId& id, std::string why);

  // Batches whose fate is not waited for any longer, while not ready().
  std::vector<SendWindow::Entry> GiveUp();

  bool started() const;
  bool ready() const;                // between Welcome and the end of its connection
  MonotonicNs silent_since() const;  // heard nothing since: from the last byte read, or from Start
  bool has_told_metadata() const;    // all of a snapshot of the metadata was sent, on this connection or an earlier one
  const SendWindow& window() const;
  const ClientOptions& options() const;
  uint64_t bytes_sent() const;  // on the wire, all frames

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tributary::intake
