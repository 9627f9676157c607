#include "test/otlp/validator.h"

#include <set>

#include "base/utf8.h"
#include "test/otlp/validation.h"

namespace tributary::otlp {

std::string_view TableName(Table table) {
  constexpr std::string_view kNames[kTableCount] = {"mapping_table", "location_table",  "function_table", "link_table",
                                                    "string_table",  "attribute_table", "stack_table"};
  return kNames[static_cast<size_t>(table)];
}

Validation::Validation(const ProfilesRequest& request) : request_(request) {
  for (size_t table = 0; table < kTableCount; ++table) {
    used_[table].resize(static_cast<size_t>(SizeOf(static_cast<Table>(table))));
  }
}

int Validation::SizeOf(Table table) const {
  switch (table) {
    case Table::kMapping:
      return dictionary().mapping_table_size();
    case Table::kLocation:
      return dictionary().location_table_size();
    case Table::kFunction:
      return dictionary().function_table_size();
    case Table::kLink:
      return dictionary().link_table_size();
    case Table::kString:
      return dictionary().string_table_size();
    case Table::kAttribute:
      return dictionary().attribute_table_size();
    case Table::kStack:
      break;
  }
  return dictionary().stack_table_size();
}

void Findings::Add(std::string rule, std::string where, std::string detail) {
  if (findings_.size() < kFindingsMax) {
    findings_.push_back(Finding{std::move(rule), std::move(where), std::move(detail)});
  }
}

bool Validation::Refer(Table table, int64_t index, std::string_view field, const std::string& where) {
  if (index < 0 || index >= SizeOf(table)) {
    // If even element 0 is missing, the table has a finding. Unset fields (index 0) are not findings then.
    if (index != 0) {
      Add(fmt::format("{}.range", field), where,
          fmt::format("index {} into {} of {} elements", index, TableName(table), SizeOf(table)));
    }
    return false;
  }
  used_[static_cast<size_t>(table)][static_cast<size_t>(index)] = true;
  return true;
}

const std::string& Validation::String(int64_t index) const {
  static const std::string kEmpty;
  return index >= 0 && index < dictionary().string_table_size() ? dictionary().string_table(static_cast<int>(index))
                                                                : kEmpty;
}

void CheckValue(const common::AnyValue& value, const std::string& where, Validation& v) {
  switch (value.value_case()) {
    case common::AnyValue::kStringValueStrindex:
      v.Refer(Table::kString, value.string_value_strindex(), "any_value.string_value_strindex", where);
      break;
    case common::AnyValue::kArrayValue:
      for (const common::AnyValue& item : value.array_value().values()) CheckValue(item, where, v);
      break;
    case common::AnyValue::kKvlistValue:
      CheckAttributes(value.kvlist_value().values(), "kvlist", where, v);
      break;
    default:
      break;
  }
}

void CheckAttributes(const google::protobuf::RepeatedPtrField<common::KeyValue>& attributes, const std::string& rule,
                     const std::string& where, Validation& v) {
  std::set<std::string> keys;
  for (const common::KeyValue& attribute : attributes) {
    std::string key = attribute.key();
    if (attribute.key_strindex() != 0) {
      if (!key.empty()) v.Add("attribute.key_twice", where, "both key and key_strindex are set");
      v.Refer(Table::kString, attribute.key_strindex(), "attribute.key_strindex", where);
      key = v.String(attribute.key_strindex());
    }
    if (key.empty()) v.Add("attribute.no_key", where, "an attribute without a key");
    if (!keys.insert(key).second) v.Add(rule + ".attribute_repeated", where, fmt::format("key \"{}\" twice", key));
    CheckValue(attribute.value(), where, v);
  }
}

void CheckAttributeIndices(const google::protobuf::RepeatedField<int32_t>& indices, const std::string& rule,
                           const std::string& where, Validation& v) {
  std::set<std::string> keys;
  for (int32_t index : indices) {
    if (!v.Refer(Table::kAttribute, index, rule + ".attribute_indices", where)) continue;
    if (index == 0) {
      v.Add(rule + ".attribute_not_set", where, "attribute index 0");
      continue;
    }
    const std::string& key = v.String(v.dictionary().attribute_table(index).key_strindex());
    if (!keys.insert(key).second) v.Add(rule + ".attribute_repeated", where, fmt::format("key \"{}\" twice", key));
  }
}

// Checks that text is UTF-8 and that the message has no unknown fields, for example fields of an older or newer
// numbering.
void CheckMessage(const google::protobuf::Message& message, const std::string& where, Findings& findings) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  if (!reflection.GetUnknownFields(message).empty()) {
    findings.Add("message.unknown_field", where,
                 fmt::format("{} with field number {}", message.GetDescriptor()->name(),
                             reflection.GetUnknownFields(message).field(0).number()));
  }
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const google::protobuf::FieldDescriptor* field : fields) {
    bool repeated = field->is_repeated();
    int count = repeated ? reflection.FieldSize(message, field) : 1;
    if (field->type() == google::protobuf::FieldDescriptor::TYPE_STRING) {
      for (int i = 0; i < count; ++i) {
        std::string text =
            repeated ? reflection.GetRepeatedString(message, field, i) : reflection.GetString(message, field);
        if (!IsUtf8(text)) findings.Add("string.not_utf8", where, fmt::format("{} {}", field->full_name(), i));
      }
    } else if (field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) {
      for (int i = 0; i < count; ++i) {
        CheckMessage(
            repeated ? reflection.GetRepeatedMessage(message, field, i) : reflection.GetMessage(message, field),
            fmt::format("{}{}{} {}", where, where.empty() ? "" : " ", field->name(), i), findings);
      }
    }
  }
}

std::vector<Finding> ValidateProfiles(const ProfilesRequest& request) {
  Validation v(request);
  if (size_t bytes = request.ByteSizeLong(); bytes >= kRequestBytesMax) {
    v.Add("request.too_large", "", fmt::format("{} bytes", bytes));
  }
  CheckMessage(request, "", v);
  CheckResources(v);
  CheckTables(v);
  return std::move(v).Take();
}

std::vector<Finding> ValidateProfilesBytes(std::string_view bytes) {
  ProfilesRequest request;
  if (!request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return {Finding{"message.not_protobuf", "", fmt::format("{} bytes", bytes.size())}};
  }
  return ValidateProfiles(request);
}

std::string DescribeFindings(const std::vector<Finding>& findings) {
  constexpr size_t kShown = 10;
  std::string out = fmt::format("{} findings\n", findings.size());
  for (size_t i = 0; i < std::min(findings.size(), kShown); ++i) {
    out += fmt::format("  {} at [{}]: {}\n", findings[i].rule, findings[i].where, findings[i].detail);
  }
  return out;
}

}  // namespace tributary::otlp
