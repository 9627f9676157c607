#include "reducer/metadata/write_retry.h"

#include <utility>

#include "base/log.h"
#include "base/status.h"

namespace tributary {

WriteRetry::WriteRetry(std::string what, const Clock& clock, Metrics& metrics, Counter& failures)
    : what_(std::move(what)),
      clock_(clock),
      failures_(failures),
      failing_(metrics.AddGauge("tributary_metadata_writes_failing",
                                "1 while writes of these data to the store fail, mostly because the disk is full; the "
                                "changes wait in memory and are written later",
                                {{"data", what_}})) {}

bool WriteRetry::MayTry() const { return !failing() || clock_.Monotonic() >= next_; }

void WriteRetry::Record(const absl::Status& written) {
  if (written.ok()) {
    if (failing()) LogInfo("{}: writing works again, no change was lost", what_);
    backoff_.Reset();
    failing_.Set(0);
    return;
  }
  failures_.Add();
  if (!failing()) {
    LogError("{}: cannot write: {}. The changes wait in memory, a restart would lose them{}", what_, Message(written),
             absl::IsResourceExhausted(written) ? "; free disk space" : "");
  }
  next_ = MonotonicNs{clock_.Monotonic().value + backoff_.Next()};
  failing_.Set(1);
}

}  // namespace tributary
