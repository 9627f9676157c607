#include "kernel-collector/probes/predecessor.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <span>
#include <sstream>

#include "kernel-collector/probes/type_counters.h"

namespace tributary {
namespace {

bool IsUsed(const trib_session_share& share) {
  return std::ranges::any_of(share.session_id, [](uint8_t byte) { return byte != 0; });
}

// Appends `share` after the used shares. Returns false if there is no free share.
bool Append(trib_session_ended& ended, const trib_session_share& share) {
  auto* free = std::ranges::find_if(ended.shares, [](const trib_session_share& s) { return !IsUsed(s); });
  if (free == std::end(ended.shares)) return false;
  *free = share;
  return true;
}

}  // namespace

SampleCounts Predecessor::unattributed() const {
  SampleCounts rest = accounting.captured;
  for (const Share& share : shares) rest -= share.attributed;
  return rest;
}

trib_session_ended AddEnded(const trib_session& owner, const Accounting& counters) {
  const trib_session_ended& before = owner.ended;
  const SampleCounts captured_before = ReadTypes(before.captured);
  SampleCounts captured = captured_before + counters.captured;
  if (captured.empty()) return {};
  trib_session_ended sum = {};
  sum.idle = before.idle + counters.idle;
  WriteTypes(ReadTypes(before.lost_ring_full) + counters.LostFor(LossReason::kRingFull), sum.lost_ring_full);
  WriteTypes(ReadTypes(before.lost_stack_error) + counters.LostFor(LossReason::kStackError), sum.lost_stack_error);
  sum.stopped = owner.stopped != 0 && (captured_before.empty() || before.stopped != 0);
  auto add = [&](const trib_session_share& share) {
    if (IsUsed(share) && !Append(sum, share)) captured -= ReadTypes(share.attributed);
  };
  const uint32_t last = owner.last_slot % TRIB_SESSION_SHARES_MAX;
  auto add_asked = [&](const trib_session_share& share) {
    if (share.asked != 0) add(share);
  };
  add_asked(owner.shares[last]);
  for (uint32_t i = 0; i < TRIB_SESSION_SHARES_MAX; ++i) {
    if (i != last) add_asked(owner.shares[i]);
  }
  // A session that has sent something may have reported the first share. From then on a reducer may know of it.
  trib_session_share first = before.shares[0];
  if (IsUsed(first) && IsUsed(sum.shares[0])) first.asked = 1;
  add(first);
  for (const trib_session_share& share : std::span(before.shares).subspan(1)) add_asked(share);
  if (!IsUsed(sum.shares[0])) add(owner.shares[last]);
  WriteTypes(captured, sum.captured);
  return sum;
}

trib_session_ended TakenOver(const SampleCounts& captured) {
  trib_session_ended ended = {};
  WriteTypes(captured, ended.captured);
  ended.stopped = 1;
  return ended;
}

std::optional<Predecessor> ToPredecessor(const trib_session_ended& ended) {
  Predecessor predecessor;
  predecessor.accounting.captured = ReadTypes(ended.captured);
  if (predecessor.accounting.captured.empty()) return std::nullopt;
  predecessor.accounting.idle = ended.idle;
  predecessor.accounting.LostFor(LossReason::kRingFull) = ReadTypes(ended.lost_ring_full);
  predecessor.accounting.LostFor(LossReason::kStackError) = ReadTypes(ended.lost_stack_error);
  predecessor.stopped = ended.stopped != 0;
  for (const trib_session_share& share : ended.shares) {
    if (!IsUsed(share)) continue;
    Predecessor::Share& added = predecessor.shares.emplace_back();
    std::memcpy(added.session_id.data(), share.session_id, added.session_id.size());
    added.attributed = ReadTypes(share.attributed);
  }
  return predecessor;
}

std::optional<uint64_t> ProcessStartTicks(const std::string& proc_root, Pid pid) {
  std::ifstream file(proc_root + "/" + std::to_string(pid.value) + "/stat");
  std::string text;
  if (!std::getline(file, text)) return std::nullopt;
  const size_t comm_end = text.rfind(')');  // the command's name may hold anything
  if (comm_end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(comm_end + 1));
  std::string state, skipped;
  fields >> state;
  if (state == "Z" || state == "X") return std::nullopt;
  for (int field = 4; field < 22; ++field) fields >> skipped;
  uint64_t ticks = 0;
  if (!(fields >> ticks)) return std::nullopt;
  return ticks;
}

}  // namespace tributary
