#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "reducer/store/store.h"

namespace tributary::store {

// A copy of a stored process event (store.h), which owns its texts.
struct EventRecord {
  EventRecord() = default;
  explicit EventRecord(const ProcessEventRow& row)
      : kind(row.kind),
        time(row.time),
        node_id(row.node_id),
        host_name(row.host_name),
        pid(row.pid),
        parent(row.parent),
        start_time_ns(row.start_time_ns),
        uid(row.uid),
        name(row.name),
        executable_path(row.executable_path),
        container_id(row.container_id),
        cgroup_path(row.cgroup_path),
        events(row.events),
        processes(row.processes),
        end(row.end) {}

  // The texts of the result are valid as long as this object is unchanged.
  ProcessEventRow Row() const {
    return {.kind = kind,
            .time = time,
            .node_id = node_id,
            .host_name = host_name,
            .pid = pid,
            .parent = parent,
            .start_time_ns = start_time_ns,
            .uid = uid,
            .name = name,
            .executable_path = executable_path,
            .container_id = container_id,
            .cgroup_path = cgroup_path,
            .events = events,
            .processes = processes,
            .end = end};
  }

  size_t text_bytes() const {
    return node_id.size() + host_name.size() + name.size() + executable_path.size() + container_id.size() +
           cgroup_path.size();
  }

  ProcessEventKind kind = ProcessEventKind::kStart;
  UnixNs time;
  std::string node_id, host_name;
  Pid pid, parent;
  int64_t start_time_ns = 0;
  uint32_t uid = 0;
  std::string name, executable_path, container_id, cgroup_path;
  uint32_t events = 1, processes = 1;
  ProcessEnd end;
  std::string attributes;  // the process's own resource attributes, as in ProcessRow, if a caller has looked them up
};

}  // namespace tributary::store
