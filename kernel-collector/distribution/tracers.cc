#include "kernel-collector/distribution/tracers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/ascii_case.h"
#include "base/status.h"
#include "kernel-collector/distribution/comma_list.h"

namespace tributary {
namespace {

struct Tracer {
  std::string_view name;
  bool exists;              // kernel-collector walks these stacks
  bool is_runtime = false;  // --runtimes switches it on and off
};
constexpr Tracer kTracers[] = {
    {"native", true}, {"go", true},  {"perl", false},   {"php", false},  {"python", true, true}, {"hotspot", false},
    {"ruby", false},  {"v8", false}, {"dotnet", false}, {"beam", false}, {"labels", false},      {"luajit", false},
};

// Returns the names of the list, in lower case.
std::vector<std::string> Names(std::string_view tracers) {
  std::vector<std::string> names;
  for (const std::string_view part : CommaList(tracers)) {
    std::string name = LowerCase(part);
    std::erase(name, ' ');
    if (!name.empty()) names.push_back(std::move(name));
  }
  return names;
}

}  // namespace

std::vector<std::string_view> AllTracers() {
  std::vector<std::string_view> names;
  for (const Tracer& tracer : kTracers) names.push_back(tracer.name);
  return names;
}

absl::Status CheckTracers(std::string_view tracers) {
  for (const std::string& name : Names(tracers)) {
    const bool known =
        std::any_of(std::begin(kTracers), std::end(kTracers), [&](const Tracer& t) { return t.name == name; });
    if (known || name == "all") continue;
    return Error(absl::StatusCode::kInvalidArgument,
                 fmt::format("must be a list of tracers, separated by commas: all, {}", fmt::join(AllTracers(), ", ")));
  }
  return absl::OkStatus();
}

std::string RuntimesOfTracers(std::string_view tracers) {
  const std::vector<std::string> names = Names(tracers);
  if (names.empty() || std::find(names.begin(), names.end(), "all") != names.end()) return "all";
  std::vector<std::string_view> runtimes;
  for (const Tracer& tracer : kTracers) {
    if (tracer.is_runtime && std::find(names.begin(), names.end(), tracer.name) != names.end()) {
      runtimes.push_back(tracer.name);
    }
  }
  return runtimes.empty() ? "none" : fmt::format("{}", fmt::join(runtimes, ","));
}

std::string MissingTracers(std::string_view tracers) {
  const std::vector<std::string> names = Names(tracers);
  const bool all = std::find(names.begin(), names.end(), "all") != names.end();
  std::vector<std::string_view> missing;
  for (const Tracer& tracer : kTracers) {
    if (!tracer.exists && (all || std::find(names.begin(), names.end(), tracer.name) != names.end())) {
      missing.push_back(tracer.name);
    }
  }
  if (missing.empty()) return "";
  return fmt::format(
      "these tracers do not exist here yet: {}; in the stacks of these languages, only native frames have names "
      "(native and Go code is always sampled)",
      fmt::join(missing, ", "));
}

}  // namespace tributary
