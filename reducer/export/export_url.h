#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "otlp/profiles_text.h"

namespace tributary {

// A parsed value of --export.
struct ExportUrl {
  enum class Kind { kOtlpGrpc, kOtlpHttp, kConsole };
  Kind kind = Kind::kConsole;
  std::string target;  // for OTLP: "host:port"
  std::string path;    // for kOtlpHttp
  bool tls = false;
  // For OTLP: the parameters behind the question mark, decoded. Their names and values are checked, but not whether
  // their files exist.
  std::map<std::string, std::string, std::less<>> parameters;
  otlp::TextLayout layout = otlp::TextLayout::kLazyBackend;
  // The name under which cursors are stored. It contains only the destination. So if the user changes only the layout
  // or a parameter, the export continues from the same cursors.
  std::string cursor_name;
};

// InvalidArgument: `url` has none of the forms in reducer/export/exporter.h; the message lists them. Unimplemented:
// `url` has signal=logs or signal=metrics.
absl::StatusOr<ExportUrl> ParseExportUrl(std::string_view url);

// Returns the URL for logs and messages: escaped, without user name and password, and without the values behind the
// question mark.
std::string ShownExportUrl(std::string_view url);

}  // namespace tributary
