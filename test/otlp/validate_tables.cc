#include <algorithm>
#include <unordered_set>

#include "test/otlp/validation.h"

namespace tributary::otlp {
namespace {

// Two elements with the same identity are equal. Attributes are compared as a set, all other fields as written.
template <typename T>
std::string Identity(const T& element) {
  return element.SerializeAsString();
}
std::string Identity(const std::string& element) { return element; }
template <typename T>
std::string IdentityOfAttributed(T element) {
  auto* indices = element.mutable_attribute_indices();
  std::sort(indices->begin(), indices->end());
  return element.SerializeAsString();
}
std::string Identity(const proto::Mapping& element) { return IdentityOfAttributed(element); }
std::string Identity(const proto::Location& element) { return IdentityOfAttributed(element); }

bool IsZero(const proto::Link& link) {
  auto zeros = [](const std::string& id, size_t size) { return id.empty() || id == std::string(size, '\0'); };
  return zeros(link.trace_id(), 16) && zeros(link.span_id(), 8);
}
// The Collector writes the zero attribute with an empty value, which means the same.
bool IsZero(const proto::KeyValueAndUnit& attribute) {
  return attribute.key_strindex() == 0 && attribute.unit_strindex() == 0 &&
         attribute.value().value_case() == common::AnyValue::VALUE_NOT_SET;
}
template <typename T>
bool IsZero(const T& element) {
  return Identity(element).empty();
}

// Checks element 0, duplicates, and elements without a reference.
template <typename Elements>
void CheckTable(Table table, const Elements& elements, Validation& v) {
  std::string name(TableName(table));
  if (elements.empty()) {
    v.Add(name + ".empty", name, "not even element 0");
    return;
  }
  if (!IsZero(elements[0])) v.Add(name + ".first_not_zero", name + " 0", "element 0 is not the zero value");
  std::unordered_set<std::string> seen;
  for (int i = 0; i < elements.size(); ++i) {
    std::string where = fmt::format("{} {}", name, i);
    if (!seen.insert(Identity(elements[i])).second) v.Add(name + ".duplicate", where, "equals an earlier element");
    if (i > 0 && !v.IsUsed(table, i)) v.Add(name + ".orphan", where, "nothing refers to it");
  }
}

void CheckMappings(Validation& v) {
  const proto::ProfilesDictionary& dictionary = v.dictionary();
  for (int i = 0; i < dictionary.mapping_table_size(); ++i) {
    const proto::Mapping& mapping = dictionary.mapping_table(i);
    std::string where = fmt::format("mapping_table {}", i);
    v.Refer(Table::kString, mapping.filename_strindex(), "mapping.filename_strindex", where);
    CheckAttributeIndices(mapping.attribute_indices(), "mapping", where, v);
    if (mapping.memory_limit() < mapping.memory_start()) {
      v.Add("mapping.range_reversed", where, "memory_limit is below memory_start");
    }
    bool has_build_id =
        std::any_of(mapping.attribute_indices().begin(), mapping.attribute_indices().end(), [&](int32_t index) {
          if (index < 0 || index >= dictionary.attribute_table_size()) return false;
          const std::string& key = v.String(dictionary.attribute_table(index).key_strindex());
          return key.starts_with("process.executable.build_id.");
        });
    if (i > 0 && !has_build_id) v.Add("mapping.no_build_id", where, "its file cannot be told from others");
  }
}

void CheckLocations(Validation& v) {
  const proto::ProfilesDictionary& dictionary = v.dictionary();
  for (int i = 0; i < dictionary.location_table_size(); ++i) {
    const proto::Location& location = dictionary.location_table(i);
    std::string where = fmt::format("location_table {}", i);
    CheckAttributeIndices(location.attribute_indices(), "location", where, v);
    bool mapped = v.Refer(Table::kMapping, location.mapping_index(), "location.mapping_index", where);
    if (mapped && location.mapping_index() != 0) {
      const proto::Mapping& mapping = dictionary.mapping_table(location.mapping_index());
      if (location.address() < mapping.memory_start() || location.address() > mapping.memory_limit()) {
        v.Add("location.address_outside_mapping", where,
              fmt::format("{:#x} in {:#x}-{:#x}", location.address(), mapping.memory_start(), mapping.memory_limit()));
      }
    }
    for (const proto::Line& line : location.lines()) {
      v.Refer(Table::kFunction, line.function_index(), "line.function_index", where);
      if (line.line() < 0) v.Add("line.negative_line", where, fmt::format("line {}", line.line()));
      if (line.column() < 0) v.Add("line.negative_column", where, fmt::format("column {}", line.column()));
    }
  }
}

void CheckFunctions(Validation& v) {
  for (int i = 0; i < v.dictionary().function_table_size(); ++i) {
    const proto::Function& function = v.dictionary().function_table(i);
    std::string where = fmt::format("function_table {}", i);
    v.Refer(Table::kString, function.name_strindex(), "function.name_strindex", where);
    v.Refer(Table::kString, function.system_name_strindex(), "function.system_name_strindex", where);
    v.Refer(Table::kString, function.filename_strindex(), "function.filename_strindex", where);
    if (i > 0 && function.name_strindex() == 0 && function.system_name_strindex() == 0 &&
        function.filename_strindex() == 0) {
      v.Add("function.no_string", where, "neither name, system name nor file name");
    }
    if (function.start_line() < 0) {
      v.Add("function.negative_start_line", where, fmt::format("line {}", function.start_line()));
    }
  }
}

void CheckStacks(Validation& v) {
  for (int i = 0; i < v.dictionary().stack_table_size(); ++i) {
    std::string where = fmt::format("stack_table {}", i);
    for (int32_t index : v.dictionary().stack_table(i).location_indices()) {
      if (v.Refer(Table::kLocation, index, "stack.location_indices", where) && index == 0) {
        v.Add("stack.location_not_set", where, "location index 0");
      }
    }
  }
}

void CheckLinks(Validation& v) {
  for (int i = 1; i < v.dictionary().link_table_size(); ++i) {
    const proto::Link& link = v.dictionary().link_table(i);
    std::string where = fmt::format("link_table {}", i);
    if (link.trace_id().size() != 16) {
      v.Add("link.trace_id_length", where, fmt::format("{} bytes", link.trace_id().size()));
    }
    if (link.span_id().size() != 8) {
      v.Add("link.span_id_length", where, fmt::format("{} bytes", link.span_id().size()));
    }
  }
}

void CheckAttributeTable(Validation& v) {
  for (int i = 0; i < v.dictionary().attribute_table_size(); ++i) {
    const proto::KeyValueAndUnit& attribute = v.dictionary().attribute_table(i);
    std::string where = fmt::format("attribute_table {}", i);
    v.Refer(Table::kString, attribute.key_strindex(), "attribute_table.key_strindex", where);
    v.Refer(Table::kString, attribute.unit_strindex(), "attribute_table.unit_strindex", where);
    if (i > 0 && attribute.key_strindex() == 0) v.Add("attribute_table.no_key", where, "an attribute without a key");
    CheckValue(attribute.value(), where, v);
  }
}

}  // namespace

void CheckTables(Validation& v) {
  if (!v.request().has_dictionary()) v.Add("request.no_dictionary", "", "no dictionary");
  CheckMappings(v);
  CheckLocations(v);
  CheckFunctions(v);
  CheckStacks(v);
  CheckLinks(v);
  CheckAttributeTable(v);
  const proto::ProfilesDictionary& dictionary = v.dictionary();
  CheckTable(Table::kMapping, dictionary.mapping_table(), v);
  CheckTable(Table::kLocation, dictionary.location_table(), v);
  CheckTable(Table::kFunction, dictionary.function_table(), v);
  CheckTable(Table::kLink, dictionary.link_table(), v);
  CheckTable(Table::kString, dictionary.string_table(), v);
  CheckTable(Table::kAttribute, dictionary.attribute_table(), v);
  CheckTable(Table::kStack, dictionary.stack_table(), v);
}

}  // namespace tributary::otlp
