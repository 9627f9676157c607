#include "profile/executable_id.h"

#include <algorithm>

#include "base/hex.h"

namespace tributary {

std::optional<ExecutableId> ExecutableId::Make(ExecutableIdKind kind, std::span<const uint8_t> bytes) {
  if (kind > ExecutableIdKind::kContentHash || bytes.size() > kSizeMax) return std::nullopt;
  if ((kind == ExecutableIdKind::kNone) != bytes.empty()) return std::nullopt;
  ExecutableId id;
  id.kind_ = kind;
  id.size_ = static_cast<uint8_t>(bytes.size());
  std::copy(bytes.begin(), bytes.end(), id.bytes_.begin());
  return id;
}

std::optional<ExecutableId> ExecutableId::Make(ExecutableIdKind kind, std::string_view bytes) {
  return Make(kind, std::span(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
}

std::string ExecutableId::ToString() const {
  switch (kind_) {
    case ExecutableIdKind::kNone:
      return "unknown";
    case ExecutableIdKind::kGnuBuildId:
      return ToHex(bytes());
    case ExecutableIdKind::kGoBuildId:
      return "go:" + ToHex(bytes());
    case ExecutableIdKind::kContentHash:
      return "htl:" + ToHex(bytes());
  }
  return "unknown";
}

std::optional<ExecutableId> ExecutableId::FromString(std::string_view text) {
  if (text == "unknown") return ExecutableId();
  auto kind = ExecutableIdKind::kGnuBuildId;
  if (text.starts_with("go:")) {
    kind = ExecutableIdKind::kGoBuildId;
    text.remove_prefix(3);
  } else if (text.starts_with("htl:")) {
    kind = ExecutableIdKind::kContentHash;
    text.remove_prefix(4);
  }
  std::optional<std::string> bytes = FromHex(text);
  if (!bytes) return std::nullopt;
  return Make(kind, *bytes);
}

}  // namespace tributary
