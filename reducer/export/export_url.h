#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "otlp/profiles_text.h"

namespace tributary {

// A parsed value of --export.
struct ExportUrl {
  enum class Kind { kOtlp, kConsole };
  Kind kind = Kind::kConsole;
  std::string target;  // for kOtlp: "host:port"
  bool tls = false;
  otlp::TextLayout layout = otlp::TextLayout::kLazyBackend;
  // The name under which cursors are stored. It contains only the destination. So if the user changes only the layout,
  // the export continues from the same cursors.
  std::string cursor_name;
};

// InvalidArgument: `url` has none of the forms in reducer/export/exporter.h; the message lists them. Unimplemented:
// `url` has signal=logs.
absl::StatusOr<ExportUrl> ParseExportUrl(std::string_view url);

}  // namespace tributary
