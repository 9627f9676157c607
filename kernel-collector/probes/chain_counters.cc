#include "kernel-collector/probes/chain_counters.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <iterator>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "bpf/include/records.h"

namespace tributary {
namespace {

struct Row {
  uint32_t counter;
  std::string_view label;
};
constexpr Row kEnds[] = {
    {TRIB_CHAIN_COMPLETE, "complete"}, {TRIB_CHAIN_DEPTH, "depth"}, {TRIB_CHAIN_UNREADABLE, "unreadable"}};
static_assert(std::size(kEnds) == TRIB_CHAIN_END_COUNT);
constexpr Row kErrors[] = {{TRIB_CHAIN_NO_STATE, "no_state"}, {TRIB_CHAIN_NO_KEYS, "no_keys"},
                           {TRIB_CHAIN_BAD_STATE, "state"},   {TRIB_CHAIN_BAD_FRAME, "frame"},
                           {TRIB_CHAIN_BAD_CODE, "code"},     {TRIB_CHAIN_BAD_NAME, "name"}};
static_assert(std::size(kErrors) == uint32_t{TRIB_CHAIN_COUNTER_COUNT} - TRIB_CHAIN_END_COUNT);

}  // namespace

ChainCounters::ChainCounters(Fd map) : map_(std::move(map)), cpus_(libbpf_num_possible_cpus()) {
  TRIBUTARY_CHECK(cpus_ > 0);
}

uint64_t ChainCounters::Read(trib_runtime_kind kind, uint32_t counter) const {
  std::vector<uint64_t> by_cpu(static_cast<size_t>(cpus_));
  uint64_t sum = 0;
  for (uint32_t context = 0; context < TRIB_CONTEXT_COUNT; ++context) {
    const uint32_t slot = TRIB_CHAIN_COUNTER_SLOT(context, kind, counter);
    // An array's element below max_entries always exists.
    TRIBUTARY_CHECK(bpf_map_lookup_elem(map_.get(), &slot, by_cpu.data()) == 0);
    sum += std::accumulate(by_cpu.begin(), by_cpu.end(), uint64_t{0});
  }
  return sum;
}

void AddChainMetrics(std::shared_ptr<const ChainCounters> counters, Metrics& metrics) {
  const auto read = [counters](uint32_t counter) {
    return [counters, counter] { return static_cast<double>(counters->Read(TRIB_RUNTIME_PYTHON, counter)); };
  };
  for (const Row& row : kEnds) {
    metrics.AddCallback("tributary_collector_runtime_chains_total",
                        "Lists of an interpreter's frames that were read for a sample, by how the walk of the list "
                        "ended",
                        /*is_counter=*/true, {{"runtime", "python"}, {"end", std::string(row.label)}},
                        read(row.counter));
  }
  for (const Row& row : kErrors) {
    metrics.AddCallback("tributary_collector_runtime_walk_errors_total",
                        "Samples of processes with an interpreter for which its frames could not be read to the end, "
                        "by reason",
                        /*is_counter=*/true, {{"runtime", "python"}, {"reason", std::string(row.label)}},
                        read(row.counter));
  }
}

}  // namespace tributary
