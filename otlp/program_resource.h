#pragma once

#include <string>
#include <string_view>

#include "base/types.h"
#include "profile/attributes.h"

namespace tributary::otlp {

// Returns the name of this host in UTF-8, or "" if the kernel has none. Any thread.
std::string HostName();

// Returns the attributes of this process as a source of telemetry (OpenTelemetry's conventions for resources):
// service.name (`program`), service.version, service.instance.id, and host.name if `host` is not empty. `start`: when
// the process started. Any thread.
Attributes ProgramResource(std::string_view program, std::string_view host, UnixNs start);

// Returns an id that only this run of a program has: a UUID (RFC 9562, version 8) made from host, pid and start. So all
// exporters of a process have the same id without sharing an object.
std::string InstanceId(std::string_view host, int pid, UnixNs start);

}  // namespace tributary::otlp
