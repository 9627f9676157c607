#include "otlp/sample_table.h"

#include <algorithm>
#include <numeric>

#include "base/saturate.h"
#include "otlp/request_identity.h"

namespace tributary::otlp {
namespace {

// Field numbers of profiles.proto.
constexpr int kResourceProfiles = 1;
constexpr int kResource = 1, kScopeProfiles = 2;
constexpr int kScope = 1, kProfiles = 2;
constexpr int kSampleType = 1, kSamples = 2, kTime = 3, kDuration = 4, kPeriodType = 5, kPeriod = 6, kProfileId = 7;
constexpr int kType = 1, kUnit = 2;
constexpr int kStackIndex = 1, kAttributeIndices = 2, kLinkIndex = 3, kValues = 4, kTimestamps = 5;

constexpr size_t kProfileIdBytes = 16;

void AddType(int field, int32_t type, int32_t unit, WireBuffer* out) {
  WireBuffer fields;
  fields.AddVarint(kType, static_cast<uint64_t>(type));
  fields.AddVarint(kUnit, static_cast<uint64_t>(unit));
  out->AddBytes(field, fields.bytes());
}

}  // namespace

std::pair<int32_t, bool> SampleTable::FindProfile(const ProfileKey& key) {
  if (last_profile_ >= 0 && profiles_[Place(last_profile_)].key == key) return {last_profile_, false};
  const auto [it, added] = profile_numbers_.try_emplace(key, static_cast<int32_t>(profiles_.size()));
  if (added) profiles_.push_back({.key = key, .types = {}});
  last_profile_ = it->second;
  return {it->second, added};
}

bool SampleTable::Add(const Entry& entry, uint64_t time_ns, int64_t value, uint32_t times) {
  Profile& profile = profiles_[Place(entry.profile)];
  profile.first_ns = std::min(profile.first_ns, time_ns);
  profile.last_ns = std::max(profile.last_ns, time_ns);
  const auto number = static_cast<uint32_t>(rows_.size());
  const auto [it, added] =
      row_numbers_.try_emplace({entry.profile, entry.stack.value, entry.attributes.value, entry.link.value}, number);
  if (added) {
    (profile.first_row == kNone ? profile.first_row : rows_[profile.last_row].next) = number;
    profile.last_row = number;
    rows_.push_back({entry.stack.value, entry.attributes.value, entry.link.value});
  }
  Row& row = rows_[it->second];
  switch (profile.key.shape) {
    case Shape::kTimestamps:
      for (uint32_t i = 0; i < times; ++i) AddPoint(time_ns, 0, &row);
      break;
    case Shape::kAggregate:
      row.value = SaturatingSum(row.value, value);
      break;
    case Shape::kValues:
      AddPoint(time_ns, value, &row);
      break;
  }
  return added;
}

void SampleTable::AddPoint(uint64_t time_ns, int64_t value, Row* row) {
  const auto number = static_cast<uint32_t>(points_.size());
  (row->first_point == kNone ? row->first_point : points_[row->last_point].next) = number;
  row->last_point = number;
  ++row->points;
  points_.push_back({time_ns, value, kNone});
}

std::string SampleTable::EncodeSet(std::span<const int32_t> set) {
  if (set.empty()) return {};
  WireBuffer list, field;
  for (const int32_t index : set) {
    list.EndAt(WireBuffer::PutVarint(static_cast<uint64_t>(index), list.Reserve(WireBuffer::kVarintBytesMax)));
  }
  field.AddBytes(kAttributeIndices, list.bytes());
  return field.Take();
}

// A point counts one byte more than it has. So there is room for lengths that need more than one byte because the entry
// has many points.
size_t SampleTable::EntryBytes(const Entry& entry, std::string_view set) {
  constexpr size_t kListHeaders = 4, kOtherFieldsMax = 64;
  const size_t of_indices = 2 + WireBuffer::VarintSize(static_cast<uint64_t>(entry.stack.value)) +
                            WireBuffer::VarintSize(static_cast<uint64_t>(entry.link.value));
  return 1 + WireBuffer::VarintSize(kOtherFieldsMax + set.size()) + of_indices + set.size() + kListHeaders;
}

size_t SampleTable::PointBytes(Shape shape, int64_t value) {
  const size_t of_time = shape == Shape::kAggregate ? 0 : sizeof(uint64_t);
  const size_t of_value = shape == Shape::kTimestamps ? 0 : WireBuffer::VarintSize(static_cast<uint64_t>(value));
  return of_time + of_value + 1;
}

// Returns the number of samples that the entry stands for.
uint64_t SampleTable::WriteRow(const Profile& profile, const Row& row, std::string_view attributes, WireBuffer* out,
                               WireBuffer* digest) const {
  const Shape shape = profile.key.shape;
  size_t value_bytes = 0;
  if (shape == Shape::kAggregate) value_bytes = WireBuffer::VarintSize(static_cast<uint64_t>(row.value));
  if (shape == Shape::kValues) {
    for (uint32_t i = row.first_point; i != kNone; i = points_[i].next) {
      value_bytes += WireBuffer::VarintSize(static_cast<uint64_t>(points_[i].value));
    }
  }
  const size_t time_bytes = row.points * sizeof(uint64_t);
  const auto index_bytes = [](int32_t index) {
    return index == 0 ? 0 : 1 + WireBuffer::VarintSize(static_cast<uint64_t>(index));
  };
  const auto list_bytes = [](size_t bytes) { return bytes == 0 ? 0 : WireBuffer::SizeOfLengthField(bytes); };
  const size_t size = index_bytes(row.stack) + attributes.size() + index_bytes(row.link) + list_bytes(value_bytes) +
                      list_bytes(time_bytes);
  uint8_t* to = out->Reserve(1 + WireBuffer::kLengthBytesMax + size);
  const auto put_index = [&to](int field, int32_t index) {
    if (index == 0) return;
    *to++ = WireBuffer::VarintTag(field);
    to = WireBuffer::PutVarint(static_cast<uint64_t>(index), to);
  };
  const auto put_list = [&to](int field, size_t bytes) {
    *to++ = WireBuffer::LengthTag(field);
    to = WireBuffer::PutVarint(bytes, to);
  };
  put_list(kSamples, size);
  put_index(kStackIndex, row.stack);
  to = std::copy(attributes.begin(), attributes.end(), to);
  put_index(kLinkIndex, row.link);
  if (value_bytes > 0) put_list(kValues, value_bytes);
  if (shape == Shape::kAggregate) to = WireBuffer::PutVarint(static_cast<uint64_t>(row.value), to);
  if (shape == Shape::kValues) {
    for (uint32_t i = row.first_point; i != kNone; i = points_[i].next) {
      to = WireBuffer::PutVarint(static_cast<uint64_t>(points_[i].value), to);
    }
  }
  if (time_bytes > 0) put_list(kTimestamps, time_bytes);
  for (uint32_t i = row.first_point; i != kNone; i = points_[i].next)
    to = WireBuffer::PutFixed64(points_[i].time_ns, to);
  out->EndAt(to);

  const bool is_count = profile.types.period_type != 0;
  const uint64_t samples = row.points > 0 ? row.points : is_count ? static_cast<uint64_t>(row.value) : 1;
  const uint64_t time = row.points > 0 ? points_[row.first_point].time_ns : profile.first_ns;
  int64_t value = profile.key.period;
  if (shape == Shape::kAggregate) value = row.value;
  if (shape == Shape::kValues) value = points_[row.first_point].value;
  uint8_t* entry = digest->Reserve(3 * sizeof(uint64_t));
  for (const uint64_t number : {samples, time, static_cast<uint64_t>(value)}) {
    entry = WireBuffer::PutFixed64(number, entry);
  }
  digest->EndAt(entry);
  return samples;
}

uint64_t SampleTable::WriteRows(const Profile& profile, const Encoded& encoded, WireBuffer* out,
                                WireBuffer* digest) const {
  uint64_t samples = 0;
  for (uint32_t i = profile.first_row; i != kNone; i = rows_[i].next) {
    samples += WriteRow(profile, rows_[i], encoded.attribute_sets[Place(rows_[i].attributes)], out, digest);
  }
  return samples;
}

void SampleTable::Clear() {
  profiles_.clear();
  last_profile_ = -1;
  points_.clear();
  profile_numbers_.clear();
  // The next request has about as many samples. A hash table that grows is copied each time.
  row_numbers_.clear();
  row_numbers_.reserve(rows_.size());
  rows_.clear();
}

SampleTable::Written SampleTable::Write(const Encoded& encoded, size_t bytes) const {
  std::vector<uint32_t> order(profiles_.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [this](uint32_t a, uint32_t b) { return profiles_[a].key < profiles_[b].key; });
  Written written;
  WireBuffer out, scope, fields, digest;
  out.Reserve(bytes);
  for (size_t i = 0; i < order.size();) {
    const ResourceIndex resource = profiles_[order[i]].key.resource;
    const size_t first_id = written.profile_ids.size();
    scope.clear();
    scope.AddBytes(kScope, encoded.scope);
    for (; i < order.size() && profiles_[order[i]].key.resource == resource; ++i) {
      const Profile& profile = profiles_[order[i]];
      const bool has_period = profile.types.period_type != 0;
      fields.clear();
      AddType(kSampleType, profile.types.type, profile.types.unit, &fields);
      const uint64_t samples = WriteRows(profile, encoded, &fields, &digest);
      fields.AddFixed64(kTime, profile.first_ns);
      fields.AddVarint(kDuration, profile.last_ns - profile.first_ns + 1);
      if (has_period) {
        AddType(kPeriodType, profile.types.period_type, profile.types.period_unit, &fields);
        fields.AddVarint(kPeriod, static_cast<uint64_t>(profile.key.period));
      }
      const size_t id = fields.AddBytes(kProfileId, std::string(kProfileIdBytes, '\0'));
      written.profile_ids.emplace_back(scope.AddBytes(kProfiles, fields.bytes()) + id, samples);
    }
    fields.clear();
    fields.AddBytes(kResource, encoded.resources[Place(resource.value)]);
    const size_t scope_at = fields.AddBytes(kScopeProfiles, scope.bytes());
    const size_t at = out.AddBytes(kResourceProfiles, fields.bytes()) + scope_at;
    for (size_t id = first_id; id < written.profile_ids.size(); ++id) written.profile_ids[id].first += at;
  }
  written.content = ContentDigest(digest.bytes());
  written.resource_profiles = out.Take();
  return written;
}

}  // namespace tributary::otlp
