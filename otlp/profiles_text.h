#pragma once

#include <string>

#include "otlp/profiles_builder.h"

namespace tributary::otlp {

// The layouts of FormatProfiles. They are the output formats of two well-known OpenTelemetry programs.
enum class TextLayout {
  kLazyBackend,  // opentelemetry-lazybackend's stdout: times, time stamps, file and line of every frame
  kCollector,    // the Collector's customprofilesexporter: attributes with their value type, functions only
};

// Formats a request as text that ends in a newline. For a frame without a name, shows the address as the function, and
// in the layout kLazyBackend also the frame's executable as the file. Control bytes and ill-formed UTF-8 are escaped as
// \xNN, so that no name can forge a line. The layout kLazyBackend shows each time stamp as a number and in the local
// time zone. Treats an index that is out of range as "not set". Thread-safe.
std::string FormatProfiles(const ProfilesRequest& request, TextLayout layout);

}  // namespace tributary::otlp
