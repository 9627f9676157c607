#include "otlp/log_size.h"

#include <algorithm>

#include "otlp/profile_logs.h"
#include "schemas/otlp/profiles.pb.h"

namespace tributary::otlp {
namespace {

constexpr size_t kAttributeBytes = 40;  // of an attribute, without its key and its text

}  // namespace

// A function that is inlined at the location is a frame of its own.
void LogSize::AddLocation() {
  const auto& location = tables_.location_table(tables_.location_table_size() - 1);
  const auto text = [this](int32_t index) { return tables_.string_table(index).size(); };
  const auto& mapping = tables_.mapping_table(location.mapping_index());
  size_t of_mapping = text(mapping.filename_strindex());
  for (const int32_t index : mapping.attribute_indices()) {
    of_mapping += tables_.attribute_table(index).value().string_value().size();
  }
  size_t bytes = std::max<size_t>(static_cast<size_t>(location.lines_size()), 1) * (kLogFrameBytes + of_mapping);
  for (const auto& line : location.lines()) {
    const auto& function = tables_.function_table(line.function_index());
    bytes += text(function.name_strindex()) + text(function.filename_strindex());
  }
  locations_.push_back(bytes);
}

void LogSize::AddStack() {
  const auto& stack = tables_.stack_table(tables_.stack_table_size() - 1);
  size_t bytes = 0, frames = 0;
  for (const int32_t index : stack.location_indices()) {
    bytes += locations_[Index(index)];
    frames += std::max<size_t>(static_cast<size_t>(tables_.location_table(index).lines_size()), 1);
  }
  stacks_.push_back(std::min(bytes, kRecordStackBytesMax + frames * kLogFrameBytes));
}

void LogSize::AddSet(std::span<const int32_t> set) {
  size_t bytes = kLogRecordBytes;
  for (const int32_t index : set) {
    const auto& attribute = tables_.attribute_table(index);
    bytes += kAttributeBytes + tables_.string_table(attribute.key_strindex()).size() +
             attribute.value().string_value().size();
  }
  sets_.push_back(bytes);
}

}  // namespace tributary::otlp
