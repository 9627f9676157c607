#include "otlp/profiles_builder.h"

#include <algorithm>
#include <limits>

#include "absl/container/flat_hash_set.h"
#include "base/hex.h"
#include "base/saturate.h"
#include "base/status.h"
#include "base/utf8.h"
#include "otlp/attribute_values.h"
#include "otlp/element_bytes.h"
#include "otlp/log_size.h"
#include "otlp/request_arena.h"
#include "schemas/otlp/profiles_service.pb.h"

namespace tributary::otlp {
namespace {

namespace proto = ::opentelemetry::proto::profiles::v1development;

// Strings up to this length are accepted even into a full request: one stack has at most a thousand.
constexpr size_t kFixedNameBytes = 40;

// A row with a higher count becomes one value instead of as many equal time stamps.
constexpr uint32_t kRepeatsMax = 16;

int32_t ClampToInt32(uint32_t value) {
  return static_cast<int32_t>(std::min<uint32_t>(value, std::numeric_limits<int32_t>::max()));
}

constexpr std::string_view kOwnPrefix = "tributary.";  // of attribute keys of this project

// Returns ToText(text). `buffer` owns it if it is not the text itself.
std::string_view TextOf(std::string_view text, std::string* buffer) {
  if (text.size() <= ProfilesBuilder::kStringBytesMax && IsUtf8(text)) return text;
  return *buffer = ToText(text);
}

}  // namespace

struct ProfilesBuilder::OpenProfile {
  proto::Profile* profile = nullptr;  // in the request's arena
  uint64_t first_ns = std::numeric_limits<uint64_t>::max();
  uint64_t last_ns = 0;
  absl::flat_hash_map<std::array<int32_t, 3>, int32_t> samples;  // by stack, attribute set and link
  absl::flat_hash_set<int32_t> stacks;                           // of the samples; only for 1.7
};

struct ProfilesBuilder::OpenResource {
  opentelemetry::proto::resource::v1::Resource* resource = nullptr;  // in the request's arena
  std::map<ProfileKey, OpenProfile> profiles;
};

ProfilesBuilder::ProfilesBuilder(Options options)
    : options_(std::move(options)),
      request_(NewArenaRequest()),
      dictionary_(request_->mutable_dictionary()),
      bytes_(kRequestBytes) {
  // Element 0 of every table.
  dictionary_->add_mapping_table();
  dictionary_->add_location_table();
  dictionary_->add_function_table();
  dictionary_->add_link_table();
  dictionary_->add_string_table();
  dictionary_->add_attribute_table();
  dictionary_->add_stack_table();
  strings_.emplace("", 0);
  if (options_.size_of != SizeOf::kProfiles) log_size_ = std::make_unique<LogSize>(*dictionary_);
  attribute_sets_.emplace_back();
  if (log_size_ != nullptr) log_size_->AddSet({});
  attribute_set_ids_.emplace(std::vector<int32_t>(), 0);
  const SampleTypeRow& cpu = *FindSampleType(SampleType::kCpu);
  TRIBUTARY_CHECK(AddType({std::string(cpu.name), std::string(cpu.unit)}) == kCpu);
}

ProfilesBuilder::~ProfilesBuilder() = default;

// Our own names (attribute keys, types, units: a few dozen short ones) are never refused.
bool ProfilesBuilder::NoRoomFor(std::string_view text) {
  if (text.size() <= kFixedNameBytes || bytes_ + text.size() <= options_.bytes_hard) return false;
  ++dropped_strings_;
  return true;
}

int32_t ProfilesBuilder::String(std::string_view text) {
  std::string buffer;
  const std::string_view utf8 = TextOf(text, &buffer);
  if (auto it = strings_.find(utf8); it != strings_.end()) return it->second;
  if (NoRoomFor(utf8)) return 0;
  bytes_ += kStringBytes + utf8.size();
  int32_t index = dictionary_->string_table_size();
  std::string* added = dictionary_->add_string_table();
  added->assign(utf8);
  strings_.emplace(*added, index);
  return index;
}

// Returns 0 (no attribute) if the value is empty or does not fit.
int32_t ProfilesBuilder::StringAttribute(std::string_view key, std::string_view value) {
  std::string buffer;
  const std::string_view utf8 = TextOf(value, &buffer);
  if (utf8.empty()) return 0;
  auto known = string_attributes_.find({key, utf8});
  if (known != string_attributes_.end()) return known->second;
  if (NoRoomFor(utf8)) return 0;
  bytes_ += kAttributeBytes + KeyBytes(key) + utf8.size();
  int32_t index = dictionary_->attribute_table_size();
  auto* attribute = dictionary_->add_attribute_table();
  attribute->set_key_strindex(String(key));
  attribute->mutable_value()->mutable_string_value()->assign(utf8);
  string_attributes_.emplace(std::pair<std::string_view, std::string_view>(key, attribute->value().string_value()),
                             index);
  return index;
}

int32_t ProfilesBuilder::IntAttribute(std::string_view key, int64_t value) {
  auto [it, added] = int_attributes_.try_emplace({key, value}, dictionary_->attribute_table_size());
  if (added) {
    bytes_ += kAttributeBytes + KeyBytes(key);
    auto* attribute = dictionary_->add_attribute_table();
    attribute->set_key_strindex(String(key));
    attribute->mutable_value()->set_int_value(value);
  }
  return it->second;
}

ResourceIndex ProfilesBuilder::AddResource(const Attributes& attributes) {
  auto [it, added] = resource_ids_.try_emplace(attributes, static_cast<int32_t>(resources_.size()));
  if (added) {
    resources_.push_back(std::make_unique<OpenResource>());
    auto*& resource = resources_.back()->resource;
    resource = NewInArena<opentelemetry::proto::resource::v1::Resource>(*request_);
    SetResource(attributes, resource);
    bytes_ += kResourceBytes + resource->ByteSizeLong() + options_.scope_name.size() + options_.scope_version.size();
  }
  return ResourceIndex(it->second);
}

AttributesIndex ProfilesBuilder::AddThread(const ThreadInfo& info) {
  std::vector<int32_t> set;
  auto keep = [&](int32_t attribute) {
    if (attribute != 0) set.push_back(attribute);
  };
  keep(StringAttribute("thread.name", info.thread_name));
  keep(StringAttribute("process.executable.name", info.executable_name));
  keep(StringAttribute("process.executable.path", info.executable_path));
  if (info.pid) keep(IntAttribute("process.pid", info.pid->value));
  if (info.tid) keep(IntAttribute("thread.id", info.tid->value));
  return AttributeSet(std::move(set));
}

// The conventions have no name for this attribute: the key is in our own name space.
AttributesIndex ProfilesBuilder::AddEnding(AttributesIndex thread, Ending ending) {
  if (ending == Ending::kComplete || ending == Ending::kKernelOnly) return thread;
  auto [it, added] = ending_sets_.try_emplace({thread, ending});
  if (added) {
    std::vector<int32_t> set = attribute_sets_[thread.value];
    set.push_back(StringAttribute("tributary.stack.ending", EndingName(ending)));
    it->second = AttributeSet(std::move(set));
  }
  return it->second;
}

// Keys of `others` take precedence: a sample must not have a key twice, nor a key that did not fit into the request.
AttributesIndex ProfilesBuilder::AddOwn(AttributesIndex others, const Attributes& own) {
  std::vector<int32_t> set = attribute_sets_[others.value];
  for (const Attribute& attribute : own) {
    if (attribute.key.starts_with(kOwnPrefix)) continue;
    const std::string key = ToText(attribute.key);
    const auto known = strings_.find(key);
    const bool has_key = known != strings_.end() && std::any_of(set.begin(), set.end(), [&](int32_t index) {
                           return dictionary_->attribute_table(index).key_strindex() == known->second;
                         });
    if (has_key || ((known == strings_.end() || is_1_7()) && NoRoomFor(key))) continue;
    const int32_t index = StringAttribute(*own_keys_.insert(key).first, attribute.value);
    if (index != 0) set.push_back(index);
  }
  return AttributeSet(std::move(set));
}

LinkIndex ProfilesBuilder::AddLink(std::string_view trace_id, std::string_view span_id) {
  auto is_id = [](std::string_view id, size_t bytes) {
    return id.size() == bytes && id.find_first_not_of('\0') != std::string_view::npos;
  };
  if (!is_id(trace_id, kTraceIdBytes) || !is_id(span_id, kSpanIdBytes)) return LinkIndex(0);
  std::string key(trace_id);
  auto [it, added] = links_.try_emplace(key.append(span_id), dictionary_->link_table_size());
  if (added) {
    bytes_ += kLinkBytes;
    auto* link = dictionary_->add_link_table();
    link->set_trace_id(std::string(trace_id));
    link->set_span_id(std::string(span_id));
  }
  return LinkIndex(it->second);
}

AttributesIndex ProfilesBuilder::AttributeSet(std::vector<int32_t> set) {
  auto [it, added] = attribute_set_ids_.try_emplace(set, static_cast<int32_t>(attribute_sets_.size()));
  if (added) {
    if (log_size_ != nullptr) log_size_->AddSet(set);
    attribute_sets_.push_back(std::move(set));
  }
  return AttributesIndex(it->second);
}

MappingIndex ProfilesBuilder::AddMapping(const ExecutableId& id, std::string_view path) {
  if (!id.known()) return MappingIndex(0);
  int32_t name = String(path);
  auto [it, added] = mappings_.try_emplace({id.ToString(), name}, dictionary_->mapping_table_size());
  if (added) {
    int32_t build_id = StringAttribute(BuildIdAttribute(id.kind()), ToHex(id.bytes()));
    bytes_ += kMappingBytes;
    auto* mapping = dictionary_->add_mapping_table();
    mapping->set_filename_strindex(name);
    if (build_id != 0) mapping->add_attribute_indices(build_id);
  }
  return MappingIndex(it->second);
}

FunctionIndex ProfilesBuilder::AddFunction(std::string_view name, std::string_view system_name, std::string_view file) {
  const int32_t name_index = String(name);
  if (name_index == 0) return FunctionIndex(0);
  const bool is_same = system_name.empty() || system_name == name;
  const int32_t system_index = is_same ? name_index : options_.linkage_names ? String(system_name) : 0;
  const int32_t file_index = String(file);
  auto [it, added] = functions_.try_emplace({name_index, system_index, file_index}, dictionary_->function_table_size());
  if (added) {
    bytes_ += kFunctionBytes;
    auto* function = dictionary_->add_function_table();
    function->set_name_strindex(name_index);
    function->set_system_name_strindex(system_index);
    function->set_filename_strindex(file_index);
  }
  return FunctionIndex(it->second);
}

LocationIndex ProfilesBuilder::AddLocation(FrameKind kind, MappingIndex mapping, uint64_t address,
                                           const std::vector<Line>& lines) {
  if (RowOf(kind).otlp_type.empty()) kind = FrameKind::kUnknown;
  LocationKey key{kind, mapping.value, address, {}};
  for (const Line& line : lines) {
    if (line.function.value != 0) key.lines.insert(key.lines.end(), {line.function.value, ClampToInt32(line.line)});
  }
  auto [it, added] = locations_.try_emplace(std::move(key), dictionary_->location_table_size());
  if (added) {
    // The conventions allow values other than their own. An unknown frame has a frame type too. Without it, a location
    // at address 0 would equal the table's zero element.
    int32_t frame_type = StringAttribute("profile.frame.type", RowOf(kind).otlp_type);
    const std::vector<int32_t>& key_lines = it->first.lines;
    bytes_ += kLocationBytes + key_lines.size() / 2 * kLineBytes;
    auto* location = dictionary_->add_location_table();
    location->set_mapping_index(mapping.value);
    location->set_address(address);
    for (size_t i = 0; i < key_lines.size(); i += 2) {
      auto* line = location->add_lines();
      line->set_function_index(key_lines[i]);
      line->set_line(key_lines[i + 1]);
    }
    if (frame_type != 0) location->add_attribute_indices(frame_type);
    if (mapping.value != 0) {
      auto* range = dictionary_->mutable_mapping_table(mapping.value);
      uint64_t limit = address == std::numeric_limits<uint64_t>::max() ? address : address + 1;
      range->set_memory_limit(std::max(range->memory_limit(), limit));
    }
    if (log_size_ != nullptr) log_size_->AddLocation();
  }
  return LocationIndex(it->second);
}

TypeIndex ProfilesBuilder::AddType(const SampleTypeInfo& type) {
  const auto index = std::find(types_.begin(), types_.end(), type) - types_.begin();
  if (static_cast<size_t>(index) == types_.size()) types_.push_back(type);
  return TypeIndex(static_cast<int32_t>(index));
}

StackIndex ProfilesBuilder::AddStack(std::span<const LocationIndex> leaf_first) {
  if (leaf_first.empty()) return StackIndex(0);
  leaf_first = leaf_first.first(std::min(leaf_first.size(), kStackFramesMax));
  std::vector<int32_t> indices;
  indices.reserve(leaf_first.size());
  for (LocationIndex location : leaf_first) indices.push_back(location.value);
  auto [it, added] = stacks_.try_emplace(std::move(indices), dictionary_->stack_table_size());
  if (added) {
    if (!is_1_7()) bytes_ += StackBytes(it->first.size());
    dictionary_->add_stack_table()->mutable_location_indices()->Add(it->first.begin(), it->first.end());
    if (log_size_ != nullptr) log_size_->AddStack();
  }
  return StackIndex(it->second);
}

void ProfilesBuilder::AddSample(const SampleInfo& sample) {
  uint32_t count = std::max<uint32_t>(sample.count, 1);
  sample_count_ += count;
  if (sample.type != kCpu) {
    const Shape shape = options_.aggregated ? Shape::kAggregate : Shape::kValues;
    Append(sample, {sample.type, shape, 0}, ClampToInt64(sample.value), 1);
    return;
  }
  auto append = [&](uint64_t period, uint32_t times) {
    const bool aggregate = options_.aggregated || times > kRepeatsMax;
    Append(sample, {sample.type, aggregate ? Shape::kAggregate : Shape::kTimestamps, ClampToInt64(period)}, times,
           times);
  };
  // A value that its count does not divide becomes two periods, one nanosecond apart, so that no nanosecond is lost.
  uint64_t period = sample.value / count;
  auto longer = static_cast<uint32_t>(sample.value % count);
  if (longer > 0) append(period + 1, longer);
  append(period, count - longer);
}

ProfilesBuilder::OpenProfile& ProfilesBuilder::FindProfile(ResourceIndex resource, const ProfileKey& key) {
  auto [it, added] = resources_[resource.value]->profiles.try_emplace(key);
  OpenProfile& open = it->second;
  if (added) {
    bytes_ += kProfileBytes;
    const bool cpu = key.type == kCpu;
    const SampleTypeInfo& type = types_[static_cast<size_t>(key.type.value)];
    open.profile = NewInArena<proto::Profile>(*request_);
    open.profile->mutable_sample_type()->set_type_strindex(cpu ? String("samples") : String(type.name));
    open.profile->mutable_sample_type()->set_unit_strindex(cpu ? String("count") : String(type.unit));
    if (cpu) {
      open.profile->mutable_period_type()->set_type_strindex(String("cpu"));
      open.profile->mutable_period_type()->set_unit_strindex(String("nanoseconds"));
      open.profile->set_period(key.period);
    }
  }
  return open;
}

void ProfilesBuilder::Append(const SampleInfo& sample, const ProfileKey& key, int64_t value, uint32_t times) {
  OpenProfile& open = FindProfile(sample.resource, key);
  auto time = static_cast<uint64_t>(std::max<int64_t>(sample.time.value, 0));
  open.first_ns = std::min(open.first_ns, time);
  open.last_ns = std::max(open.last_ns, time);

  auto [it, added] = open.samples.try_emplace({sample.stack.value, sample.attributes.value, sample.link.value},
                                              open.profile->samples_size());
  if (added) {
    auto* fresh = open.profile->add_samples();
    fresh->set_stack_index(sample.stack.value);
    fresh->set_link_index(sample.link.value);
    const std::vector<int32_t>& set = attribute_sets_[sample.attributes.value];
    fresh->mutable_attribute_indices()->Add(set.begin(), set.end());
    bytes_ += kSampleBytes + kIndexBytes * set.size();
    if (is_1_7() && open.stacks.insert(sample.stack.value).second) {
      bytes_ += StackBytes(static_cast<size_t>(dictionary_->stack_table(sample.stack.value).location_indices_size()));
    }
  } else if (is_1_7() && key.shape == Shape::kValues) {
    // Each time stamp becomes a sample.
    bytes_ += kSampleBytes + kIndexBytes * attribute_sets_[sample.attributes.value].size();
  }
  if (log_size_ != nullptr && (added || options_.size_of == SizeOf::kSampleLogs)) {
    bytes_ += log_size_->RecordBytes(sample.stack.value, sample.attributes.value);
  }
  auto* kept = open.profile->mutable_samples(it->second);
  switch (key.shape) {
    case Shape::kTimestamps:
      for (uint32_t i = 0; i < times; ++i) kept->add_timestamps_unix_nano(time);
      break;
    case Shape::kAggregate:
      if (kept->values_size() == 0) kept->add_values(0);
      kept->set_values(0, SaturatingSum(kept->values(0), value));
      break;
    case Shape::kValues:
      kept->add_timestamps_unix_nano(time);
      kept->add_values(value);
      break;
  }
  bytes_ += kPointBytes * (key.shape == Shape::kTimestamps ? times : 1);
}

ProfilesRequestPtr ProfilesBuilder::Finish() {
  for (const std::unique_ptr<OpenResource>& open : resources_) {
    if (open->profiles.empty()) continue;
    auto* resource_profiles = request_->add_resource_profiles();
    resource_profiles->set_allocated_resource(open->resource);
    auto* scope_profiles = resource_profiles->add_scope_profiles();
    scope_profiles->mutable_scope()->set_name(options_.scope_name);
    scope_profiles->mutable_scope()->set_version(options_.scope_version);
    for (auto& [key, profile] : open->profiles) {
      profile.profile->set_time_unix_nano(profile.first_ns);
      profile.profile->set_duration_nano(profile.last_ns - profile.first_ns + 1);
      scope_profiles->mutable_profiles()->AddAllocated(profile.profile);
    }
  }
  return std::move(request_);
}

}  // namespace tributary::otlp
