#pragma once

#include <string>

#include "otlp/profiles_builder.h"
#include "otlp/text_options.h"

namespace tributary::otlp {

// Formats a request as text that ends in an empty line. The lines are those of the programs that TextLayout names, with
// one difference: customprofilesexporter prints the attributes of profiles even without export_profile_attributes.
// Control bytes and ill-formed UTF-8 are escaped as \xNN, so that no name can forge a line. The layout kLazyBackend
// shows each time stamp as a number and in the local time zone. Treats an index that is out of range as "not set".
// Thread-safe.
std::string FormatProfiles(const ProfilesRequest& request, const TextOptions& options);

}  // namespace tributary::otlp
