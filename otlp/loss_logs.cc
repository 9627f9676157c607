#include "otlp/loss_logs.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace tributary::otlp {
namespace {

std::string BodyOf(const LossInfo& loss, const std::string& noun, const std::string& reason) {
  if (loss.samples >= 0) return fmt::format("lost {} {}: {}", loss.samples, noun, reason);
  // The smallest number has no counterpart among the signed ones.
  return fmt::format("{} {} arrived that had counted as lost: {}", -static_cast<uint64_t>(loss.samples), noun, reason);
}

}  // namespace

void AddLoss(const Attributes& resource, const LossInfo& loss, RecordLogs* logs) {
  const bool is_event = loss.type == SampleTypeInfo{};
  const std::string reason(loss.reason);
  const std::string noun = is_event ? "process events" : fmt::format("samples of {}", ToText(loss.type.name));
  logs->Add(resource,
            {.time = loss.first,
             .observed = loss.last,
             .is_warning = loss.samples > 0,
             .name = "tributary.loss",
             .body = BodyOf(loss, noun, reason)},
            [&](KeyValues* out) {
              AddText(out, "tributary.loss.reason", reason);
              AddInt(out, is_event ? "tributary.loss.events" : "tributary.loss.samples", loss.samples);
              if (!is_event) {
                AddText(out, "tributary.sample.type", loss.type.name);
                AddText(out, "tributary.sample.unit", loss.type.unit);
              }
              AddInt(out, "tributary.loss.last_time_unix_nano", std::max<int64_t>(loss.last.value, 0));
            });
}

}  // namespace tributary::otlp
