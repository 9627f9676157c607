#include "kernel-collector/direct/sample_set.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "profile/tables.h"

namespace tributary {
namespace {

std::string DefinitionOf(const Dictionary& from, StringRef ref) { return std::string(from.string(ref)); }
Executable DefinitionOf(const Dictionary& from, ExecutableRef ref) { return from.executable(ref); }
Frame DefinitionOf(const Dictionary& from, FrameRef ref) { return from.frame(ref); }
Node DefinitionOf(const Dictionary& from, NodeRef ref) { return from.node(ref); }
Process DefinitionOf(const Dictionary& from, ProcessRef ref) { return from.process(ref); }
Thread DefinitionOf(const Dictionary& from, ThreadRef ref) { return from.thread(ref); }

// Copies definitions with everything that they refer to, each once.
class Copier {
 public:
  explicit Copier(const Dictionary& from) : from_(from) {
    ForEachTable([](auto& table) { table.emplace_back(); }, out_);
  }

  template <typename Ref>
  Ref Copy(Ref ref) {
    if (ref.value == 0) return ref;
    absl::flat_hash_map<uint32_t, uint32_t>& ids = TableOf(ids_, ref);
    if (const auto known = ids.find(ref.value); known != ids.end()) return Ref{known->second};
    auto copy = DefinitionOf(from_, ref);
    // A node's parents are copied first: at most DictionaryLimits::stack_depth_max calls.
    ForEachRef(copy, [this](auto& part) { part = Copy(part); });
    auto& table = TableOf(out_, ref);
    const Ref made{static_cast<uint32_t>(table.size())};
    table.push_back(std::move(copy));
    ids.emplace(ref.value, made.value);
    return made;
  }
  // The collector sends a process again when it learns more about it, for example its container.
  ProcessRef Copy(ProcessRef ref) {
    const ProcessRef newest = from_.NewestProcess(ref);
    const ProcessRef made = Copy<ProcessRef>(newest);
    originals_.resize(std::max<size_t>(originals_.size(), made.value + 1));
    originals_[made.value] = newest;
    return made;
  }

  // The original of each copied process. Call it last.
  const std::vector<ProcessRef>& originals() const { return originals_; }
  Definitions TakeCopies() { return std::move(out_); }

 private:
  const Dictionary& from_;
  Tables<absl::flat_hash_map<uint32_t, uint32_t>> ids_;
  Definitions out_;
  std::vector<ProcessRef> originals_{ProcessRef{}};
};

}  // namespace

UnixNs SampleSet::TimeOf(const Sample& sample) const {
  return UnixNs{clock.unix.value - (clock.monotonic.value - sample.time.value)};
}

SampleTypeInfo SampleSet::TypeOf(SampleType type) const {
  if (const SampleTypeRow* row = FindSampleType(type); row != nullptr) return InfoOf(*row);
  const auto defined = std::find_if(types.begin(), types.end(), [type](const auto& each) { return each.type == type; });
  return defined != types.end() ? defined->info : kUndefinedType;
}

SampleCounts CountRecords(const SampleSet& set) {
  SampleCounts counts = CountSamples(set.samples);
  for (const EventSet::Item& item : set.events.items) counts.AddEvents(item.event.events);
  return counts;
}

SampleSet CopySamples(const Batch& batch, const ResourceOf& resource_of) {
  SampleSet out;
  out.clock = batch.clock;
  out.types = batch.sample_types;
  out.samples = batch.samples;
  out.events = CopyEvents(batch, resource_of);
  out.bytes = sizeof(out) + out.events.bytes;
  if (batch.samples.empty()) return out;
  Copier copier(*batch.dictionary);
  for (Sample& sample : out.samples) {
    sample.thread = copier.Copy(sample.thread);
    sample.node = copier.Copy(sample.node);
    sample.attributes = copier.Copy(sample.attributes);
  }
  std::map<Attributes, uint32_t> resources;
  out.resource_of.push_back(0);
  for (size_t i = 1; i < copier.originals().size(); ++i) {
    const Process& process = batch.dictionary->process(copier.originals()[i]);
    const auto [it, added] =
        resources.try_emplace(resource_of(process, *batch.dictionary), static_cast<uint32_t>(resources.size()));
    if (added) out.resources.push_back(it->first);
    out.resource_of.push_back(it->second);
  }
  out.definitions = copier.TakeCopies();
  out.bytes +=
      out.samples.size() * sizeof(Sample) + MemoryOf(out.definitions) + out.resource_of.size() * sizeof(uint32_t);
  for (const Attributes& resource : out.resources) out.bytes += MemoryOf(resource);
  return out;
}

}  // namespace tributary
