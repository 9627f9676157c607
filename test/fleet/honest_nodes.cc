#include "test/fleet/honest_nodes.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/log.h"
#include "base/metrics.h"
#include "base/status.h"
#include "intake/client/delivery.h"
#include "symbols/packed_table.h"
#include "symbols/symbol_digest.h"
#include "test/fleet/made_up_programs.h"
#include "test/fleet/tokens.h"

namespace tributary {
namespace {

intake::DeliveryOptions DeliveryOptionsOf(uint16_t port, uint32_t number) {
  intake::DeliveryOptions options;
  options.reducers = {{"127.0.0.1", port}};
  options.client.backoff_max_ms = 1'000;
  options.client.symbol_chunk_period_ms = 1;
  SessionInfo& session = options.client.session;
  session.node_id = fmt::format("honest-{}", number);
  session.host_name = session.node_id;
  options.client.token = [token = TokenOf(session.node_id)] { return token; };
  session.boot_id = "made-up";
  session.agent_version = "made-up";
  session.cpu_count = 4;
  session.session_id.fill(1);
  session.session_id[0] = static_cast<uint8_t>(number);
  session.session_id[1] = static_cast<uint8_t>(number >> 8);
  return options;
}

}  // namespace

struct HonestNodes::Node {
  Node(Loop& loop, TcpConnector& tcp, const Options& options, uint32_t number, uint64_t& lost)
      : programs(number, options.begin, options.batch_ns),
        delivery(loop, tcp, DeliveryOptionsOf(options.port, number), Clock::Real(), metrics,
                 {.need_symbols =
                      [this](const ExecutableId& id) { delivery.SendSymbols(id, PackedTable::Of(TableOf(id, ""))); },
                  .need_digest = [this](const ExecutableId& id) { delivery.SendDigest(id, DigestOf(TableOf(id, ""))); },
                  .lost = [&lost](LossReason, const SampleCounts& samples) { lost += samples.total(); },
                  .durable = {},
                  .earlier_reported = {}}) {
    delivery.Start();
  }

  Metrics metrics;
  MadeUpPrograms programs;
  intake::Delivery delivery;
};

HonestNodes::HonestNodes(Loop& loop, const Options& options) : tcp_(loop) {
  for (uint32_t number = 0; number < options.nodes; ++number) {
    nodes_.push_back(std::make_unique<Node>(loop, tcp_, options, number, lost_));
  }
}

HonestNodes::~HonestNodes() = default;

void HonestNodes::SendPart() {
  ++parts_;
  for (const std::unique_ptr<Node>& node : nodes_) {
    for (int i = 0; i < kBatchesPerPart; ++i) {
      if (absl::Status status = node->delivery.Take(node->programs.Next()); !status.ok()) {
        LogError("take a batch: {}", Message(status));
      }
    }
  }
}

uint64_t HonestNodes::waiting_samples() const {
  uint64_t waiting = 0;
  for (const std::unique_ptr<Node>& node : nodes_) waiting += node->delivery.waiting_samples();
  return waiting;
}

uint64_t HonestNodes::samples_per_node() const { return parts_ * kBatchesPerPart * MadeUpPrograms::kSamplesPerBatch; }
uint64_t HonestNodes::events_per_node() const { return parts_ * kBatchesPerPart * MadeUpPrograms::kEventsPerBatch; }

}  // namespace tributary
