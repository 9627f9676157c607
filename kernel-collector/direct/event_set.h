#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/types.h"
#include "profile/attributes.h"
#include "profile/batch.h"

namespace tributary {

// Returns the resource attributes of a process.
using ResourceOf = std::function<Attributes(const Process&, const Dictionary&)>;

// The process events of one batch, in their order, with copies of their texts. So it can be used on another thread, as
// a SampleSet. It takes about 200 bytes for each event, and the resources.
struct EventSet {
  struct Item {
    ProcessEvent event;  // its references are not used
    UnixNs time;
    std::string name, executable_path;
    uint32_t resource = 0;  // index in `resources`
  };
  std::vector<Item> items;
  std::vector<Attributes> resources;  // each once
  size_t bytes = 0;                   // in memory, approximately
};

size_t MemoryOf(const Attributes& attributes);  // bytes

// Copies the process events of a batch. The resource of an event is that of its process. If the batch's dictionary has
// a process with the same pid, start time and program, the resource includes the process's own attributes. Loop thread
// only.
EventSet CopyEvents(const Batch& batch, const ResourceOf& resource_of);

}  // namespace tributary
