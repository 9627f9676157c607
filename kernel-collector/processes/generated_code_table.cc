#include "kernel-collector/processes/generated_code_table.h"

#include <algorithm>
#include <utility>

namespace tributary {
namespace {

constexpr MonotonicNs kNeverAgain{1};  // for code replaced during a loss of events: Find never returns it

std::string PathOf(std::string_view owner, std::string_view name) {
  std::string path = "[";
  path.append(owner).append("] ").append(name.substr(0, GeneratedCodeTable::kNameBytesMax));
  return path;
}

}  // namespace

GeneratedCodeTable::GeneratedCodeTable(Metrics& metrics)
    : refused_(metrics.AddCounter("tributary_collector_generated_code_refused_total",
                                  "BPF programs and other generated kernel code that were ignored, because the table "
                                  "of generated code was full")) {}

GeneratedCodeTable::Live::iterator GeneratedCodeTable::FirstBehind(uint64_t begin) {
  auto it = live_.upper_bound(begin);
  if (it != live_.begin() && std::prev(it)->second.end > begin) --it;
  return it;
}

void GeneratedCodeTable::Retire(Live::iterator it, MonotonicNs time) {
  it->second.gone = time;
  past_.push_back(std::move(it->second));
  if (past_.size() > kPastMax) past_.pop_front();
  live_.erase(it);
}

void GeneratedCodeTable::Insert(Entry entry, MonotonicNs time) {
  for (auto it = FirstBehind(entry.begin); it != live_.end() && it->first < entry.end;) {
    Entry& other = it->second;
    if (!other.end_known && other.begin < entry.begin) {
      other.end = entry.begin;
      ++it;
    } else if (!entry.end_known && entry.begin < other.begin) {
      entry.end = other.begin;
    } else {
      Retire(it++, time);
    }
  }
  if (live_.size() >= kLiveMax) return refused_.Add();
  live_.insert_or_assign(entry.begin, std::move(entry));
}

void GeneratedCodeTable::Add(const Code& code, MonotonicNs time) {
  std::string path = PathOf(code.owner, code.name);
  auto it = live_.find(code.begin);
  if (it != live_.end() && it->second.file->path == path && it->second.gone.value == 0) {
    // Kallsyms listed the code before its event was read.
    Entry known = std::move(it->second);
    live_.erase(it);
    known.end = code.end;
    known.end_known = true;
    return Insert(std::move(known), time);
  }
  Entry entry{.begin = code.begin, .end = code.end, .end_known = true, .from = time};
  entry.file = MakeNamedCode(std::move(path), std::string(code.name.substr(0, kNameBytesMax)));
  Insert(std::move(entry), time);
}

void GeneratedCodeTable::Remove(const Code& code, MonotonicNs time) {
  auto it = live_.find(code.begin);
  if (it != live_.end() && it->second.file->path == PathOf(code.owner, code.name)) it->second.gone = time;
}

void GeneratedCodeTable::Merge(std::span<const GeneratedCode> listed, MonotonicNs read_at) {
  // Code without an event was loaded since the last Merge. After a loss, other code may have been there until now.
  const MonotonicNs from = unsure_ ? read_at : merged_at_;
  const MonotonicNs replaced_at = unsure_ ? kNeverAgain : read_at;
  ++merges_;
  for (const GeneratedCode& code : listed) {
    std::string path = PathOf(code.owner, code.name);
    auto it = live_.find(code.begin);
    if (it != live_.end() && it->second.file->path == path) {
      it->second.merged = merges_;
      if (code.end_known && !it->second.end_known) it->second.end = code.end, it->second.end_known = true;
      if (unsure_) it->second.gone = MonotonicNs{};
      continue;
    }
    // Skips the listed code if an event has overtaken the list.
    it = FirstBehind(code.begin);
    if (it != live_.end() && it->first < code.end && it->first <= code.begin && !(it->second.from < read_at)) continue;
    Entry entry{.begin = code.begin, .end = code.end, .end_known = code.end_known, .from = from, .merged = merges_};
    entry.file = MakeNamedCode(std::move(path), code.name.substr(0, kNameBytesMax));
    Insert(std::move(entry), replaced_at);
  }
  if (unsure_) {
    std::erase_if(live_, [&](const auto& item) {
      const Entry& entry = item.second;
      return entry.merged != merges_ && entry.gone.value == 0 && entry.from < read_at;
    });
  }
  merged_at_ = read_at;
  unsure_ = false;
}

void GeneratedCodeTable::DropOld(MonotonicNs now) {
  auto old = [&](const Entry& entry) { return entry.gone.value != 0 && entry.gone.value + kGraceNs < now.value; };
  std::erase_if(live_, [&](const auto& item) { return old(item.second); });
  std::erase_if(past_, old);
}

std::optional<GeneratedCodeTable::Found> GeneratedCodeTable::Find(uint64_t address, MonotonicNs time) const {
  const Entry* found = nullptr;
  auto it = live_.upper_bound(address);
  if (it != live_.begin() && (--it)->second.Covers(address, time)) found = &it->second;
  for (const Entry& entry : past_) {
    if (entry.Covers(address, time) && time < entry.gone && (found == nullptr || found->from < entry.from)) {
      found = &entry;
    }
  }
  if (found == nullptr) return std::nullopt;
  return Found{found->file, address - found->begin, unsure_};
}

}  // namespace tributary
