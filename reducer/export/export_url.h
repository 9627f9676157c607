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
  // The name under which cursors are stored. It contains only the destination, so that another layout continues at the
  // cursors of the first one.
  std::string cursor_name;
};

// InvalidArgument: the message says what is allowed (reducer/export/exporter.h lists the URLs). Unimplemented: a signal
// that is not exported.
absl::StatusOr<ExportUrl> ParseExportUrl(std::string_view url);

}  // namespace tributary
