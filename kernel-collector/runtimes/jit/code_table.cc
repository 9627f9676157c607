#include "kernel-collector/runtimes/jit/code_table.h"

#include <algorithm>

namespace tributary {

bool CodeTable::Find(uint64_t address, MonotonicNs time, CodeName* name) const {
  bool found = false;
  for (auto run = runs_.rbegin(); run != runs_.rend(); ++run) {
    CodeName candidate;
    switch ((*run)->Find(address, time, &candidate)) {
      case CodeRun::Found::kNothing:
        break;
      case CodeRun::Found::kName:
        *name = candidate;
        return true;
      case CodeRun::Found::kLaterName:
        if ((*run)->maybe_from() <= time) *name = candidate, found = true;
        break;
      case CodeRun::Found::kGone:
        return found;
    }
  }
  return found;
}

void CodeTable::Add(CodeRunPtr run, MonotonicNs now) {
  runs_.push_back(std::move(run));
  // Merges old runs of similar size, the newest ones first. So the number of old runs grows with the logarithm of the
  // number of functions.
  size_t old = 0;
  while (old < runs_.size() && runs_[old]->read_at().value + kSampleAgeNs < now.value) ++old;
  while (old >= 2 && runs_[old - 2]->functions() < 2 * runs_[old - 1]->functions()) {
    CodeRunBuilder merged;
    merged.Add(*runs_[old - 2]);
    merged.Add(*runs_[old - 1]);
    runs_[old - 2] = merged.Build({.read_at = runs_[old - 1]->read_at(),
                                   .past_from = MonotonicNs{INT64_MAX},
                                   .memory = runs_[old - 1]->memory()});
    runs_.erase(runs_.begin() + static_cast<ptrdiff_t>(old) - 1);
    --old;
  }
}

size_t CodeTable::bytes() const {
  size_t sum = 0;
  for (const CodeRunPtr& run : runs_) sum += run->bytes();
  return sum;
}

size_t CodeTable::functions() const {
  size_t sum = 0;
  for (const CodeRunPtr& run : runs_) sum += run->functions();
  return sum;
}

}  // namespace tributary
