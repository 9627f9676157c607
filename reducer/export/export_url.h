#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/types.h"
#include "otlp/text_options.h"
#include "otlp/transport.h"
#include "reducer/export/file_options.h"

namespace tributary {

// Limits of the parameter `interval` for metrics.
inline constexpr int64_t kExportIntervalMinNs = kNsPerSecond, kExportIntervalMaxNs = 3600 * kNsPerSecond;

// A parsed value of --export.
struct ExportUrl {
  enum class Kind { kOtlpGrpc, kOtlpHttp, kConsole, kFile };
  Kind kind = Kind::kConsole;
  std::string target;                           // for OTLP: "host:port"
  std::string path;                             // for kOtlpHttp; never empty
  otlp::Signal signal = otlp::kProfilesSignal;  // for OTLP: what is sent
  bool tls = false;
  // The parameters behind the question mark, decoded. Their names and values are checked, but not whether their files
  // exist.
  std::map<std::string, std::string, std::less<>> parameters;
  otlp::TextOptions text;  // for kConsole
  FileOptions file;        // for kFile
  // The name under which cursors are stored. It contains only the receiver, the signal and the parameter `name`. So if
  // the user changes only another parameter, the export continues from the same cursors.
  std::string cursor_name;
};

// InvalidArgument: `url` has none of the forms in reducer/export/exporter.h; the message lists them.
absl::StatusOr<ExportUrl> ParseExportUrl(std::string_view url);

// The same, but the message says only what is wrong, for a URL that the user did not write in this form.
absl::StatusOr<ExportUrl> ParseExportUrlPlainly(std::string_view url);

// Parses the time between two looks for new samples, 1s to 5m. So samples are sent before they expire
// (--retention-raw). InvalidArgument: another text.
absl::StatusOr<int64_t> ParseExportInterval(std::string_view text);

// Parses the longest time that samples may wait for an exporter: 1m to 365d, or 0 for no limit. InvalidArgument:
// another text.
absl::StatusOr<int64_t> ParseExportLag(std::string_view text);

// Returns `receiver`, the signal unless it is that of profiles, and `name` unless it is empty.
std::string CursorName(std::string_view receiver, const otlp::Signal& signal, std::string_view name);

// Returns the URL for logs and messages: escaped, without user name and password, and without the values behind the
// question mark.
std::string ShownExportUrl(std::string_view url);

}  // namespace tributary
