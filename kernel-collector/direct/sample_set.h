#pragma once

#include <cstdint>
#include <vector>

#include "base/types.h"
#include "kernel-collector/direct/event_set.h"
#include "profile/attributes.h"
#include "profile/batch.h"
#include "profile/definitions.h"

namespace tributary {

// The samples and process events of one batch, with copies of the definitions that they use. A batch's dictionary may
// only be used on the loop's thread, because it grows. A SampleSet can wait for a long time, and another thread can
// send it. It takes 40 bytes for each sample, the definitions, and the events.
struct SampleSet {
  UnixNs TimeOf(const Sample& sample) const;
  SampleTypeInfo TypeOf(SampleType type) const;

  ClockPair clock;
  std::vector<Sample> samples;  // their references are indices into the tables of `definitions`
  // Element 0 of each table is id 0, "none". A definition refers only to elements before it, or to earlier tables.
  Definitions definitions;
  std::vector<Attributes> resources;  // each once
  std::vector<uint32_t> resource_of;  // index in `resources`, for each element of definitions.processes; [0] unused
  std::vector<SampleTypeDefinition> types;
  EventSet events;
  size_t bytes = 0;  // in memory, approximately
};

// Returns the numbers of samples and process events.
SampleCounts CountRecords(const SampleSet& set);

// Copies the samples and process events of a batch. Uses the newest definition of each process. Loop thread only.
SampleSet CopySamples(const Batch& batch, const ResourceOf& resource_of);

}  // namespace tributary
