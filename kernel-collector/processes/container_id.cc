#include "kernel-collector/processes/container_id.h"

#include <algorithm>

namespace tributary {
namespace {

constexpr size_t kPathBytesMax = 4096;
constexpr size_t kHierarchiesMax = 32;

bool IsLowerHex(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool IsDigits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// "0123…(32)-4567": an ECS task's container.
bool IsEcsId(std::string_view name) {
  return name.size() > 33 && name.size() <= 44 && name[32] == '-' && IsLowerHex(name.substr(0, 32)) &&
         IsDigits(name.substr(33));
}

// "6f265890-5165-7fab-6b52-18d1": a Garden handle, 8-4-4-4-4 digits. (A pod's uid ends in 12.)
bool IsGardenHandle(std::string_view name) {
  if (name.size() != 28) return false;
  for (size_t i = 0; i < name.size(); ++i) {
    bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? name[i] != '-' : !IsLowerHex(name.substr(i, 1))) return false;
  }
  return true;
}

// Of one path component: "<id>", "docker-<id>.scope", "cri-containerd-<id>.scope", "crio-<id>", "x.slice:prefix:<id>".
std::string_view IdOfComponent(std::string_view name) {
  if (name.ends_with(".scope")) name.remove_suffix(6);
  constexpr size_t kIdDigits = 64;
  if (name.size() >= kIdDigits && IsLowerHex(name.substr(name.size() - kIdDigits))) {
    std::string_view id = name.substr(name.size() - kIdDigits);
    std::string_view prefix = name.substr(0, name.size() - kIdDigits);
    if (prefix.empty()) return id;
    char separator = prefix.back();
    prefix.remove_suffix(1);
    if (separator != '-' && separator != ':' && separator != '_') return {};
    if (prefix.empty() || prefix.ends_with("conmon")) return {};
    return id;
  }
  if (IsEcsId(name) || IsGardenHandle(name)) return name;
  return {};
}

}  // namespace

std::string ContainerIdFromCgroupPath(std::string_view path) {
  if (path.size() > kPathBytesMax) return "";
  while (!path.empty()) {
    size_t slash = path.rfind('/');
    std::string_view component = slash == std::string_view::npos ? path : path.substr(slash + 1);
    path = slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
    if (std::string_view id = IdOfComponent(component); !id.empty()) return std::string(id);
  }
  return "";
}

CgroupPaths ParseProcCgroup(std::string_view text) {
  CgroupPaths paths;
  while (!text.empty()) {
    size_t newline = text.find('\n');
    std::string_view line = text.substr(0, newline);
    text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
    size_t first = line.find(':');
    size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    std::string_view controllers = line.substr(first + 1, second - first - 1);
    std::string_view path = line.substr(second + 1);
    if (path.empty() || path.front() != '/' || path.size() > kPathBytesMax) continue;
    if (line.substr(0, first) == "0" && controllers.empty()) {
      paths.unified = path;
    } else if (paths.legacy.size() < kHierarchiesMax) {
      paths.legacy.emplace_back(path);
    }
  }
  return paths;
}

}  // namespace tributary
