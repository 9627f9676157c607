#pragma once

#include <string>

#include "otlp/profiles_builder.h"
#include "schemas/otlp/profiles_service.pb.h"

namespace tributary::otlp {

// Returns an entry of a table of a request's dictionary, or an empty one if the index is out of range.
template <typename Table>
const typename Table::value_type& At(const Table& table, int index) {
  static const typename Table::value_type kNotSet{};
  return index >= 0 && index < table.size() ? table[index] : kNotSet;
}

inline const std::string& StringAt(const ProfilesRequest& request, int index) {
  return At(request.dictionary().string_table(), index);
}

}  // namespace tributary::otlp
