#include "kernel-collector/metadata/host_facts.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "kernel-collector/processes/proc_files.h"

namespace tributary {
namespace {

constexpr size_t kOsReleaseBytesMax = 64u << 10;

// Returns whether `text` is 128 bits in hexadecimal, with or without dashes, with a digit other than 0 and f.
bool IsId(std::string_view text) {
  size_t digits = 0;
  bool has_other_digit = false;
  for (const char c : text) {
    if (c == '-') continue;
    if ((c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F')) return false;
    ++digits;
    has_other_digit = has_other_digit || (c != '0' && c != 'f' && c != 'F');
  }
  return digits == 32 && has_other_digit;
}

std::string LinkTarget(const std::string& path) {
  char target[64];
  const ssize_t size = readlink(path.c_str(), target, sizeof target);
  return size < 0 ? "" : std::string(target, static_cast<size_t>(size));
}

// Returns the value as a shell reads it: without its quotes, and without backslashes before escaped characters.
std::string Unquoted(std::string_view text) {
  const char quote = text.empty() ? '\0' : text.front();
  if (quote != '"' && quote != '\'') return std::string(text);
  std::string out;
  for (text.remove_prefix(1); !text.empty() && text.front() != quote; text.remove_prefix(1)) {
    if (quote == '"' && text.front() == '\\' && text.size() > 1) text.remove_prefix(1);
    out += text.front();
  }
  return out;
}

}  // namespace

std::string ReadHostId(const HostFiles& files, const std::string& sys_root) {
  for (const char* path : {"/etc/machine-id", "/var/lib/dbus/machine-id"}) {
    if (std::string id = files.FirstLine(path); IsId(id)) return id;
  }
  auto uuid = ReadSmallFile(sys_root + "/class/dmi/id/product_uuid", 256);
  if (!uuid.ok()) return "";
  std::string id = uuid->substr(0, uuid->find('\n'));
  return IsId(id) ? id : "";
}

std::string ReadHostName(const HostFiles& files, const std::string& proc_root) {
  const std::string own = LinkTarget("/proc/self/ns/uts"), first = LinkTarget(proc_root + "/1/ns/uts");
  if (!first.empty() && own != first) {
    if (std::string name = files.FirstLine("/etc/hostname"); !name.empty()) return name;
  }
  utsname names{};
  uname(&names);
  return names.nodename;
}

std::string OsReleaseValue(std::string_view text, std::string_view name) {
  std::string value;  // the last assignment counts
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.size() > name.size() && line.starts_with(name) && line[name.size()] == '=') {
      value = Unquoted(line.substr(name.size() + 1));
    }
  }
  return value;
}

Attributes ReadOs(const HostFiles& files) {
  Attributes out;
  SetAttribute(out, "os.type", "linux");
  auto text = files.Read("/etc/os-release", kOsReleaseBytesMax);
  if (!text.ok()) text = files.Read("/usr/lib/os-release", kOsReleaseBytesMax);
  if (!text.ok()) return out;
  for (const auto& [attribute, variable] : {std::pair{"os.name", "NAME"},
                                            {"os.version", "VERSION_ID"},
                                            {"os.description", "PRETTY_NAME"},
                                            {"os.build_id", "BUILD_ID"}}) {
    if (const std::string value = OsReleaseValue(*text, variable); !value.empty()) SetAttribute(out, attribute, value);
  }
  return out;
}

}  // namespace tributary
