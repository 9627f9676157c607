#include "kernel-collector/runtimes/runtime_kinds.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/ascii_case.h"
#include "base/edit_distance.h"
#include "base/log.h"
#include "base/status.h"
#include "kernel-collector/runtimes/python/python_binary.h"

namespace tributary {
namespace {

constexpr RuntimeKind kKinds[] = {
    {"python", TRIB_RUNTIME_PYTHON, ReadPythonBinary},
};

// All names of --runtimes. `runtime` is the main name. A runtime that is not in kKinds is not supported yet.
struct Name {
  std::string_view name, runtime;
};
constexpr std::string_view kAlwaysOn = "always";  // native code needs no runtime
constexpr Name kNames[] = {
    {"python", "python"}, {"cpython", "python"}, {"hotspot", "hotspot"}, {"jvm", "hotspot"}, {"java", "hotspot"},
    {"v8", "v8"},         {"node", "v8"},        {"nodejs", "v8"},       {"ruby", "ruby"},   {"php", "php"},
    {"perl", "perl"},     {"dotnet", "dotnet"},  {"beam", "beam"},       {"erlang", "beam"}, {"luajit", "luajit"},
    {"go", kAlwaysOn},    {"native", kAlwaysOn},
};
constexpr size_t kNameBytesMax = 64;

absl::Status UnknownName(std::string_view name) {
  name = name.substr(0, kNameBytesMax);
  const Name* nearest = &kNames[0];
  for (const Name& known : kNames) {
    if (EditDistance(name, known.name) < EditDistance(name, nearest->name)) nearest = &known;
  }
  std::vector<std::string_view> names;
  for (const Name& known : kNames) names.push_back(known.name);
  return Error(absl::StatusCode::kInvalidArgument,
               fmt::format("must be all, none, or names of runtimes, separated by commas: {}; {} is unknown, did you "
                           "mean {}?",
                           fmt::join(names, ", "), EscapeForDisplay(name), nearest->name));
}

// Returns the parts of "a, B,c" in lower case, without the spaces around them.
std::vector<std::string> Parts(std::string_view value) {
  std::vector<std::string> parts;
  while (true) {
    const size_t comma = value.find(',');
    std::string part = LowerCase(value.substr(0, comma));
    part.erase(0, part.find_first_not_of(' '));
    part.erase(part.find_last_not_of(' ') + 1);
    if (!part.empty()) parts.push_back(std::move(part));
    if (comma == std::string_view::npos) return parts;
    value.remove_prefix(comma + 1);
  }
}

}  // namespace

std::span<const RuntimeKind> RuntimeKinds() { return kKinds; }

RuntimeSet AllRuntimes() {
  RuntimeSet all = 0;
  for (const RuntimeKind& kind : kKinds) all |= RuntimeSet{1} << kind.number;
  return all;
}

absl::StatusOr<RuntimeChoice> ParseRuntimes(std::string_view value) {
  RuntimeChoice choice;
  const std::vector<std::string> parts = Parts(value);
  if (parts.empty()) return UnknownName("");
  for (const std::string& part : parts) {
    if (part == "all" || part == "none") {
      if (parts.size() > 1) {
        return Error(absl::StatusCode::kInvalidArgument, "must not have other names beside all or none");
      }
      if (part == "all") choice.runtimes = AllRuntimes();
      continue;
    }
    const auto name = std::find_if(std::begin(kNames), std::end(kNames), [&](const Name& n) { return n.name == part; });
    if (name == std::end(kNames)) return UnknownName(part);
    if (name->runtime == kAlwaysOn) continue;
    const auto kind = std::find_if(std::begin(kKinds), std::end(kKinds),
                                   [&](const RuntimeKind& k) { return k.name == name->runtime; });
    if (kind != std::end(kKinds)) {
      choice.runtimes |= RuntimeSet{1} << kind->number;
    } else if (std::find(choice.unsupported.begin(), choice.unsupported.end(), name->runtime) ==
               choice.unsupported.end()) {
      choice.unsupported.push_back(name->runtime);
    }
  }
  return choice;
}

std::string UnsupportedRuntimes(const RuntimeChoice& choice) {
  if (choice.unsupported.empty()) return "";
  return fmt::format(
      "these runtimes are not supported yet: {}; in their stacks, only native frames and code with a "
      "perf map have names",
      fmt::join(choice.unsupported, ", "));
}

}  // namespace tributary
