#include "profile/cgroup_path.h"

#include <algorithm>
#include <cstddef>
#include <optional>

namespace tributary {
namespace {

constexpr size_t kPathBytesMax = 4096;
constexpr size_t kIdDigits = 64;
constexpr size_t kHashDigits = 32;

bool IsLowerHex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

bool IsLowerHex(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return IsLowerHex(c); });
}

bool IsDigits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool Strip(std::string_view* text, std::string_view suffix) {
  if (!text->ends_with(suffix)) return false;
  text->remove_suffix(suffix.size());
  return true;
}

// Groups of hexadecimal digits: 8-4-4-4 and a last group of `last` digits.
bool IsGrouped(std::string_view text, char separator, size_t last) {
  if (text.size() != 24 + last) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool between = i == 8 || i == 13 || i == 18 || i == 23;
    if (between ? text[i] != separator : !IsLowerHex(text[i])) return false;
  }
  return true;
}

// "0123…(32)-4567": a container of an ECS task on Fargate.
bool IsEcsId(std::string_view name) {
  return name.size() > kHashDigits + 1 && name.size() <= kHashDigits + 12 && name[kHashDigits] == '-' &&
         IsLowerHex(name.substr(0, kHashDigits)) && IsDigits(name.substr(kHashDigits + 1));
}

struct Container {
  std::string_view id, prefix;
};

// Finds a container id in one path component: "<id>", "docker-<id>.scope", "cri-containerd-<id>.scope", "crio-<id>",
// "x.slice:prefix:<id>".
Container ContainerOf(std::string_view name) {
  if (IsEcsId(name)) return {name, "ecs"};
  if (IsGrouped(name, '-', 4)) return {name, "garden"};  // a Garden handle; a pod's uid ends in 12
  Strip(&name, ".scope");
  if (name.size() < kIdDigits) return {};
  const std::string_view id = name.substr(name.size() - kIdDigits);
  std::string_view prefix = name.substr(0, name.size() - kIdDigits);
  if (!IsLowerHex(id)) return {};
  if (prefix.empty()) return {id, {}};
  const char separator = prefix.back();
  prefix.remove_suffix(1);
  if (separator != '-' && separator != ':' && separator != '_') return {};
  if (prefix.empty() || prefix.ends_with("conmon")) return {};
  return {id, prefix.substr(prefix.rfind(':') + 1)};
}

std::string_view RuntimeOf(std::string_view prefix) {
  if (prefix == "docker" || prefix == "ecs" || prefix == "garden") return prefix;
  if (prefix == "cri-containerd" || prefix == "containerd" || prefix == "nerdctl") return "containerd";
  if (prefix == "crio") return "cri-o";
  if (prefix == "libpod" || prefix == "libpod-payload") return "podman";
  return {};
}

// Finds the runtime by the folder that contains a bare id, under the cgroupfs driver. ECS's agent lets Docker create
// its containers. "k8s.io" and "default" are namespaces of containerd.
std::string_view RuntimeOfFolder(std::string_view name, std::string_view folder_of_it) {
  if (name == "docker" || folder_of_it == "ecs") return "docker";
  if (name == "k8s.io" || name == "default") return "containerd";
  return {};
}

// Accepts "pod8f3f…", "kubepods-burstable-pod8f3f_….slice", and the same with ":cri-containerd:<id>" at its end.
std::string PodUidOf(std::string_view name) {
  name = name.substr(0, name.find(':'));
  std::string_view uid;
  if (Strip(&name, ".slice")) {
    const size_t pod = name.rfind("-pod");
    if (pod == std::string_view::npos || name.find("kubepods") >= pod) return "";
    uid = name.substr(pod + 4);
  } else if (name.starts_with("pod")) {
    uid = name.substr(3);
  }
  const bool is_hash = uid.size() == kHashDigits && IsLowerHex(uid);
  if (!is_hash && !IsGrouped(uid, '-', 12) && !IsGrouped(uid, '_', 12)) return "";
  std::string text(uid);
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

// Returns true if the name contains 32 or more hexadecimal digits, in one piece or as a UUID.
bool HoldsRandomId(std::string_view name) {
  size_t digits = 0;
  for (const char c : name) {
    if (IsLowerHex(c)) {
      if (++digits == kHashDigits) return true;
    } else if (c != '-' && c != '_') {
      digits = 0;
    }
  }
  return false;
}

// Returns true if the name ends in "-" and digits. A unit that was started only once has its process's id or a count
// there.
bool EndsInNumber(std::string_view name) {
  const size_t dash = name.rfind('-');
  return dash != std::string_view::npos && IsDigits(name.substr(dash + 1));
}

// Returns true for names that systemd-run generates: "run-u12", "run-p123-i456". HoldsRandomId finds "run-r<32
// digits>".
bool IsRun(std::string_view name) {
  if (!name.starts_with("run-") || name.size() < 6) return false;
  const std::string_view number = name.substr(5);
  if (name[4] == 'u') return IsDigits(number);
  const size_t dash = number.find("-i");
  return name[4] == 'p' && dash != std::string_view::npos && IsDigits(number.substr(0, dash)) &&
         IsDigits(number.substr(dash + 2));
}

// Returns nullopt if the name is not a unit, and "" if it is a unit whose name identifies no workload.
std::optional<std::string_view> UnitOf(std::string_view name) {
  std::string_view stem = name;
  if (name.size() > 8 && Strip(&stem, ".service")) return IsRun(stem) || HoldsRandomId(stem) ? "" : name;
  if (name.size() <= 6 || !Strip(&stem, ".scope")) return std::nullopt;
  const bool is_nothing = stem == "init" || EndsInNumber(stem) || IsRun(stem) || HoldsRandomId(stem);
  return is_nothing ? "" : name;
}

std::string_view TakeLast(std::string_view* path) {
  const size_t slash = path->rfind('/');
  const std::string_view last = path->substr(slash + 1);  // npos + 1 = 0
  *path = slash == std::string_view::npos ? std::string_view() : path->substr(0, slash);
  return last;
}

}  // namespace

CgroupPath ParseCgroupPath(std::string_view path) {
  CgroupPath parsed;
  if (path.size() > kPathBytesMax) return parsed;
  Strip(&path, " (deleted)");  // a cgroup removed before its last process: proc_cgroup_show in the kernel
  std::optional<std::string_view> unit;
  while (!path.empty()) {
    const std::string_view name = TakeLast(&path);
    if (parsed.container_id.empty()) {
      if (const Container container = ContainerOf(name); !container.id.empty()) {
        std::string_view folders = path;
        const std::string_view folder = TakeLast(&folders);
        parsed.container_id = container.id;
        parsed.runtime =
            container.prefix.empty() ? RuntimeOfFolder(folder, TakeLast(&folders)) : RuntimeOf(container.prefix);
      }
    }
    if (parsed.pod_uid.empty()) parsed.pod_uid = PodUidOf(name);
    if (!unit) unit = UnitOf(name);
  }
  if (parsed.container_id.empty() && unit) parsed.systemd_unit = *unit;
  return parsed;
}

}  // namespace tributary
