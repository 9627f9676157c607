#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "otlp/profiles_text.h"

namespace tributary {

// A value of --export, understood.
struct ExportUrl {
  enum class Kind { kOtlp, kConsole };
  Kind kind = Kind::kConsole;
  std::string target;  // of kOtlp: "host:port"
  bool tls = false;
  otlp::TextLayout layout = otlp::TextLayout::kLazyBackend;
  // What the cursors are kept under: the place alone, so that another layout goes on where the first one was.
  std::string cursor_name;
};

// InvalidArgument: the message says what is allowed (reducer/export/exporter.h lists it). Unimplemented: a signal that
// is not exported.
absl::StatusOr<ExportUrl> ParseExportUrl(std::string_view url);

}  // namespace tributary
