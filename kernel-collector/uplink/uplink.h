#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "base/status.h"
#include "base/tcp.h"
#include "intake/client/delivery.h"
#include "intake/credentials/credentials.h"
#include "intake/spool/spool.h"
#include "kernel-collector/probes/pinned_session.h"
#include "kernel-collector/uplink/outlet.h"

namespace tributary {

struct UplinkOptions {
  intake::DeliveryOptions delivery;  // Open sets `earlier`, `spool` and the token
  IntakeCredentialOptions credentials;
  std::string spool_dir;  // "": no spool
  uint64_t spool_bytes_max = 64u << 20;
};

// The side of the collector that sends to reducers: delivery, spool, and the pins (probes/pinned_session.h). If the
// collector is killed, the next collector reads from the pins how many samples were not delivered. Loop thread only.
class Uplink : public Outlet {
 public:
  // Returns an error if --spool-dir or a file of the credentials cannot be used. Borrowed objects must outlive the
  // uplink.
  static absl::StatusOr<std::unique_ptr<Uplink>> Open(Loop& loop, UplinkOptions options, PinnedSession& pins,
                                                      const Clock& clock, Metrics& metrics,
                                                      std::function<void(const ExecutableId&)> need_symbols,
                                                      std::function<void(const ExecutableId&)> need_digest);

  BatchSink& sink() override;
  void Start() override { delivery_->Start(); }
  void SendSymbols(const ExecutableId& id, PackedTable table) override { delivery_->SendSymbols(id, std::move(table)); }
  void SendNoSymbols(const ExecutableId& id, const absl::Status& why) override {
    delivery_->SendNoSymbols(id, Message(why));
  }
  void SendDigest(const ExecutableId& id, const absl::StatusOr<SymbolDigest>& digest) override {
    delivery_->SendDigest(id, digest);
  }
  absl::Status ChangeCredentials(IntakeCredentialOptions options) override {
    return credentials_->Change(std::move(options));
  }
  void SetSampleRate(uint32_t hz) override { delivery_->SetSampleRate(hz); }
  Totals totals() const override;
  std::string NotReady() const override;
  std::string ToString() const override { return receiver_; }

  // Calls Delivery::Flush, and then PinnedSession::Finish. The pins stay if samples or losses were not reported in time
  // (Delivery::settled).
  void Flush(int64_t timeout_ms, std::function<void(uint64_t undelivered_samples)> done) override;

 private:
  Uplink(Loop& loop, PinnedSession& pins) : tcp_(loop), pins_(pins) {}
  absl::Status OpenSpool(const UplinkOptions& options, const Clock& clock, Metrics& metrics);

  TcpConnector tcp_;
  std::unique_ptr<IntakeCredentials> credentials_;
  PinnedSession& pins_;
  Accounting lost_;  // after the samples left the collector's core
  std::unique_ptr<intake::SpoolStorage> storage_;
  std::unique_ptr<intake::Spool> spool_;
  std::unique_ptr<intake::Delivery> delivery_;
  std::string receiver_;  // the reducers, for the log
};

}  // namespace tributary
