#include "kernel-collector/probes/cpu_list.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "base/number.h"
#include "base/status.h"
#include "base/trim.h"

namespace tributary {
namespace {

constexpr int kCpuMax = 8191;

bool ParseCpu(std::string_view text, int* cpu) {
  *cpu = ParseNumber<int>(text).value_or(-1);
  return *cpu >= 0 && *cpu <= kCpuMax;
}

}  // namespace

absl::StatusOr<std::vector<int>> ParseCpuList(std::string_view text) {
  text = TrimEnd(text, std::string_view("\n\0", 2));
  std::vector<int> cpus;
  std::string_view rest = text;
  while (!rest.empty()) {
    std::string_view range = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), range.size() + 1));
    size_t dash = range.find('-');
    int first = 0, last = 0;
    bool good = dash == std::string_view::npos
                    ? ParseCpu(range, &first) && (last = first, true)
                    : ParseCpu(range.substr(0, dash), &first) && ParseCpu(range.substr(dash + 1), &last);
    if (!good || last < first) {
      return Error(absl::StatusCode::kInvalidArgument,
                   fmt::format("not a list of CPUs: {}", EscapeForDisplay(text.substr(0, 64))));
    }
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
    // Ranges that overlap could make a short text long.
    if (cpus.size() > 2 * kCpuMax) break;
  }
  std::sort(cpus.begin(), cpus.end());
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  if (cpus.empty()) return Error(absl::StatusCode::kInvalidArgument, "an empty list of CPUs");
  return cpus;
}

}  // namespace tributary
