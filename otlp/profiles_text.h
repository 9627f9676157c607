#pragma once

#include <cstdint>
#include <string>

#include "otlp/profiles_builder.h"
#include "otlp/text_options.h"

namespace tributary::otlp {

// Formats a request as text that ends in an empty line. The lines are those of the programs that TextLayout names, with
// one difference: customprofilesexporter prints the attributes of profiles even without export_profile_attributes.
// Control bytes and ill-formed UTF-8 are escaped as \xNN, so that no name can forge a line. The layout kLazyBackend
// shows each time stamp as a number and in the local time zone. Treats an index that is out of range as "not set".
// Names of functions, files and types are cut after kTextNameBytesMax bytes. From the first sample on that would make
// the text longer than options.text_bytes_max, samples are left out, and a line says how many. Thread-safe.
struct RequestText {
  std::string text;
  uint64_t left_out_samples = 0;
};
RequestText FormatRequest(const ProfilesRequest& request, const TextOptions& options);
// Returns only the text.
std::string FormatProfiles(const ProfilesRequest& request, const TextOptions& options);

}  // namespace tributary::otlp
