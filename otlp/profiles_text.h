#pragma once

#include <string>

#include "otlp/profiles_builder.h"

namespace tributary::otlp {

// The layouts in which FormatProfiles can print profiles: those of two well-known OpenTelemetry programs.
enum class TextLayout {
  kLazyBackend,  // opentelemetry-lazybackend's stdout: times, time stamps, file and line of every frame
  kCollector,    // the Collector's customprofilesexporter: attributes with their value type, functions only
};

// Formats a request as text that ends in a newline. Frames without a name show their address as the function, and
// (lazybackend) their executable as the file. Control bytes and ill-formed UTF-8 are escaped as \xNN, so that no name
// can forge a line. Time stamps are also shown in the local time zone. An index out of range counts as "not set". Any
// thread may call it.
std::string FormatProfiles(const ProfilesRequest& request, TextLayout layout);

}  // namespace tributary::otlp
