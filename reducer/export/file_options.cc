#include "reducer/export/file_options.h"

#include <climits>
#include <filesystem>
#include <optional>

#include "base/number.h"
#include "base/parse.h"
#include "base/percent.h"
#include "base/status.h"

namespace tributary {
namespace {

constexpr int64_t kRotateBytesMin = 64 << 10, kRotateBytesMax = int64_t{64} << 30;
constexpr int64_t kRotateAfterMinNs = kNsPerSecond, kRotateAfterMaxNs = 30 * 24 * 60 * kNsPerMinute;
constexpr int64_t kKeepMax = 1'000;

}  // namespace

std::string_view SetFileOption(std::string_view key, std::string_view value, FileOptions* out) {
  if (key == "by") {
    if (value != "service" && value != "container") return "by must be service or container";
    out->attribute = value == "service" ? "service.name" : "container.id";
    return "";
  }
  if (key == "format") {
    if (value != "folded" && value != "otlp_json") return "format must be folded or otlp_json";
    out->format = value == "folded" ? FileOptions::Format::kFolded : FileOptions::Format::kOtlpJson;
    return "";
  }
  if (key == "rotate_bytes") {
    const absl::StatusOr<int64_t> bytes = ParseBytes(value);
    if (!bytes.ok() || *bytes < kRotateBytesMin || *bytes > kRotateBytesMax) {
      return "rotate_bytes must be 64KiB to 64GiB";
    }
    out->rotate_bytes = *bytes;
    return "";
  }
  if (key == "rotate_after") {
    const absl::StatusOr<int64_t> ns = ParseDurationNs(value);
    if (!ns.ok() || *ns < kRotateAfterMinNs || *ns > kRotateAfterMaxNs) return "rotate_after must be 1s to 30d";
    out->rotate_after_ns = *ns;
    return "";
  }
  if (key == "keep") {
    const std::optional<int64_t> keep = ParseNumber<int64_t>(value);
    if (!keep || *keep < 1 || *keep > kKeepMax) return "keep must be 1 to 1000";
    out->keep = *keep;
    return "";
  }
  return "a parameter is unknown; the parameters of file:// are by, format, rotate_bytes, rotate_after, keep and name";
}

absl::StatusOr<std::string> ParseFileDirectory(std::string_view encoded) {
  const std::string decoded = PercentDecoded(encoded);
  if (!decoded.starts_with('/')) {
    return Error(absl::StatusCode::kInvalidArgument, "the directory must be absolute: file:///DIR");
  }
  std::string path = std::filesystem::path(decoded).lexically_normal().string();
  if (path.size() > 1 && path.ends_with('/')) path.pop_back();
  if (path.find('\0') != path.npos || path.size() >= PATH_MAX / 2) {
    return Error(absl::StatusCode::kInvalidArgument, "the directory's path is too long, or contains a zero byte");
  }
  return path;
}

}  // namespace tributary
