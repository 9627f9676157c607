#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

#include "test/otlp/validation.h"

namespace tributary::otlp {
namespace {

enum class Shape { kNothing, kTimestamps, kValues, kAggregate };

Shape ShapeOf(const proto::Sample& sample) {
  if (sample.timestamps_unix_nano_size() > 0) return sample.values_size() > 0 ? Shape::kValues : Shape::kTimestamps;
  return sample.values_size() > 0 ? Shape::kAggregate : Shape::kNothing;
}

void CheckTimes(const proto::Profile& profile, const proto::Sample& sample, const std::string& where, Validation& v) {
  uint64_t start = profile.time_unix_nano();
  for (uint64_t time : sample.timestamps_unix_nano()) {
    if (time < start) {
      v.Add("sample.timestamp_before_start", where, fmt::format("{} before {}", time, start));
    } else if (time - start >= profile.duration_nano()) {
      v.Add("sample.timestamp_after_end", where, fmt::format("{} in {} + {}", time, start, profile.duration_nano()));
    }
  }
}

void CheckSample(const proto::Profile& profile, const proto::Sample& sample, const std::string& where, Validation& v) {
  v.Refer(Table::kStack, sample.stack_index(), "sample.stack_index", where);
  v.Refer(Table::kLink, sample.link_index(), "sample.link_index", where);
  CheckAttributeIndices(sample.attribute_indices(), "sample", where, v);
  int values = sample.values_size(), times = sample.timestamps_unix_nano_size();
  switch (ShapeOf(sample)) {
    case Shape::kNothing:
      v.Add("sample.no_measure", where, "neither values nor time stamps");
      break;
    case Shape::kAggregate:
      if (values > 1) v.Add("sample.values_without_timestamps", where, fmt::format("{} values", values));
      break;
    case Shape::kValues:
      if (values != times) {
        v.Add("sample.lengths_differ", where, fmt::format("{} values, {} time stamps", values, times));
      }
      break;
    case Shape::kTimestamps:
      break;
  }
  CheckTimes(profile, sample, where, v);
}

void CheckSamples(const proto::Profile& profile, const std::string& where, Validation& v) {
  if (profile.samples().empty()) v.Add("profile.no_samples", where, "no samples");
  std::set<std::tuple<int32_t, std::vector<int32_t>, int32_t>> identities;
  std::optional<Shape> shape;
  bool mixed = false;
  for (int i = 0; i < profile.samples_size(); ++i) {
    const proto::Sample& sample = profile.samples(i);
    std::string at = fmt::format("{} sample {}", where, i);
    CheckSample(profile, sample, at, v);
    std::vector<int32_t> attributes(sample.attribute_indices().begin(), sample.attribute_indices().end());
    std::sort(attributes.begin(), attributes.end());
    if (!identities.emplace(sample.stack_index(), std::move(attributes), sample.link_index()).second) {
      v.Add("sample.not_merged", at, "same stack, attributes and link as an earlier sample");
    }
    if (shape && *shape != ShapeOf(sample) && !mixed) {
      v.Add("profile.mixed_shapes", at, "its samples' measures differ in shape");
      mixed = true;
    }
    shape = ShapeOf(sample);
  }
}

void CheckProfile(const proto::Profile& profile, const std::string& where, Validation& v) {
  const proto::ValueType& type = profile.sample_type();
  v.Refer(Table::kString, type.type_strindex(), "profile.sample_type.type_strindex", where);
  v.Refer(Table::kString, type.unit_strindex(), "profile.sample_type.unit_strindex", where);
  if (type.type_strindex() == 0) v.Add("profile.no_sample_type", where, "its values have no type");
  const proto::ValueType& period = profile.period_type();
  v.Refer(Table::kString, period.type_strindex(), "profile.period_type.type_strindex", where);
  v.Refer(Table::kString, period.unit_strindex(), "profile.period_type.unit_strindex", where);
  if (profile.period() != 0 && period.type_strindex() == 0) {
    v.Add("profile.period_without_type", where, fmt::format("period {} of nothing", profile.period()));
  }
  CheckAttributeIndices(profile.attribute_indices(), "profile", where, v);

  const std::string& id = profile.profile_id();
  if (!id.empty() && id.size() != 16) v.Add("profile.id_length", where, fmt::format("{} bytes", id.size()));
  if (!id.empty() && id.find_first_not_of('\0') == id.npos) v.Add("profile.id_zero", where, "all bytes are zero");
  if (profile.original_payload_format().empty() && !profile.original_payload().empty()) {
    v.Add("profile.payload_without_format", where, fmt::format("{} bytes", profile.original_payload().size()));
  }
  if (!profile.original_payload_format().empty() && profile.original_payload().empty()) {
    v.Add("profile.format_without_payload", where, profile.original_payload_format());
  }
  CheckSamples(profile, where, v);
}

std::string ContainerId(const proto::ResourceProfiles& resource, const Validation& v) {
  for (const common::KeyValue& attribute : resource.resource().attributes()) {
    const std::string& key = attribute.key_strindex() != 0 ? v.String(attribute.key_strindex()) : attribute.key();
    if (key != "container.id") continue;
    const common::AnyValue& value = attribute.value();
    return value.has_string_value_strindex() ? v.String(value.string_value_strindex()) : value.string_value();
  }
  return "";
}

}  // namespace

void CheckResources(Validation& v) {
  const ProfilesRequest& request = v.request();
  if (request.resource_profiles().empty()) v.Add("request.no_resources", "", "nothing in it");
  std::set<std::string> resources, containers;
  for (int r = 0; r < request.resource_profiles_size(); ++r) {
    const proto::ResourceProfiles& resource = request.resource_profiles(r);
    std::string where = fmt::format("resource {}", r);
    CheckAttributes(resource.resource().attributes(), "resource", where, v);
    if (!resources.insert(resource.resource().SerializeAsString()).second) {
      v.Add("resource.repeated", where, "same resource as an earlier one");
    }
    std::string container = ContainerId(resource, v);
    if (!container.empty() && !containers.insert(container).second) {
      v.Add("resource.container_repeated", where, container);
    }
    if (resource.scope_profiles().empty()) v.Add("resource.no_scopes", where, "no scope");
    for (int s = 0; s < resource.scope_profiles_size(); ++s) {
      const proto::ScopeProfiles& scope = resource.scope_profiles(s);
      std::string in_scope = fmt::format("{} scope {}", where, s);
      CheckAttributes(scope.scope().attributes(), "scope", in_scope, v);
      if (scope.profiles().empty()) v.Add("scope.no_profiles", in_scope, "no profile");
      for (int p = 0; p < scope.profiles_size(); ++p) {
        CheckProfile(scope.profiles(p), fmt::format("{} profile {}", in_scope, p), v);
      }
    }
  }
}

}  // namespace tributary::otlp
