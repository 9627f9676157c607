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
  intake::DeliveryOptions delivery;  // `earlier` and the token are filled in here
  IntakeCredentialOptions credentials;
  std::string spool_dir;  // "" = no spool
  uint64_t spool_bytes_max = 64u << 20;
};

// The node's sending side as the collector has it: delivery and spool, and the pins by which the next collector knows
// what a killed one leaves undelivered. On the loop's thread.
class Uplink {
 public:
  // An error names the option that cannot be used: --spool-dir, or a file of the credentials. What is lent outlives the
  // uplink.
  static absl::StatusOr<std::unique_ptr<Uplink>> Open(Loop& loop, UplinkOptions options, PinnedSession& pins,
                                                      const Clock& clock, Metrics& metrics,
                                                      std::function<void(const ExecutableId&)> need_symbols);

  IntakeCredentials& credentials() { return *credentials_; }
  intake::Delivery& delivery() { return *delivery_; }
  const intake::Delivery& delivery() const { return *delivery_; }

  // Samples given up on behind the collector's core, by reason.
  const Accounting& lost() const { return lost_; }

  // Delivery::Flush; then the pins go, or stay to tell what could not be told.
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
