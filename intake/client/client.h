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
#include "symbols/symbol_digest.h"

namespace tributary::intake {

// The node's end of a session with one reducer. Connects, sends Hello, and requests batches from Callbacks::next while
// it has credit. Stores the samples of each sent batch until the reducer acknowledges the batch as durable. After a
// disconnect it connects again with exponential back-off and jitter. If it sends a batch again, the batch has the same
// sequence number and the same samples, so the reducer can drop duplicates. If the reducer is of an earlier release,
// which cannot store process events, batches that have some wait until the reducer was upgraded (UpgradeWait). After
// the wait they are sent without their events. Use it only on the loop's thread.
struct ClientOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 8000;
  Role role = Role::kNode;
  SessionInfo session;
  std::function<std::string()> token;  // called for each connection; null: no token
  int64_t backoff_min_ms = 250;
  int64_t backoff_max_ms = 15'000;
  // Limit of samples that were sent and are not durable yet (10 MiB). Process events use a part of the same memory. One
  // batch is always allowed.
  uint64_t window_samples_max = 262'144;
  int64_t upgrade_wait_ms = 3'600'000;  // how long batches wait for the upgrade of a reducer of an earlier release
  uint64_t seed = 0;                    // of the back-off's jitter; 0: random
  int64_t connect_timeout_ms = 10'000;  // until Welcome
  int64_t symbol_chunk_period_ms = 62;  // one chunk of 64 KiB per period: 1 MiB/s
  MetadataFeed* metadata = nullptr;     // each connection begins with a snapshot of it; must outlive the client
};

class Client {
 public:
  // Callbacks must not destroy the client.
  struct Callbacks {
    // Returns the next batch for this session. If it returned nullopt, the owner must call Wake when there is a batch.
    std::function<std::optional<Outgoing>(uint64_t sequence)> next;
    std::function<void(const SendWindow::Entry&)> acked;  // the batch is durable
    // The reducer refused a batch with these samples as malformed, and will never accept it. The accounting of this
    // session already counts the samples as lost.
    std::function<void(const SampleCounts& samples)> rejected;
    // The reducer cannot store process events, and made batches durable that had these events. The accounting of this
    // session already counts them as lost.
    std::function<void(const SampleCounts& events)> not_taken;
    std::function<void(const ExecutableId&)> need_symbols;
    // The reducer requests only the digest of the table. Null: the client does not answer such requests.
    std::function<void(const ExecutableId&)> need_digest;
    // The reducer wants no records of these containers. Replaces its earlier list. Null: the client reads no lists.
    std::function<void(std::vector<std::string> containers)> opt_outs;
    std::function<void()> changed;  // ready() may have changed
  };

  Client(AlarmSource& alarms, Connector& connector, ClientOptions options, const Clock& clock, Metrics& metrics,
         Callbacks callbacks);
  ~Client();

  // Continues a session that an earlier process began. Call it before Start.
  void Continue(uint64_t last_sequence, const Accounting& totals);
  void Start();
  // Closes the connection. Start may continue the session later.
  void Stop();
  void Wake();

  // Sets the sample rate in Hello, from the next connection on.
  void SetSampleRate(uint32_t hz);

  // SendSymbols queues a table for upload, in chunks of 64 KiB between batches, at most 1 MiB/s. If the reducer already
  // has the beginning of the table, only the rest is sent. SendNoSymbols reports that there is no table. Both do
  // nothing if the table was not requested on this connection. If the connection breaks, tables that were not sent
  // completely are dropped: the reducer requests them again.
  void SendSymbols(const ExecutableId& id, PackedTable table);
  void SendNoSymbols(const ExecutableId& id, std::string why);
  // Sends the digest of a table, or the reason why there is no table. Does nothing if the digest was not requested on
  // this connection.
  void SendDigest(const ExecutableId& id, const absl::StatusOr<SymbolDigest>& digest);

  // Removes the batches from the window and returns them. The client then no longer waits for their acknowledgement.
  // Call it only while ready() is false.
  std::vector<SendWindow::Entry> GiveUp();

  // Returns true if the batch must wait until the reducer was upgraded (UpgradeWait::Holds). Callbacks::next must not
  // return such a batch.
  bool Holds(const Batch& batch);
  bool waits_for_upgrade() const;  // true if the reducer is connected, and batches wait for its upgrade
  // Sends batches without process events while the reducer is of an earlier release. `why` is for the log.
  void StopWaiting(const char* why);
  // Like StopWaiting, and no batch waits from now on.
  void EndWaiting(const char* why);

  bool started() const;
  bool ready() const;                // true from Welcome until the connection ends
  MonotonicNs silent_since() const;  // when the last byte was read, or the time of Start
  // The reason why the reducer does not accept this client, if the last attempt failed and further attempts will fail
  // unless a person changes something. Otherwise "".
  const std::string& refusal() const;
  bool has_sent_metadata() const;  // true if a whole metadata snapshot was sent, on any connection
  const SendWindow& window() const;
  const ClientOptions& options() const;
  uint64_t bytes_sent() const;  // of all frames, before encryption

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tributary::intake
