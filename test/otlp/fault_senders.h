#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "otlp/transport.h"

// The senders of OTLP that the tests of faults compare: the reducer's exporters, and a node without a reducer.

namespace tributary::otlp {

// Gives each call at most `timeout_ns`.
class ImpatientTransport : public Transport {
 public:
  ImpatientTransport(std::unique_ptr<Transport> transport, const std::atomic<int64_t>& timeout_ns)
      : transport_(std::move(transport)), timeout_ns_(timeout_ns) {}
  CallResult Call(const google::protobuf::Message& request, google::protobuf::Message* response,
                  int64_t timeout_ns) override {
    return transport_->Call(request, response, std::min(timeout_ns, timeout_ns_.load()));
  }
  void Cancel() override { transport_->Cancel(); }

 private:
  const std::unique_ptr<Transport> transport_;
  const std::atomic<int64_t>& timeout_ns_;
};

// The numbers of items: samples, or data points.
struct SentCounts {
  uint64_t sent = 0, refused = 0, waiting = 0, repeated = 0;
  uint64_t requests = 0, failures = 0, rejected = 0;
};

class FaultSender {
 public:
  virtual ~FaultSender() = default;
  virtual void Add(int samples) = 0;
  // Does what is due. Returns the time until there is more to do.
  virtual int64_t RunOnce() = 0;
  // RunOnce may return this time although nothing is to be sent then, for other work. 0: never.
  virtual int64_t tick_ns() const { return 0; }
  virtual SentCounts counts() const = 0;
  virtual bool counts_repeated() const { return true; }  // false: a repeated value is the same value
};

enum class SenderKind { kStoreProfiles, kStoreLogs, kStoreMetrics, kNodeProfiles, kNodeLogs, kSpoolProfiles };
inline constexpr std::array kSenderKinds = {SenderKind::kStoreProfiles, SenderKind::kStoreLogs,
                                            SenderKind::kStoreMetrics,  SenderKind::kNodeProfiles,
                                            SenderKind::kNodeLogs,      SenderKind::kSpoolProfiles};
std::string_view NameOf(SenderKind kind);
const Signal& SignalOf(SenderKind kind);
// `clock` must outlive the sender.
std::unique_ptr<FaultSender> MakeFaultSender(SenderKind kind, std::unique_ptr<Transport> transport, FakeClock& clock);

}  // namespace tributary::otlp
