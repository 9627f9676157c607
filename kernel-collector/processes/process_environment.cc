#include "kernel-collector/processes/process_environment.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "base/status.h"
#include "kernel-collector/processes/proc_files.h"
#include "profile/attributes.h"
#include "profile/metadata.h"

namespace tributary {
namespace {

constexpr std::string_view kServiceName = "OTEL_SERVICE_NAME";
constexpr std::string_view kResourceAttributes = "OTEL_RESOURCE_ATTRIBUTES";

// Returns the values of the requested variables, at the same index as in `names`.
std::vector<std::optional<std::string_view>> FindVariables(std::string_view environment,
                                                           const std::vector<std::string_view>& names) {
  std::vector<std::optional<std::string_view>> found(names.size());
  while (!environment.empty()) {
    const size_t end = environment.find('\0');
    const std::string_view entry = environment.substr(0, end);
    environment.remove_prefix(end == std::string_view::npos ? environment.size() : end + 1);
    const size_t equal = entry.find('=');
    if (equal == std::string_view::npos) continue;
    const auto name = std::find(names.begin(), names.end(), entry.substr(0, equal));
    if (name == names.end()) continue;
    auto& value = found[static_cast<size_t>(name - names.begin())];
    if (!value) value = entry.substr(equal + 1);
  }
  return found;
}

}  // namespace

std::string EncodeResource(const Attributes& attributes, size_t* dropped) {
  // Many other attributes must not displace a service's name.
  Attributes first, others;
  for (const Attribute& attribute : attributes) {
    if (attribute.key.size() > kAttributeKeyBytesMax || attribute.value.size() > kAttributeValueBytesMax) {
      ++*dropped;
    } else {
      (attribute.key.starts_with("service.") ? first : others).push_back(attribute);
    }
  }
  std::string text = EncodeAttributes(first, kEnvironmentAttributesBytesMax, dropped);
  const size_t used = text.empty() ? 0 : text.size() + 1;
  const size_t room = kEnvironmentAttributesBytesMax - std::min(used, kEnvironmentAttributesBytesMax);
  const std::string rest = EncodeAttributes(others, room, dropped);
  if (!text.empty() && !rest.empty()) text += ',';
  return text + rest;
}

std::string MergeResources(std::string_view second, std::string_view first, size_t* dropped) {
  if (second.empty() || first.empty()) return std::string(second.empty() ? first : second);
  Attributes attributes = DecodeAttributes(second);
  for (const auto& [key, value] : DecodeAttributes(first)) SetAttribute(attributes, key, value);
  return EncodeResource(attributes, dropped);
}

ProcessEnvironment ParseProcessEnvironment(std::string_view environment, const std::vector<std::string>& names) {
  std::vector<std::string_view> wanted = {kServiceName, kResourceAttributes};
  wanted.insert(wanted.end(), names.begin(), names.end());
  auto values = FindVariables(environment, wanted);
  ProcessEnvironment parsed;
  for (auto& value : values) {
    if (!value || value->size() <= kEnvironmentValueBytesMax) continue;
    value.reset();
    ++parsed.dropped;
  }
  Attributes attributes;
  if (values[1]) attributes = DecodeAttributes(*values[1]);
  // An empty variable counts as unset (OpenTelemetry's configuration specification).
  if (values[0] && !values[0]->empty()) SetAttribute(attributes, "service.name", *values[0]);
  for (size_t i = 2; i < wanted.size(); ++i) {
    if (values[i]) SetAttribute(attributes, fmt::format("process.environment_variable.{}", wanted[i]), *values[i]);
  }
  parsed.attributes = EncodeResource(attributes, &parsed.dropped);
  return parsed;
}

absl::StatusOr<ProcessEnvironment> ReadProcessEnvironment(const std::string& proc_root, Pid pid,
                                                          const std::vector<std::string>& names) {
  const std::string path = fmt::format("{}/{}/environ", proc_root, pid.value);
  ASSIGN_OR_RETURN(Fd fd, OpenRegularFile(path));
  // The kernel returns one page per read. Bytes above the limit are ignored, and so is the variable that the limit
  // cuts.
  std::string text(64u << 10, '\0');
  size_t size = 0;
  for (;;) {
    if (size == text.size()) text.resize(std::min(2 * text.size(), kEnvironmentBytesMax));
    const ssize_t n = read(fd.get(), text.data() + size, text.size() - size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus("read", path, errno);
    size += static_cast<size_t>(n);
    if (n == 0 || size == kEnvironmentBytesMax) break;
  }
  text.resize(size);
  if (size == kEnvironmentBytesMax) text.resize(text.rfind('\0') + 1);  // npos + 1 = 0
  ProcessEnvironment environment = ParseProcessEnvironment(text, names);
  environment.is_empty = size == 0;
  return environment;
}

}  // namespace tributary
