#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "base/tcp.h"
#include "intake/client/delivery.h"
#include "intake/credentials/credentials.h"
#include "intake/spool/spool.h"
#include "kernel-collector/probes/pinned_session.h"

namespace tributary {

struct UplinkOptions {
  intake::DeliveryOptions delivery;  // Open sets `earlier`, `spool` and the token
  IntakeCredentialOptions credentials;
  std::string spool_dir;  // "": no spool
  uint64_t spool_bytes_max = 64u << 20;
};

// The sending side of the collector: delivery, spool, and the pins (probes/pinned_session.h). If the collector is
// killed, the next collector reads from the pins how many samples were not delivered. Loop thread only.
class Uplink {
 public:
  // Returns an error if --spool-dir or a file of the credentials cannot be used. Borrowed objects must outlive the
  // uplink.
  static absl::StatusOr<std::unique_ptr<Uplink>> Open(Loop& loop, UplinkOptions options, PinnedSession& pins,
                                                      const Clock& clock, Metrics& metrics,
                                                      std::function<void(const ExecutableId&)> need_symbols,
                                                      std::function<void(const ExecutableId&)> need_digest);

  IntakeCredentials& credentials() { return *credentials_; }
  intake::Delivery& delivery() { return *delivery_; }
  const intake::Delivery& delivery() const { return *delivery_; }

  // Samples that were lost after they left the collector's core, by reason.
  const Accounting& lost() const { return lost_; }

  // Calls Delivery::Flush, and then PinnedSession::Finish. The pins stay if samples or losses were not reported in time
  // (Delivery::settled).
  void Flush(int64_t timeout_ms, std::function<void(uint64_t undelivered_samples)> done);

 private:
  Uplink(Loop& loop, PinnedSession& pins) : tcp_(loop), pins_(pins) {}
  absl::Status OpenSpool(const UplinkOptions& options, const Clock& clock, Metrics& metrics);

  TcpConnector tcp_;
  std::unique_ptr<IntakeCredentials> credentials_;
  PinnedSession& pins_;
  Accounting lost_;
  std::unique_ptr<intake::SpoolStorage> storage_;
  std::unique_ptr<intake::Spool> spool_;
  std::unique_ptr<intake::Delivery> delivery_;
};

}  // namespace tributary
