#pragma once

#include <string>
#include <string_view>

#include "kernel-collector/metadata/host_files.h"
#include "profile/attributes.h"

namespace tributary {

// Returns the permanent id of this machine from the first source that has one: /etc/machine-id, D-Bus's copy of it, the
// firmware's UUID (which only root may read). Returns "" if no source has an id.
std::string ReadHostId(const HostFiles& files, const std::string& sys_root);

// Returns the host's name, as the kernel reports it. If this process has another UTS namespace than process 1 (it runs
// in a container), returns the name in the host's /etc/hostname, if that file can be read.
std::string ReadHostName(const HostFiles& files, const std::string& proc_root);

// Returns os.type, os.name, os.version, os.description and os.build_id (OpenTelemetry's conventions), from the host's
// os-release(5) file.
Attributes ReadOs(const HostFiles& files);

// Returns the value of the variable `name` in `text`, the content of an os-release(5) file. Returns "" if it is not
// set.
std::string OsReleaseValue(std::string_view text, std::string_view name);

}  // namespace tributary
