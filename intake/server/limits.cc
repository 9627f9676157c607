#include "intake/server/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/status.h"

namespace tributary::intake {
namespace {

// A node at 97 Hz on 64 cores sends 60 KB a second. The minimum is seconds of this. The maximum is as much as helps
// when a spool is sent.
constexpr size_t kCreditBytesMin = 256u << 10, kCreditBytesMax = 16u << 20;
// Nodes without a connection. Above this number, those without debts are forgotten, or all if half as many have debts.
constexpr size_t kIdleNodesMax = 4'096;

}  // namespace

Limits::Share::Share(Limits& of, std::string node_id, std::function<void()> evict)
    : limits_(of), node_id_(std::move(node_id)), evict_(std::move(evict)) {
  ++limits_.connections_;
}

Limits::Share::~Share() {
  limits_.memory_bytes_ -= bytes_;
  --limits_.connections_;
  limits_.holding_.erase(this);
  limits_.Leave(node_id_);
}

void Limits::Share::Hold(size_t bytes) {
  if (bytes == bytes_) return;
  if (bytes_ == 0) {
    since_ = limits_.clock_.Monotonic();
    limits_.holding_.insert(this);
  }
  limits_.memory_bytes_ = limits_.memory_bytes_ - bytes_ + bytes;
  bytes_ = bytes;
  if (bytes_ == 0) limits_.holding_.erase(this);
  while (limits_.memory_bytes_ > limits_.options_.memory_bytes_max) limits_.EvictOne();
}

int64_t Limits::Share::Take(NodeRate rate, uint64_t amount) {
  auto it = limits_.nodes_.find(node_id_);
  if (it == limits_.nodes_.end()) return 0;
  TokenBucket& bucket = it->second.rates[static_cast<size_t>(rate)];
  bucket.Refill(limits_.clock_.Monotonic());
  bucket.Spend(static_cast<int64_t>(amount));
  return bucket.wait_ms();
}

absl::StatusOr<std::unique_ptr<Limits::Share>> Limits::Join(const std::string& node_id, std::function<void()> evict) {
  if (!node_id.empty()) {
    const MonotonicNs now = clock_.Monotonic();
    // A burst of two seconds.
    const auto bucket = [now](int64_t per_second) { return TokenBucket(per_second, 2 * per_second, now); };
    auto [it, added] = nodes_.try_emplace(
        node_id, Node{.connections = 0,
                      .rates = {bucket(options_.node_bytes_per_second), bucket(options_.node_work_per_second),
                                bucket(options_.node_generations_per_second)}});
    Node& node = it->second;
    if (node.connections >= options_.node_connections_max) {
      return Error(absl::StatusCode::kResourceExhausted,
                   fmt::format("{} connections of this node are open already", node.connections));
    }
    if (!added && node.connections == 0) --idle_nodes_;
    ++node.connections;
  }
  return std::unique_ptr<Share>(new Share(*this, node_id, std::move(evict)));
}

void Limits::Leave(const std::string& node_id) {
  auto it = nodes_.find(node_id);
  if (it == nodes_.end() || --it->second.connections > 0) return;
  if (++idle_nodes_ > kIdleNodesMax) ForgetIdleNodes();
}

void Limits::ForgetIdleNodes() {
  const MonotonicNs now = clock_.Monotonic();
  auto forget = [&](bool all) {
    idle_nodes_ -= absl::erase_if(nodes_, [&](auto& entry) {
      Node& node = entry.second;
      if (node.connections > 0) return false;
      return all || std::all_of(node.rates.begin(), node.rates.end(), [&](TokenBucket& bucket) {
               bucket.Refill(now);
               return bucket.is_full();
             });
    });
  };
  forget(false);
  // A peer that uses so many node ids is not slowed by the limits of a node anyway.
  if (idle_nodes_ > kIdleNodesMax / 2) forget(true);
}

uint32_t Limits::CreditBytes() const {
  const size_t part = options_.credit_bytes_max / std::max<size_t>(connections_, 1);
  return static_cast<uint32_t>(std::clamp<size_t>(part, kCreditBytesMin, kCreditBytesMax));
}

void Limits::EvictOne() {
  const MonotonicNs now = clock_.Monotonic();
  Share* worst = nullptr;
  double most = -1;
  for (Share* share : holding_) {
    const double score =
        static_cast<double>(share->bytes_) * static_cast<double>(now.value - share->since_.value + kNsPerSecond);
    if (score > most) {
      most = score;
      worst = share;
    }
  }
  TRIBUTARY_CHECK(worst != nullptr);  // some share holds the memory
  worst->evict_();
  // Whatever the share's owner did: the share no longer counts until it holds memory again.
  memory_bytes_ -= std::exchange(worst->bytes_, 0);
  holding_.erase(worst);
}

}  // namespace tributary::intake
