#include "otlp/table_order.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "otlp/string_indices.h"
#include "schemas/otlp/profiles_service.pb.h"

namespace tributary::otlp {
namespace {

namespace proto = ::opentelemetry::proto::profiles::v1development;

// Old indices in their new order, or the new index of each old one. Element 0 stays 0.
using Indices = std::vector<int>;

Indices InOldOrder(int size) {
  Indices order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

// Sorts all elements but the first.
template <typename Less>
void SortRest(Indices* order, Less less) {
  if (!order->empty()) std::sort(order->begin() + 1, order->end(), less);
}

// Collects indices of a table in the order in which they are first placed.
class Placement {
 public:
  explicit Placement(int size) : has_(static_cast<size_t>(size)) {}

  // Does nothing if the index was placed before, or is out of range.
  void Place(int index) {
    if (index < 0 || static_cast<size_t>(index) >= has_.size() || Has(index)) return;
    has_[static_cast<size_t>(index)] = true;
    order_.push_back(index);
  }
  bool Has(int index) const { return has_[static_cast<size_t>(index)]; }
  const Indices& order() const { return order_; }

 private:
  std::vector<bool> has_;
  Indices order_;
};

// Moves the elements of a table into this order. Returns the new index of each old one.
template <typename Table>
Indices Reorder(const Indices& order, Table* table) {
  std::vector<typename Table::value_type*> old(table->pointer_begin(), table->pointer_end());
  Indices new_indices(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    table->pointer_begin()[static_cast<int>(i)] = old[static_cast<size_t>(order[i])];
    new_indices[static_cast<size_t>(order[i])] = static_cast<int>(i);
  }
  return new_indices;
}

int NewIndex(const Indices& new_indices, int old) {
  return old > 0 && static_cast<size_t>(old) < new_indices.size() ? new_indices[static_cast<size_t>(old)] : 0;
}

void FixStrings(const Indices& new_strings, ProfilesRequest* request) {
  const auto change = [&](int old) { return NewIndex(new_strings, old); };
  proto::ProfilesDictionary* dictionary = request->mutable_dictionary();
  for (proto::Mapping& mapping : *dictionary->mutable_mapping_table()) {
    mapping.set_filename_strindex(change(mapping.filename_strindex()));
  }
  for (proto::Function& function : *dictionary->mutable_function_table()) {
    function.set_name_strindex(change(function.name_strindex()));
    function.set_system_name_strindex(change(function.system_name_strindex()));
    function.set_filename_strindex(change(function.filename_strindex()));
  }
  for (proto::KeyValueAndUnit& attribute : *dictionary->mutable_attribute_table()) {
    attribute.set_key_strindex(change(attribute.key_strindex()));
    attribute.set_unit_strindex(change(attribute.unit_strindex()));
    if (attribute.has_value()) ChangeStrings(attribute.mutable_value(), change);
  }
  for (proto::ResourceProfiles& resource : *request->mutable_resource_profiles()) ChangeStrings(&resource, change);
}

Indices OrderLocations(proto::ProfilesDictionary* dictionary) {
  auto* locations = dictionary->mutable_location_table();
  Indices order = InOldOrder(locations->size());
  SortRest(&order, [&](int a, int b) {
    const proto::Location &left = (*locations)[a], &right = (*locations)[b];
    return std::tuple(left.mapping_index(), left.address(), a) < std::tuple(right.mapping_index(), right.address(), b);
  });
  return Reorder(order, locations);
}

void OrderFunctions(proto::ProfilesDictionary* dictionary) {
  auto* functions = dictionary->mutable_function_table();
  Placement all(functions->size());
  all.Place(0);
  for (const proto::Location& location : dictionary->location_table()) {
    for (const proto::Line& line : location.lines()) all.Place(line.function_index());
  }
  for (int i = 0; i < functions->size(); ++i) all.Place(i);  // those without a location
  const Indices new_functions = Reorder(all.order(), functions);
  for (proto::Location& location : *dictionary->mutable_location_table()) {
    for (proto::Line& line : *location.mutable_lines()) {
      line.set_function_index(NewIndex(new_functions, line.function_index()));
    }
  }
}

// The texts of functions come last, in the order of the functions.
void OrderStrings(ProfilesRequest* request) {
  proto::ProfilesDictionary* dictionary = request->mutable_dictionary();
  auto* strings = dictionary->mutable_string_table();
  Placement names(strings->size());
  for (const proto::Function& function : dictionary->function_table()) {
    names.Place(function.name_strindex());
    names.Place(function.system_name_strindex());
  }
  Placement all(strings->size());
  all.Place(0);
  for (int i = 0; i < strings->size(); ++i) {
    if (!names.Has(i)) all.Place(i);
  }
  for (const int name : names.order()) all.Place(name);
  FixStrings(Reorder(all.order(), strings), request);
}

Indices OrderStacks(const Indices& new_locations, proto::ProfilesDictionary* dictionary) {
  auto* stacks = dictionary->mutable_stack_table();
  for (proto::Stack& stack : *stacks) {
    for (int& location : *stack.mutable_location_indices()) location = NewIndex(new_locations, location);
  }
  Indices order = InOldOrder(stacks->size());
  SortRest(&order, [&](int a, int b) {
    const auto &left = (*stacks)[a].location_indices(), &right = (*stacks)[b].location_indices();
    return std::lexicographical_compare(left.rbegin(), left.rend(), right.rbegin(), right.rend());
  });
  return Reorder(order, stacks);
}

}  // namespace

void OrderTables(ProfilesRequest* request) {
  proto::ProfilesDictionary* dictionary = request->mutable_dictionary();
  const Indices new_locations = OrderLocations(dictionary);
  OrderFunctions(dictionary);
  OrderStrings(request);
  const Indices new_stacks = OrderStacks(new_locations, dictionary);
  for (proto::ResourceProfiles& resource : *request->mutable_resource_profiles()) {
    for (proto::ScopeProfiles& scope : *resource.mutable_scope_profiles()) {
      for (proto::Profile& profile : *scope.mutable_profiles()) {
        for (proto::Sample& sample : *profile.mutable_samples()) {
          sample.set_stack_index(NewIndex(new_stacks, sample.stack_index()));
        }
      }
    }
  }
}

}  // namespace tributary::otlp
