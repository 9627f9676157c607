#include "otlp/frame_locations.h"

#include "base/hex.h"
#include "profile/attributes.h"
#include "symbols/demangle.h"

namespace tributary::otlp {

void FrameLocations::BeginRequest() {
  for (Mapping& mapping : mappings_) mapping.in_request = kNotAdded;
  for (Function& function : functions_) function.in_request = kNotAdded;
}

LocationIndex FrameLocations::Add(Resolved resolved, ProfilesBuilder& builder) {
  const Frame& frame = frames_[resolved.value];
  Mapping& mapping = mappings_[frame.mapping];
  if (mapping.in_request == kNotAdded) mapping.in_request = builder.AddMapping(*mapping.id, mapping.path).value;
  added_.clear();
  for (uint32_t i = frame.first_line; i < frame.first_line + frame.line_count; ++i) {
    Function& function = functions_[lines_[i].function];
    if (function.in_request == kNotAdded) {
      function.in_request = builder.AddFunction(*function.name, function.system_name, function.file).value;
    }
    added_.push_back({FunctionIndex(function.in_request), lines_[i].line});
  }
  return builder.AddLocation(frame.kind, MappingIndex(mapping.in_request), frame.address, added_);
}

uint32_t FrameLocations::MappingOf(FrameKind kind, const ExecutableId& id, std::string_view path) {
  static const ExecutableId kNone;
  if (RowOf(kind).naming == FrameNaming::kOwn && id.known()) return MappingOf(kind, kNone, "");
  const auto [it, added] = mapping_numbers_.try_emplace({id, path.data()}, static_cast<uint32_t>(mappings_.size()));
  if (added) mappings_.push_back({.id = &id, .path = path});
  return it->second;
}

void FrameLocations::AddLine(const SymbolTable::Frame& frame, bool is_own_name) {
  if (frame.name.empty()) return;
  const auto [it, added] =
      function_numbers_.try_emplace({frame.name.data(), frame.file.data()}, static_cast<uint32_t>(functions_.size()));
  if (added) {
    const auto [name, is_new] = names_.try_emplace(frame.name.data());
    if (is_new) name->second = is_own_name ? std::string(frame.name) : Demangle(frame.name);
    functions_.push_back({.name = &name->second, .system_name = frame.name, .file = frame.file});
  }
  lines_.push_back({.function = it->second, .line = frame.line});
}

Annotations AddAnnotations(AttributesIndex others, std::string_view own, ProfilesBuilder& builder) {
  Attributes attributes = DecodeAttributes(own);
  Annotations out;
  out.link = builder.AddLink(FromHex(FindAttribute(attributes, kTraceId)).value_or(""),
                             FromHex(FindAttribute(attributes, kSpanId)).value_or(""));
  if (out.link.value != 0) {
    std::erase_if(attributes,
                  [](const Attribute& attribute) { return attribute.key == kTraceId || attribute.key == kSpanId; });
  }
  out.attributes = builder.AddOwn(others, attributes);
  return out;
}

}  // namespace tributary::otlp
