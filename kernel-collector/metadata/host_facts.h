#pragma once

#include <string>
#include <string_view>

#include "kernel-collector/metadata/host_files.h"
#include "profile/attributes.h"

namespace tributary {

// Returns the permanent id of this machine: /etc/machine-id, else D-Bus's copy of it, else the firmware's UUID (only
// root may read it). Returns "" if there is none.
std::string ReadHostId(const HostFiles& files, const std::string& sys_root);

// Returns the host's name. This is the kernel's name, except in a process with its own UTS namespace (in a container):
// there /etc/hostname is read.
std::string ReadHostName(const HostFiles& files, const std::string& proc_root);

// Returns os.type, os.name, os.version, os.description and os.build_id (OpenTelemetry's conventions), from
// /etc/os-release.
Attributes ReadOs(const HostFiles& files);

// Returns the value of one variable of an os-release(5) text, "" if it is not set.
std::string OsReleaseValue(std::string_view text, std::string_view name);

}  // namespace tributary
