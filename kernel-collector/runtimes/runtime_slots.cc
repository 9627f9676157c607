#include "kernel-collector/runtimes/runtime_slots.h"

#include <algorithm>

namespace tributary {
namespace {

trib_executable_key KeyOf(const std::pair<uint64_t, uint32_t>& key) {
  return {.inode = key.first, .device = key.second, .padding = 0};
}

}  // namespace

RuntimeSlots::RuntimeSlots(UnwindMaps& maps, const Clock& clock, Metrics& metrics)
    : maps_(maps),
      clock_(clock),
      slots_(TRIB_RUNTIMES_MAX),
      runtimes_(metrics.AddGauge("tributary_collector_runtimes",
                                 "Builds of language runtimes whose layout is in the kernel, for its walk of their "
                                 "frames; the limit is 255")),
      refused_(metrics.AddCounter("tributary_collector_runtimes_refused_total",
                                  "How often the layout of a language runtime could not be put into the kernel, "
                                  "because other runtimes were in use; its frames are missing")) {}

RuntimeSlots::Number RuntimeSlots::TakeFree() {
  const MonotonicNs now = clock_.Monotonic();
  for (size_t i = 1; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    if (slot.state == State::kWithdrawn && now.value - slot.used_at.value >= kGraceNs) slot = Slot();
    if (slot.state == State::kFree) return static_cast<Number>(i);
  }
  return 0;
}

RuntimeSlots::Number RuntimeSlots::Use(const RuntimeBinaryPtr& binary) {
  if (const auto known = by_binary_.find(binary.get()); known != by_binary_.end()) {
    ++slots_[known->second].users;
    return known->second;
  }
  const Number number = TakeFree();
  if (number == 0) {
    WithdrawOldest();
    refused_.Add();
    return 0;
  }
  maps_.runtimes()[number] = binary->layout;
  slots_[number] = {State::kInUse, 1, clock_.Monotonic(), binary};
  by_binary_.emplace(binary.get(), number);
  runtimes_.Set(static_cast<int64_t>(by_binary_.size()));
  return number;
}

void RuntimeSlots::Release(Number number) {
  Slot& slot = slots_[number];
  --slot.users;
  slot.used_at = clock_.Monotonic();
}

const RuntimeBinaryPtr* RuntimeSlots::Find(uint64_t number) {
  if (number >= slots_.size() || slots_[number].binary == nullptr) return nullptr;
  Slot& slot = slots_[number];
  if (slot.state == State::kInUse && slot.users == 0) slot.used_at = clock_.Monotonic();
  return &slot.binary;
}

// Withdraws numbers that no published process uses, the least recently used first. The element keeps its content until
// it is reused: walks that have begun may still read it.
void RuntimeSlots::WithdrawOldest() {
  std::vector<Number> idle;
  for (size_t i = 1; i < slots_.size(); ++i) {
    if (slots_[i].state == State::kInUse && slots_[i].users == 0) idle.push_back(static_cast<Number>(i));
  }
  std::sort(idle.begin(), idle.end(), [&](Number a, Number b) { return slots_[a].used_at < slots_[b].used_at; });
  if (idle.size() > kWithdrawnAtOnce) idle.resize(kWithdrawnAtOnce);
  for (const Number number : idle) {
    Slot& slot = slots_[number];
    slot.state = State::kWithdrawn;
    slot.used_at = clock_.Monotonic();
    by_binary_.erase(slot.binary.get());
    std::vector<Key> gone;
    for (const auto& [key, runtimes] : interpreters_) {
      if ((runtimes & 0xffff) == number || runtimes >> 16 == number) gone.push_back(key);
    }
    for (const Key& key : gone) DropInterpreter(key);
  }
  runtimes_.Set(static_cast<int64_t>(by_binary_.size()));
}

void RuntimeSlots::DropInterpreter(const Key& key) {
  maps_.DropInterpreter(KeyOf(key));
  interpreters_.erase(key);
  std::erase(order_, key);
}

void RuntimeSlots::Expect(const trib_executable_key& executable, const RuntimeBinaryPtr& binary) {
  if (executable.inode == 0) return;
  const Key key{executable.inode, executable.device};
  const Number number = Use(binary);
  if (number == 0) return;
  Release(number);
  const auto known = interpreters_.find(key);
  const bool is_new = known == interpreters_.end();
  const uint32_t before = is_new ? 0 : known->second;
  if ((before & 0xffff) == number || before >> 16 == number) return;
  if (is_new && order_.size() >= TRIB_INTERPRETERS_MAX) {
    const Key oldest = order_.front();
    DropInterpreter(oldest);
  }
  const uint32_t runtimes = TRIB_PROCESS_RUNTIMES(number, before & 0xffff);
  if (!maps_.SetInterpreter(executable, runtimes).ok()) return refused_.Add();
  interpreters_.insert_or_assign(key, runtimes);
  if (is_new) order_.push_back(key);
}

}  // namespace tributary
