#include "reducer/metadata/labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/utf8.h"

namespace tributary {
namespace {

struct Entry {
  Label label;
  std::string_view name;
};
constexpr std::array<Entry, 10> kLabels = {{
    {Label::kProcessPid, "process.pid"},
    {Label::kProcessExecutableName, "process.executable.name"},
    {Label::kProcessExecutablePath, "process.executable.path"},
    {Label::kProcessCommand, "process.command"},
    {Label::kThreadId, "thread.id"},
    {Label::kThreadName, "thread.name"},
    {Label::kContainerId, "container.id"},
    {Label::kHostName, "host.name"},
    {Label::kHostId, "host.id"},
    {Label::kNodeId, "node.id"},
}};

char Normalized(char c) { return c == '.' || c == '/' || c == '-' ? '_' : c; }

}  // namespace

std::string_view LabelName(Label label) { return kLabels[static_cast<size_t>(label)].name; }

std::string NormalizeLabel(std::string_view name) {
  std::string out(name);
  for (char& c : out) c = Normalized(c);
  return out;
}

bool IsNormalizedAs(std::string_view name, std::string_view normalized) {
  return name.size() == normalized.size() &&
         std::equal(name.begin(), name.end(), normalized.begin(), [](char a, char b) { return Normalized(a) == b; });
}

std::optional<Label> FindLabel(std::string_view name) {
  std::string normalized = NormalizeLabel(name);
  for (const Entry& entry : kLabels) {
    if (NormalizeLabel(entry.name) == normalized) return entry.label;
  }
  return std::nullopt;
}

std::string_view BaseName(std::string_view path) {
  size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string LabelValue(Label label, const store::ProcessRow& process) {
  switch (label) {
    case Label::kProcessPid:
      return process.pid.value != 0 ? fmt::format("{}", process.pid.value) : std::string();
    case Label::kProcessExecutableName:
      return ToUtf8(BaseName(process.executable_path));
    case Label::kProcessExecutablePath:
      return ToUtf8(process.executable_path);
    case Label::kProcessCommand:
      return ToUtf8(process.comm);
    case Label::kContainerId:
      return ToUtf8(process.container_id);
    case Label::kHostName:
      return ToUtf8(process.host_name);
    case Label::kHostId:
    case Label::kNodeId:
      return ToUtf8(process.node_id);
    case Label::kThreadId:
    case Label::kThreadName:
      break;
  }
  return std::string();
}

std::string LabelValue(Label label, const store::ThreadRow& thread) {
  if (label == Label::kThreadId) return thread.tid.value != 0 ? fmt::format("{}", thread.tid.value) : std::string();
  if (label == Label::kThreadName) return ToUtf8(thread.name);
  return std::string();
}

}  // namespace tributary
