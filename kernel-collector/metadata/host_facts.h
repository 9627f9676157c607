#pragma once

#include <string>
#include <string_view>

#include "kernel-collector/metadata/host_files.h"
#include "profile/attributes.h"

namespace tributary {

// Returns the permanent id of this machine: the content of /etc/machine-id, else D-Bus's copy of this id, else the
// firmware's UUID (only root may read the UUID). Returns "" if there is none.
std::string ReadHostId(const HostFiles& files, const std::string& sys_root);

// Returns the host's name: the name that the kernel reports. If this process has another UTS namespace than process 1
// (in a container), the host's /etc/hostname is read first.
std::string ReadHostName(const HostFiles& files, const std::string& proc_root);

// Returns os.type, os.name, os.version, os.description and os.build_id (OpenTelemetry's conventions), from
// /etc/os-release.
Attributes ReadOs(const HostFiles& files);

// Returns the value of one variable of an os-release(5) text, "" if it is not set.
std::string OsReleaseValue(std::string_view text, std::string_view name);

}  // namespace tributary
