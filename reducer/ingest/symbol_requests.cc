#include "reducer/ingest/symbol_requests.h"

#include <algorithm>

namespace tributary::ingest {

void SymbolRequests::Want(const std::vector<ExecutableId>& ids) {
  for (const ExecutableId& id : ids) {
    if (waiting_.size() >= kWaitingMax) return;
    if (!id.known() || asked_.contains(id) || !is_waiting_.insert(id).second) continue;
    waiting_.push_back(id);
  }
}

std::vector<ExecutableId> SymbolRequests::TakeCandidates() {
  if (!looking_up_.empty() || asked_.size() >= kAskedMax) return {};
  while (!waiting_.empty() && looking_up_.size() < kCandidatesMax) {
    looking_up_.push_back(waiting_.front());
    waiting_.pop_front();
  }
  return looking_up_;
}

void SymbolRequests::Chosen(const std::vector<ExecutableId>& ask, size_t considered, MonotonicNs now) {
  for (size_t i = looking_up_.size(); i > considered; --i) waiting_.push_front(looking_up_[i - 1]);
  for (size_t i = 0; i < considered && i < looking_up_.size(); ++i) is_waiting_.erase(looking_up_[i]);
  looking_up_.clear();
  if (waiting_.empty()) is_waiting_ = {};  // its slots would stay
  for (const ExecutableId& id : ask) asked_.insert_or_assign(id, now);
}

void SymbolRequests::DropWaiting() {
  std::deque<ExecutableId>().swap(waiting_);
  is_waiting_ = absl::flat_hash_set<ExecutableId>(looking_up_.begin(), looking_up_.end());
}

size_t SymbolRequests::memory_bytes() const {
  return sizeof(*this) + (waiting_.size() + looking_up_.capacity()) * sizeof(ExecutableId) +
         is_waiting_.capacity() * (sizeof(ExecutableId) + 1);
}

void SymbolRequests::Tick(const std::vector<ExecutableId>& all, MonotonicNs now) {
  absl::erase_if(asked_, [&](const auto& entry) {
    const MonotonicNs asked = entry.second;
    return now.value - std::max(asked, last_progress_).value > kAnswerNs || now.value - asked.value > kLongestNs;
  });
  if (!waiting_.empty() || !looking_up_.empty() || now.value - round_started_.value < kRoundNs) return;
  round_started_ = now;
  Want(all);
}

}  // namespace tributary::ingest
