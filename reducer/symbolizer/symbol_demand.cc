#include "reducer/symbolizer/symbol_demand.h"

#include <algorithm>

namespace tributary {

SymbolDemand::SymbolDemand(Options options, const Clock& clock, Metrics& metrics)
    : options_(options),
      clock_(clock),
      made_(metrics.AddCounter("tributary_symbolizer_requests_total", "Requests to nodes for a symbol table.")),
      deferred_(metrics.AddCounter(
          "tributary_symbolizer_requests_deferred_total",
          "Times that the request for a symbol table was postponed, because too many requests were open.")) {}

bool SymbolDemand::MayAsk(const ExecutableId& id) const {
  const int64_t now = clock_.Monotonic().value;
  std::lock_guard lock(mutex_);
  auto it = requests_.find(id);
  return it == requests_.end() || now >= NotBefore(it->second);
}

bool SymbolDemand::Ask(const ExecutableId& id, SymbolAsker asker) {
  const int64_t now = clock_.Monotonic().value;
  std::lock_guard lock(mutex_);
  auto it = requests_.find(id);
  if (it != requests_.end() && now < NotBefore(it->second)) return false;
  if (it == requests_.end() && !HasRoom(now)) {
    deferred_.Add();
    return false;
  }
  if (it != requests_.end()) Leave(id, it->second);
  requests_[id] = {asker, now, now + options_.timeout_ns};
  if (asker != SymbolAsker::kNone) {
    Asked& asked = askers_[asker];
    asked.last_progress = std::max(asked.last_progress, now);
    asked.open.insert(id);
  }
  made_.Add();
  return true;
}

void SymbolDemand::Progress(SymbolAsker asker) {
  const int64_t now = clock_.Monotonic().value;
  std::lock_guard lock(mutex_);
  if (auto it = askers_.find(asker); it != askers_.end()) it->second.last_progress = now;
}

void SymbolDemand::Answered(const ExecutableId& id) {
  std::lock_guard lock(mutex_);
  Remove(id, /*released=*/false);
}

void SymbolDemand::Unavailable(const ExecutableId& id) {
  const int64_t now = clock_.Monotonic().value;
  std::lock_guard lock(mutex_);
  if (requests_.contains(id) || HasRoom(now)) Pause(id, options_.unavailable_ns);
}

void SymbolDemand::Defer(const ExecutableId& id) {
  std::lock_guard lock(mutex_);
  if (requests_.contains(id)) Pause(id, options_.timeout_ns);
}

void SymbolDemand::Release(const ExecutableId& id, SymbolAsker asker) {
  std::lock_guard lock(mutex_);
  auto it = requests_.find(id);
  if (it != requests_.end() && it->second.asker == asker) Remove(id, /*released=*/true);
}

void SymbolDemand::Release(SymbolAsker asker) {
  std::lock_guard lock(mutex_);
  auto it = askers_.find(asker);
  if (it == askers_.end()) return;
  const absl::flat_hash_set<ExecutableId> open = it->second.open;
  for (const ExecutableId& id : open) Remove(id, /*released=*/true);
}

void SymbolDemand::Reconsider(const ExecutableId& id) {
  std::lock_guard lock(mutex_);
  AddReleased(id);
}

std::vector<ExecutableId> SymbolDemand::ReleasedSince(uint64_t& cursor) const {
  std::lock_guard lock(mutex_);
  const uint64_t fresh = std::min<uint64_t>(released_count_ - cursor, released_.size());
  cursor = released_count_;
  return {released_.end() - static_cast<std::ptrdiff_t>(fresh), released_.end()};
}

int64_t SymbolDemand::NotBefore(const Request& request) const {
  auto it = askers_.find(request.asker);
  if (it == askers_.end()) return request.not_before;
  const int64_t silent = std::max(request.not_before, it->second.last_progress + options_.timeout_ns);
  return std::min(silent, request.asked_at + options_.longest_ns);
}

// If the table is full, drops the requests that are over: their executables may be asked for again.
bool SymbolDemand::HasRoom(int64_t now) {
  if (requests_.size() < kRequestsMax) return true;
  std::vector<ExecutableId> over;
  for (const auto& [id, request] : requests_) {
    if (NotBefore(request) <= now) over.push_back(id);
  }
  for (const ExecutableId& id : over) Remove(id, /*released=*/false);
  return requests_.size() < kRequestsMax;
}

void SymbolDemand::Leave(const ExecutableId& id, const Request& request) {
  auto it = askers_.find(request.asker);
  if (it == askers_.end()) return;
  it->second.open.erase(id);
  if (it->second.open.empty()) askers_.erase(it);
}

void SymbolDemand::Pause(const ExecutableId& id, int64_t ns) {
  const int64_t now = clock_.Monotonic().value;
  Request& request = requests_[id];
  Leave(id, request);
  request = {SymbolAsker::kNone, now, now + ns};
}

void SymbolDemand::Remove(const ExecutableId& id, bool released) {
  auto it = requests_.find(id);
  if (it == requests_.end()) return;
  Leave(id, it->second);
  if (released) AddReleased(id);
  requests_.erase(it);
}

void SymbolDemand::AddReleased(const ExecutableId& id) {
  released_.push_back(id);
  ++released_count_;
  if (released_.size() > kReleasedMax) released_.pop_front();
}

}  // namespace tributary
