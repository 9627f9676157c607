#include "base/heap_trimmer.h"

#include <fmt/format.h>

#include <utility>

namespace tributary {

HeapTrimmer::HeapTrimmer(Options options, std::string_view component, Metrics& metrics)
    : options_(std::move(options)),
      trims_(metrics.AddCounter(fmt::format("tributary_{}_heap_trims_total", component),
                                "Times that free memory was returned to the system after a large query")) {}

void HeapTrimmer::Tick() {
  if (!noted_.exchange(false, std::memory_order_relaxed) || options_.free_bytes() < options_.free_bytes_min) return;
  options_.trim();
  trims_.Add();
}

}  // namespace tributary
