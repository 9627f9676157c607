#pragma once

#include <string>
#include <string_view>

#include "base/types.h"
#include "profile/attributes.h"

namespace tributary {

// Returns the name of this host in UTF-8, or "" if the kernel has none. Any thread.
std::string ReducerHostName();

// Returns the attributes of this process as a source of telemetry (OpenTelemetry's conventions for resources):
// service.name (tributary-reducer), service.version, service.instance.id, and host.name if the kernel has one.
// `start`: when the process started. Any thread.
Attributes ReducerResource(UnixNs start);

// Returns an id that only this run of a program has: a UUID (RFC 9562, version 8) made from host, pid and start. So all
// exporters of a process have the same id without sharing an object.
std::string InstanceId(std::string_view host, int pid, UnixNs start);

}  // namespace tributary
