#include "kernel-collector/direct/event_set.h"

#include <map>
#include <tuple>

#include "absl/container/flat_hash_map.h"

namespace tributary {
namespace {

// Finds the own attributes of the events' processes, which events do not contain. Most processes of the dictionary have
// no event, so only those with one take memory.
class OwnAttributes {
 public:
  explicit OwnAttributes(const Batch& batch) {
    for (const ProcessEvent& event : batch.events) {
      attributes_.try_emplace(Key{event.pid, event.start_time_ns, event.executable_path});
    }
    // The definition with the highest id is the newest one.
    const Dictionary& from = *batch.dictionary;
    for (uint32_t i = 1; i < from.process_count(); ++i) {
      const Process& process = from.process(ProcessRef{i});
      const auto wanted = attributes_.find(Key{process.key.pid, process.key.start_time_ns, process.executable_path});
      if (wanted != attributes_.end()) wanted->second = process.attributes;
    }
  }
  // Returns "" if the process is not known: most processes are never sampled.
  StringRef Of(const ProcessEvent& event) const {
    const auto known = attributes_.find(Key{event.pid, event.start_time_ns, event.executable_path});
    return known != attributes_.end() ? known->second : StringRef{};
  }

 private:
  using Key = std::tuple<Pid, int64_t, StringRef>;
  absl::flat_hash_map<Key, StringRef> attributes_;
};

}  // namespace

size_t MemoryOf(const Attributes& attributes) {
  size_t bytes = 0;
  for (const Attribute& attribute : attributes) {
    bytes += sizeof(attribute) + attribute.key.size() + attribute.value.size();
  }
  return bytes;
}

EventSet CopyEvents(const Batch& batch, const ResourceOf& resource_of) {
  EventSet out;
  if (batch.events.empty()) return out;
  const Dictionary& texts = *batch.dictionary;
  const OwnAttributes own(batch);
  // Short processes of one program have the same resource. To find one costs 10 µs.
  using Cause = std::tuple<Pid, StringRef, StringRef, StringRef, StringRef, StringRef>;
  std::map<Cause, uint32_t> found;
  std::map<Attributes, uint32_t> resources;
  for (const ProcessEvent& event : batch.events) {
    Process process;
    process.key = {event.pid, event.start_time_ns, 0};
    process.parent = event.parent;
    process.comm = event.name;
    process.executable_path = event.executable_path;
    process.container_id = event.container_id;
    process.cgroup_path = event.cgroup_path;
    process.attributes = own.Of(event);
    const auto [cause, is_new] = found.try_emplace({process.parent, process.comm, process.executable_path,
                                                    process.container_id, process.cgroup_path, process.attributes});
    if (is_new) {
      const auto [resource, added] =
          resources.try_emplace(resource_of(process, texts), static_cast<uint32_t>(resources.size()));
      if (added) out.resources.push_back(resource->first);
      cause->second = resource->second;
    }
    EventSet::Item& item = out.items.emplace_back();
    item.event = event;
    item.time = UnixNs{batch.clock.unix.value - (batch.clock.monotonic.value - event.time.value)};
    item.name = texts.string(event.name);
    item.executable_path = texts.string(event.executable_path);
    item.resource = cause->second;
    out.bytes += sizeof(item) + item.name.size() + item.executable_path.size();
  }
  for (const Attributes& resource : out.resources) out.bytes += MemoryOf(resource);
  return out;
}

}  // namespace tributary
