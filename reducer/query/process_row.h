#pragma once

#include <map>

#include "absl/status/statusor.h"
#include "base/status.h"
#include "reducer/store/store.h"

namespace tributary {

// Returns the row of a process, without its executable. `text_of` returns the text of a StringId, or an error.
template <typename TextOf>
absl::StatusOr<store::ProcessRow> MakeProcessRow(const store::ProcessIds& process,
                                                 const std::map<store::MachineNo, store::MachineRow>& machines,
                                                 TextOf text_of) {
  store::ProcessRow row;
  if (const auto machine = machines.find(process.machine); machine != machines.end()) {
    row.node_id = machine->second.node_id;
    row.host_name = machine->second.host_name;
  }
  row.no = process.no;
  row.pid = process.pid;
  row.parent = process.parent;
  row.start_time_ns = process.start_time_ns;
  row.exec_sequence = process.exec_sequence;
  ASSIGN_OR_RETURN(row.comm, text_of(process.comm));
  ASSIGN_OR_RETURN(row.executable_path, text_of(process.executable_path));
  ASSIGN_OR_RETURN(row.container_id, text_of(process.container_id));
  ASSIGN_OR_RETURN(row.cgroup_path, text_of(process.cgroup_path));
  ASSIGN_OR_RETURN(row.attributes, text_of(process.attributes));
  row.as_of = process.as_of;
  return row;
}

}  // namespace tributary
