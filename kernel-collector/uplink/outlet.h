#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "intake/credentials/credentials.h"
#include "profile/accounting.h"
#include "profile/batch.h"
#include "symbols/packed_table.h"

namespace tributary {

// Where the collector's batches go: Uplink sends them to reducers, and DirectOutlet (direct/) to a receiver of OTLP, or
// prints them. Loop thread only.
class Outlet {
 public:
  virtual ~Outlet() = default;

  // The sink for the core's batches.
  virtual BatchSink& sink() = 0;
  virtual void Start() = 0;
  // Called once sampling has started. Until then, the start of the collector may fail.
  virtual void OnSampling() {}
  // Answers to the requests for symbol tables (SymbolServer::Callbacks).
  virtual void SendSymbols(const ExecutableId& id, PackedTable table) = 0;
  virtual void SendNoSymbols(const ExecutableId& id, const absl::Status& why) = 0;
  virtual void SendDigest(const ExecutableId& id, const absl::StatusOr<SymbolDigest>& digest) = 0;

  // Uses the changed options. After an error nothing changes. Unimplemented: they need a restart.
  virtual absl::Status ChangeCredentials(IntakeCredentialOptions options) = 0;
  virtual void SetSampleRate(uint32_t hz) = 0;

  struct Totals {
    Accounting lost;  // only the losses after the samples left the collector's core, by reason
    // Samples that the receiver accepted; nullopt: the outlet counts only the samples that it took.
    std::optional<uint64_t> sent_samples;
    // The same for process events.
    std::optional<uint64_t> sent_events;
    uint64_t waiting_samples = 0;
    uint64_t bytes_sent = 0;  // 0: unknown
  };
  virtual Totals totals() const = 0;
  // Returns a sentence if the receiver does not accept this node unless a person changes something, for example a
  // token. Otherwise returns "".
  virtual std::string NotReady() const { return ""; }
  // The receiver, for the log.
  virtual std::string ToString() const = 0;

  // Sends what can be sent within `timeout_ms`, and then calls `done`.
  virtual void Flush(int64_t timeout_ms, std::function<void(uint64_t undelivered_samples)> done) = 0;
};

}  // namespace tributary
