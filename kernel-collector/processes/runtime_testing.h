#pragma once

#include <map>
#include <vector>

#include "kernel-collector/processes/runtime.h"

namespace tributary {

// A fake runtime with the frames that a test sets for each address.
class FakeRuntime : public Runtime {
 public:
  Found Find(const Query& query, std::vector<ResolvedFrame>* frames) const override {
    asked.push_back(query);
    if (is_reading) return Found::kLater;
    const auto code = codes.find(query.address);
    if (code == codes.end()) return Found::kUnknown;
    frames->insert(frames->end(), code->second.begin(), code->second.end());
    return Found::kFrames;
  }

  std::map<uint64_t, std::vector<ResolvedFrame>> codes;  // by lookup address
  bool is_reading = false;
  mutable std::vector<Query> asked;
};

}  // namespace tributary
