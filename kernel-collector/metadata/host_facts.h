#pragma once

#include <string>
#include <string_view>

#include "kernel-collector/metadata/host_files.h"
#include "profile/attributes.h"

namespace tributary {

// What identifies this machine for good: /etc/machine-id, else D-Bus's copy of it, else the firmware's UUID (which only
// root may read). "" when there is none.
std::string ReadHostId(const HostFiles& files, const std::string& sys_root);

// The host's name: the kernel's, but for a process with a name of its own (in a container), which reads /etc/hostname.
std::string ReadHostName(const HostFiles& files, const std::string& proc_root);

// os.type, os.name, os.version, os.description and os.build_id (OpenTelemetry's conventions), from /etc/os-release.
Attributes ReadOs(const HostFiles& files);

// os-release(5): the value of one variable, "" when there is none.
std::string OsReleaseValue(std::string_view text, std::string_view name);

}  // namespace tributary
