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

}  // namespace

Limits::Share::Share(Limits& of, std::string node_id, std::function<void()> evict)
    : limits_(of), node_id_(std::move(node_id)), evict_(std::move(evict)) {
  ++limits_.connections_;
}

Limits::Share::~Share() {
  limits_.memory_bytes_ -= bytes_;
  --limits_.connections_;
  limits_.holding_.erase(this);
  auto node = limits_.nodes_.find(node_id_);
  if (node != limits_.nodes_.end() && --node->second.connections == 0) limits_.nodes_.erase(node);
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

int64_t Limits::Share::Receive(size_t bytes) {
  auto it = limits_.nodes_.find(node_id_);
  if (it == limits_.nodes_.end()) return 0;
  Node& node = it->second;
  const int64_t rate = limits_.options_.node_bytes_per_second;
  const MonotonicNs now = limits_.clock_.Monotonic();
  const int64_t elapsed_ns = std::clamp<int64_t>(now.value - node.filled_at.value, 0, kNsPerMinute);
  const int64_t gained = static_cast<int64_t>(static_cast<double>(rate) * static_cast<double>(elapsed_ns) / 1e9);
  if (gained > 0) node.filled_at = now;
  node.budget_bytes = std::min(node.budget_bytes + gained, 2 * rate) - static_cast<int64_t>(bytes);
  if (node.budget_bytes >= 0) return 0;
  return 1 + static_cast<int64_t>(static_cast<double>(-node.budget_bytes) * 1e3 / static_cast<double>(rate));
}

absl::StatusOr<std::unique_ptr<Limits::Share>> Limits::Join(const std::string& node_id, std::function<void()> evict) {
  if (!node_id.empty()) {
    auto [it, added] = nodes_.try_emplace(node_id);
    Node& node = it->second;
    if (added) {
      node.budget_bytes = 2 * options_.node_bytes_per_second;
      node.filled_at = clock_.Monotonic();
    } else if (node.connections >= options_.node_connections_max) {
      return Error(absl::StatusCode::kResourceExhausted,
                   fmt::format("{} connections of this node are open already", node.connections));
    }
    ++node.connections;
  }
  return std::unique_ptr<Share>(new Share(*this, node_id, std::move(evict)));
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
