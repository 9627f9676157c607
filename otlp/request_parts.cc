#include "otlp/request_parts.h"

#include <cstddef>

#include "absl/container/flat_hash_map.h"
#include "otlp/string_indices.h"
#include "otlp/table_entries.h"
#include "schemas/otlp/profiles_service.pb.h"

namespace tributary::otlp {
namespace {

namespace common = ::opentelemetry::proto::common::v1;
namespace proto = ::opentelemetry::proto::profiles::v1development;

const std::string& TextOf(const ProfilesRequest& request, const proto::ResourceProfiles& resource,
                          std::string_view key) {
  static const std::string kNone;
  for (const common::KeyValue& attribute : resource.resource().attributes()) {
    const std::string& name =
        attribute.key_strindex() != 0 ? StringAt(request, attribute.key_strindex()) : attribute.key();
    if (name != key) continue;
    const common::AnyValue& value = attribute.value();
    return value.value_case() == common::AnyValue::kStringValueStrindex
               ? StringAt(request, value.string_value_strindex())
               : value.string_value();
  }
  return kNone;
}

// Copies messages to another request. An entry of a table is copied when the first message that refers to it is copied.
class Copier {
 public:
  Copier(const proto::ProfilesDictionary& from, proto::ProfilesDictionary* to) : from_(from), to_(to) {
    to->add_mapping_table();
    to->add_location_table();
    to->add_function_table();
    to->add_link_table();
    to->add_string_table();
    to->add_attribute_table();
    to->add_stack_table();
  }

  // Changes all indices in a copy of a ResourceProfiles.
  void Fix(proto::ResourceProfiles* resource) {
    ChangeStrings(resource, [this](int index) { return String(index); });
    for (proto::ScopeProfiles& scope : *resource->mutable_scope_profiles()) {
      for (proto::Profile& profile : *scope.mutable_profiles()) Fix(&profile);
    }
  }

 private:
  // The new index of each entry that was copied.
  using NewIndices = absl::flat_hash_map<int, int>;

  // Returns the new index of an entry. `fix` changes the indices in the entry. It must not copy entries of this table.
  template <typename Table, typename Fixer>
  static int Copy(const Table& from, Table* to, int index, NewIndices* indices, Fixer fix) {
    if (index <= 0 || index >= from.size()) return 0;
    const auto [place, is_new] = indices->try_emplace(index, to->size());
    const int copy = place->second;
    if (is_new) {
      *to->Add() = from[index];
      fix(&(*to)[copy]);
    }
    return copy;
  }

  int String(int index) {
    return Copy(from_.string_table(), to_->mutable_string_table(), index, &strings_, [](std::string*) {});
  }
  int Attribute(int index) {
    return Copy(from_.attribute_table(), to_->mutable_attribute_table(), index, &attributes_,
                [this](proto::KeyValueAndUnit* attribute) {
                  attribute->set_key_strindex(String(attribute->key_strindex()));
                  attribute->set_unit_strindex(String(attribute->unit_strindex()));
                  ChangeStrings(attribute->mutable_value(), [this](int text) { return String(text); });
                });
  }
  int Function(int index) {
    return Copy(from_.function_table(), to_->mutable_function_table(), index, &functions_,
                [this](proto::Function* function) {
                  function->set_name_strindex(String(function->name_strindex()));
                  function->set_system_name_strindex(String(function->system_name_strindex()));
                  function->set_filename_strindex(String(function->filename_strindex()));
                });
  }
  int Mapping(int index) {
    return Copy(from_.mapping_table(), to_->mutable_mapping_table(), index, &mappings_,
                [this](proto::Mapping* mapping) {
                  mapping->set_filename_strindex(String(mapping->filename_strindex()));
                  FixAttributes(mapping->mutable_attribute_indices());
                });
  }
  int Location(int index) {
    return Copy(from_.location_table(), to_->mutable_location_table(), index, &locations_,
                [this](proto::Location* location) {
                  location->set_mapping_index(Mapping(location->mapping_index()));
                  for (proto::Line& line : *location->mutable_lines()) {
                    line.set_function_index(Function(line.function_index()));
                  }
                  FixAttributes(location->mutable_attribute_indices());
                });
  }
  int Stack(int index) {
    return Copy(from_.stack_table(), to_->mutable_stack_table(), index, &stacks_, [this](proto::Stack* stack) {
      for (int& location : *stack->mutable_location_indices()) location = Location(location);
    });
  }
  int Link(int index) {
    return Copy(from_.link_table(), to_->mutable_link_table(), index, &links_, [](proto::Link*) {});
  }

  template <typename Indices>
  void FixAttributes(Indices* indices) {
    for (int& index : *indices) index = Attribute(index);
  }
  void Fix(proto::Profile* profile) {
    FixAttributes(profile->mutable_attribute_indices());
    for (proto::Sample& sample : *profile->mutable_samples()) {
      sample.set_stack_index(Stack(sample.stack_index()));
      sample.set_link_index(Link(sample.link_index()));
      FixAttributes(sample.mutable_attribute_indices());
    }
  }

  const proto::ProfilesDictionary& from_;
  proto::ProfilesDictionary* const to_;
  NewIndices strings_, attributes_, functions_, mappings_, locations_, stacks_, links_;
};

}  // namespace

std::vector<RequestPart> PartsOf(const ProfilesRequest& request, std::string_view key) {
  std::vector<RequestPart> parts;
  absl::flat_hash_map<std::string, size_t> places;
  for (int i = 0; i < request.resource_profiles_size(); ++i) {
    const std::string& text = TextOf(request, request.resource_profiles(i), key);
    const auto [place, is_new] = places.try_emplace(text, parts.size());
    if (is_new) parts.push_back({.text = text, .resources = {}});
    parts[place->second].resources.push_back(i);
  }
  return parts;
}

ProfilesRequestPtr CopyPart(const ProfilesRequest& request, std::span<const int> resources) {
  ProfilesRequestPtr part(new ProfilesRequest);
  Copier copier(request.dictionary(), part->mutable_dictionary());
  for (const int resource : resources) {
    proto::ResourceProfiles* copy = part->add_resource_profiles();
    *copy = request.resource_profiles(resource);
    copier.Fix(copy);
  }
  return part;
}

}  // namespace tributary::otlp
