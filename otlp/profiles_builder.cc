#include "otlp/profiles_builder.h"

#include <algorithm>
#include <limits>

#include "base/hex.h"
#include "base/saturate.h"
#include "base/status.h"
#include "base/utf8.h"
#include "otlp/attribute_values.h"
#include "otlp/built_request.h"
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

size_t Place(AttributesIndex index) { return static_cast<size_t>(index.value); }

// Returns ToText(text). `buffer` owns it if it is not the text itself.
std::string_view TextOf(std::string_view text, std::string* buffer) {
  if (text.size() <= ProfilesBuilder::kStringBytesMax && IsUtf8(text)) return text;
  return *buffer = ToText(text);
}

// Returns the first kind with the OTLP type of `kind`, kUnknown if `kind` has none. Locations that differ only in kinds
// of one type would be equal.
FrameKind FirstOfOtlpType(FrameKind kind) {
  const std::string_view type = RowOf(kind).otlp_type;
  if (type.empty()) return FrameKind::kUnknown;
  const auto first = std::find_if(kFrameKinds.begin(), kFrameKinds.end(),
                                  [type](const FrameKindRow& row) { return row.otlp_type == type; });
  return static_cast<FrameKind>(first - kFrameKinds.begin());
}

}  // namespace

ProfilesBuilder::ProfilesBuilder(Options options, SampleTable samples)
    : options_(std::move(options)),
      is_exact_(options_.exact_bytes && options_.size_of == SizeOf::kProfiles &&
                options_.generation == Generation::kNewest),
      request_(NewArenaRequest()),
      dictionary_(request_->mutable_dictionary()),
      bytes_(kRequestBytes),
      samples_(std::move(samples)) {
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
  encoded_sets_.emplace_back();
  if (log_size_ != nullptr) log_size_->AddSet({});
  attribute_set_ids_.emplace(std::vector<int32_t>(), 0);
  const SampleTypeRow& cpu = *FindSampleType(SampleType::kCpu);
  TRIBUTARY_CHECK(AddType({std::string(cpu.name), std::string(cpu.unit)}) == kCpu);
}

ProfilesBuilder::~ProfilesBuilder() = default;

// Adds the bytes of an entry of a table. `bound`: in the layout that needs the most.
template <typename Message>
void ProfilesBuilder::CountEntry(const Message& entry, size_t bound) {
  bytes_ += is_exact_ ? WireBuffer::SizeOfLengthField(entry.ByteSizeLong()) : bound;
}

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
  int32_t index = dictionary_->attribute_table_size();
  auto* attribute = dictionary_->add_attribute_table();
  attribute->set_key_strindex(String(key));
  attribute->mutable_value()->mutable_string_value()->assign(utf8);
  CountEntry(*attribute, kAttributeBytes + KeyBytes(key) + utf8.size());
  string_attributes_.emplace(std::pair<std::string_view, std::string_view>(key, attribute->value().string_value()),
                             index);
  return index;
}

int32_t ProfilesBuilder::IntAttribute(std::string_view key, int64_t value) {
  auto [it, added] = int_attributes_.try_emplace({key, value}, dictionary_->attribute_table_size());
  if (added) {
    auto* attribute = dictionary_->add_attribute_table();
    attribute->set_key_strindex(String(key));
    attribute->mutable_value()->set_int_value(value);
    CountEntry(*attribute, kAttributeBytes + KeyBytes(key));
  }
  return it->second;
}

EncodedResource ProfilesBuilder::EncodeResource(const Attributes& attributes) {
  opentelemetry::proto::resource::v1::Resource resource;
  SetResource(attributes, &resource);
  return {resource.SerializeAsString()};
}

ResourceIndex ProfilesBuilder::AddResource(const Attributes& attributes) {
  return AddEncodedResource(EncodeResource(attributes));
}

ResourceIndex ProfilesBuilder::AddEncodedResource(const EncodedResource& resource) {
  const auto known = resource_ids_.find(resource.bytes);
  if (known != resource_ids_.end()) return ResourceIndex(known->second);
  const auto index = static_cast<int32_t>(resources_.size());
  resource_ids_.emplace(resources_.emplace_back(resource.bytes), index);
  bytes_ += kResourceBytes + resource.bytes.size() + options_.scope_name.size() + options_.scope_version.size();
  return ResourceIndex(index);
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
    std::vector<int32_t> set = attribute_sets_[Place(thread)];
    set.push_back(StringAttribute("tributary.stack.ending", EndingName(ending)));
    it->second = AttributeSet(std::move(set));
  }
  return it->second;
}

// Keys of `others` take precedence: a sample must not have a key twice, nor a key that did not fit into the request.
AttributesIndex ProfilesBuilder::AddOwn(AttributesIndex others, const Attributes& own) {
  std::vector<int32_t> set = attribute_sets_[Place(others)];
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
    encoded_sets_.push_back(SampleTable::EncodeSet(set));
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
    auto* function = dictionary_->add_function_table();
    function->set_name_strindex(name_index);
    function->set_system_name_strindex(system_index);
    function->set_filename_strindex(file_index);
    CountEntry(*function, kFunctionBytes);
  }
  return FunctionIndex(it->second);
}

LocationIndex ProfilesBuilder::AddLocation(FrameKind kind, MappingIndex mapping, uint64_t address,
                                           const std::vector<Line>& lines) {
  LocationKey key{FirstOfOtlpType(kind), mapping.value, address, {}};
  for (const Line& line : lines) {
    if (line.function.value != 0) key.lines.insert(key.lines.end(), {line.function.value, ClampToInt32(line.line)});
  }
  auto [it, added] = locations_.try_emplace(std::move(key), dictionary_->location_table_size());
  if (added) {
    // The conventions allow values other than their own. An unknown frame has a frame type too. Without it, a location
    // at address 0 would equal the table's zero element.
    int32_t frame_type = StringAttribute("profile.frame.type", RowOf(it->first.kind).otlp_type);
    const std::vector<int32_t>& key_lines = it->first.lines;
    auto* location = dictionary_->add_location_table();
    location->set_mapping_index(mapping.value);
    location->set_address(address);
    for (size_t i = 0; i < key_lines.size(); i += 2) {
      auto* line = location->add_lines();
      line->set_function_index(key_lines[i]);
      line->set_line(key_lines[i + 1]);
    }
    if (frame_type != 0) location->add_attribute_indices(frame_type);
    CountEntry(*location, kLocationBytes + key_lines.size() / 2 * kLineBytes);
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
    auto* stack = dictionary_->add_stack_table();
    stack->mutable_location_indices()->Add(it->first.begin(), it->first.end());
    if (!is_1_7()) CountEntry(*stack, StackBytes(it->first.size()));
    if (log_size_ != nullptr) log_size_->AddStack();
  }
  return StackIndex(it->second);
}

void ProfilesBuilder::AddSample(const SampleInfo& sample) {
  uint32_t count = std::max<uint32_t>(sample.count, 1);
  sample_count_ += count;
  if (sample.type != kCpu) {
    const Shape shape = options_.aggregated ? Shape::kAggregate : Shape::kValues;
    Append(sample, shape, 0, ClampToInt64(sample.value), 1);
    return;
  }
  auto append = [&](uint64_t period, uint32_t times) {
    const bool aggregate = options_.aggregated || times > kRepeatsMax;
    Append(sample, aggregate ? Shape::kAggregate : Shape::kTimestamps, ClampToInt64(period), times, times);
  };
  // A value that its count does not divide becomes two periods, one nanosecond apart, so that no nanosecond is lost.
  uint64_t period = sample.value / count;
  auto longer = static_cast<uint32_t>(sample.value % count);
  if (longer > 0) append(period + 1, longer);
  append(period, count - longer);
}

int32_t ProfilesBuilder::FindProfile(const SampleTable::ProfileKey& key) {
  const auto [profile, added] = samples_.FindProfile(key);
  if (added) {
    bytes_ += kProfileBytes;
    const SampleTypeInfo& type = types_[static_cast<size_t>(key.type.value)];
    SampleTable::ProfileTypes types;
    if (key.type == kCpu) {
      types = {.type = String("samples"),
               .unit = String("count"),
               .period_type = String("cpu"),
               .period_unit = String("nanoseconds")};
    } else {
      types = {.type = String(type.name), .unit = String(type.unit)};
    }
    samples_.SetTypes(profile, types);
  }
  return profile;
}

void ProfilesBuilder::Append(const SampleInfo& sample, Shape shape, int64_t period, int64_t value, uint32_t times) {
  const SampleTable::Entry entry{.profile = FindProfile({sample.resource, sample.type, shape, period}),
                                 .stack = sample.stack,
                                 .attributes = sample.attributes,
                                 .link = sample.link};
  const auto time = static_cast<uint64_t>(std::max<int64_t>(sample.time.value, 0));
  const bool is_new = samples_.Add(entry, time, value, times);
  CountSample(entry, shape, is_new, value, times);
}

// Adds the bytes of a new entry, or of one more point of an entry.
void ProfilesBuilder::CountSample(const SampleTable::Entry& entry, Shape shape, bool is_new, int64_t value,
                                  uint32_t times) {
  const uint32_t points = shape == Shape::kTimestamps ? times : 1;
  if (is_exact_) {
    if (is_new) bytes_ += SampleTable::EntryBytes(entry, encoded_sets_[Place(entry.attributes)]);
    bytes_ += SampleTable::PointBytes(shape, value) * points;
    return;
  }
  const size_t set_size = attribute_sets_[Place(entry.attributes)].size();
  if (is_new) {
    bytes_ += kSampleBytes + kIndexBytes * set_size;
    if (is_1_7() && profile_stacks_.insert({entry.profile, entry.stack.value}).second) {
      bytes_ += StackBytes(static_cast<size_t>(dictionary_->stack_table(entry.stack.value).location_indices_size()));
    }
  } else if (is_1_7() && shape == Shape::kValues) {
    // Each time stamp becomes a sample.
    bytes_ += kSampleBytes + kIndexBytes * set_size;
  }
  if (log_size_ != nullptr && (is_new || options_.size_of == SizeOf::kSampleLogs)) {
    bytes_ += log_size_->RecordBytes(entry.stack.value, entry.attributes.value);
  }
  bytes_ += kPointBytes * points;
}

BuiltRequest ProfilesBuilder::FinishBuilt() {
  opentelemetry::proto::common::v1::InstrumentationScope scope;
  scope.set_name(options_.scope_name);
  scope.set_version(options_.scope_version);
  const std::string scope_bytes = scope.SerializeAsString();
  SampleTable::Written samples =
      samples_.Write({.resources = resources_, .attribute_sets = encoded_sets_, .scope = scope_bytes}, bytes_);
  return {std::move(request_), std::move(samples.resource_profiles), std::move(samples.profile_ids), samples.content};
}

SampleTable ProfilesBuilder::ReleaseTable() {
  samples_.Clear();
  return std::move(samples_);
}

ProfilesRequestPtr ProfilesBuilder::Finish() { return FinishBuilt().TakeMessage(); }

}  // namespace tributary::otlp
